package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oncekit/oncekit/examples/internal/pause"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// deliver delivers everything to the function until the queue is empty.
//
// It does so in rounds. In a round all that is visible is delivered, in batches, one after the other. Then the claims of
// crashed invocations are waited for, as a visibility timeout of six times the function's does with time to spare, and
// what came back is made visible, all at once, for the next round. Thus which messages make a batch does not depend on how
// long anything takes.
func (s *simulation) deliver(ctx context.Context) error {
	for {
		s.rounds++
		done, err := s.round(ctx)
		if err != nil || done {
			return err
		}
		if s.rounds == 1 {
			for _, id := range s.late() {
				if err := s.queue.Redeliver(id); err != nil {
					return err
				}
			}
		}
		// All claims were made before now, with leases until their invocations' deadlines.
		if err := pause.For(ctx, s.config.Timeout+s.config.skew()+tick); err != nil {
			return err
		}
		if err := s.comeBack(ctx); err != nil {
			return err
		}
	}
}

// Takes returns about how long a run takes, in real time.
func (c *Config) Takes() time.Duration {
	rounds := 2
	if undecodable.count(c.Orders) > 0 {
		rounds = 1 + maxReceiveCount // in the last one the queue moves the message
	}
	waits := time.Duration(rounds-1)*(c.Timeout+c.skew()) + time.Duration(hung.count(c.Orders))*c.Timeout
	// The rest is as measured: what each order takes, and what only some take at a time.
	return waits + time.Duration(c.Orders)*(9*time.Millisecond+18*time.Millisecond/time.Duration(c.Concurrency))
}

// round delivers what is visible, and reports whether nothing is left.
func (s *simulation) round(ctx context.Context) (done bool, err error) {
	roundCtx, end := context.WithCancel(ctx)
	defer end()
	drained := make(chan error, 1)
	go func() { drained <- s.queue.Drain(roundCtx, s.handler) }()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ticks := 1; ; ticks++ {
		select {
		case err := <-drained:
			s.report(true)
			if ctx.Err() == nil && errors.Is(err, context.Canceled) {
				return false, nil // the round has ended, and something is left for the next
			}
			return err == nil, err
		case <-ticker.C:
			if s.idle() {
				end()
			}
			if ticks%int(progressEvery/tick) == 0 {
				s.report(false)
			}
		}
	}
}

// idle reports whether nothing is visible and no invocation runs.
func (s *simulation) idle() bool {
	stats := s.queue.Stats()
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	return stats.Visible == 0 && stats.Invocations == len(s.witness.deliveries)
}

// late returns the messages that are delivered again after the first round.
func (s *simulation) late() []string {
	var ids []string
	for _, h := range s.queue.Histories() {
		if s.byID[s.byMessage[h.ID]].duplicated == late {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// comeBack makes all messages visible that are in flight.
func (s *simulation) comeBack(ctx context.Context) error {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	for _, d := range s.witness.deliveries {
		for _, m := range d.Messages {
			if !slices.Contains(d.Returned, m.MessageId) {
				continue
			}
			err := s.queue.ChangeVisibility(ctx, m.ReceiptHandle, 0)
			if err != nil && !errors.Is(err, sqstest.ErrNotInFlight) { // it came back in an earlier round
				return err
			}
		}
	}
	return nil
}

func (s *simulation) report(ended bool) {
	if s.config.Progress == nil {
		return
	}
	stats := s.queue.Stats()
	p := Progress{
		Round: s.rounds, RoundEnded: ended, Deliveries: stats.Receives, Crashes: stats.Crashes,
		Orders: len(s.orders), Hopeless: true,
	}
	charges, moved := s.provider.charges(), s.moved()
	for i := range s.orders {
		switch o := &s.orders[i]; {
		case len(charges[o.id]) > 0:
			p.Charged++
		case moved[o.id]:
			p.DeadLettered++
		case o.fate != undecodable && o.fate != declined:
			p.Hopeless = false
		}
	}
	s.config.Progress(p)
}
