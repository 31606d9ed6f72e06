package shardtest

import (
	"context"
	"errors"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// poller is one Drain or Run.
type poller struct {
	running int // invocations that have not ended; guarded by the stream's mutex
	stuck   string
}

// Drain delivers records to h until all shards are drained: every record is done or discarded, and every tumbling window
// has had its final invocation. Then no invocation is running either, but parked goroutines of dead ones may be left,
// until Close.
//
// A batch that fails for ever keeps Drain from ending. If neither retries nor age are limited, Drain returns an error
// that names its first record after more than 1,000 deliveries without progress. The final invocation of a window that
// has no records is limited by retries only. When ctx is done, Drain delivers no
// more, waits for what it has invoked, and returns the context's error and what is left, unless nothing is. The values
// of ctx are those of Invoke's context; its end is not. After Close, Drain returns lambdatest.ErrClosed.
func (s *Stream[R]) Drain(ctx context.Context, h lambdatest.Handler) error {
	return s.poll(ctx, h, true)
}

// Run delivers records to h until ctx is done, waits for what it has invoked, and returns nil. Otherwise it is like
// Drain.
func (s *Stream[R]) Run(ctx context.Context, h lambdatest.Handler) error {
	return s.poll(ctx, h, false)
}

func (s *Stream[R]) poll(ctx context.Context, h lambdatest.Handler, drain bool) error {
	if h == nil {
		return errors.New(s.config.Kit + ": handler is nil")
	}
	p := new(poller)
	done := ctx.Done()
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return lambdatest.ErrClosed
		}
		var next time.Time
		if ctx.Err() == nil && p.stuck == "" {
			next = s.startAll(ctx, h, p, drain)
		}
		left, drained, changed := s.left(), s.drained(), s.changed
		ended := p.running == 0 && (ctx.Err() != nil || p.stuck != "" || drain && drained)
		s.mu.Unlock()

		switch {
		case !ended:
			if lambdatest.Wait(done, changed, next) {
				done = nil // once is enough: from here on the loop waits for what is running
			}
		case !drain, drained:
			return nil
		case p.stuck != "":
			return s.errorf("%s was delivered more than %d times without progress; %d records are left in %s",
				p.stuck, maxStalls, left, s.config.Name)
		default:
			return s.errorf("%d records are left in %s: %w", left, s.config.Name, context.Cause(ctx))
		}
	}
}

// startAll starts the invocations of all lanes that have a batch to deliver, and returns when to look again. The caller
// holds s.mu.
func (s *Stream[R]) startAll(ctx context.Context, h lambdatest.Handler, p *poller, drain bool) (next time.Time) {
	now := time.Now()
	// Parents stand before their children, which are thus read in the same moment if discarding has drained the parents.
	for _, sh := range s.shards {
		sh.passed = false
		if !sh.readable() {
			continue
		}
		for i := range sh.lanes {
			l := &sh.lanes[i]
			b, at := s.take(l, now)
			switch {
			case b != nil && drain && s.stuck(b):
				p.stuck = l.name(b)
				return time.Time{}
			case b != nil:
				s.start(ctx, h, p, l, b)
			case !at.IsZero() && (next.IsZero() || at.Before(next)):
				next = at
			}
		}
		sh.passed = sh.closed && sh.drained()
	}
	return next
}

// stuck reports whether the batch would be delivered for ever. One without records does not age.
func (s *Stream[R]) stuck(b *batch[R]) bool {
	return b.stalls > maxStalls && s.options.MaximumRetryAttempts < 0 &&
		(s.options.MaximumRecordAge < 0 || len(b.records) == 0)
}

// name says what a batch begins with.
func (l *lane[R]) name(b *batch[R]) string {
	if len(b.records) == 0 {
		return "the end of the window of shard " + l.shard.id
	}
	return "record " + b.records[0].SequenceNumber + " of shard " + l.shard.id
}

// left returns how many records are not done with. The caller holds s.mu.
func (s *Stream[R]) left() int {
	n := 0
	for _, sh := range s.shards {
		for i := range sh.lanes {
			n += sh.lanes[i].waiting()
		}
	}
	return n
}

// drained reports whether all shards are. The caller holds s.mu.
func (s *Stream[R]) drained() bool {
	for _, sh := range s.shards {
		if !sh.drained() {
			return false
		}
	}
	return true
}

// start invokes the handler with a batch. The caller holds s.mu.
func (s *Stream[R]) start(ctx context.Context, h lambdatest.Handler, p *poller, l *lane[R], b *batch[R]) {
	now := time.Now()
	l.running, l.inFlight = true, len(b.records)
	p.running++
	b.attempts++
	s.stats.Invocations++
	s.stats.Deliveries += len(b.records)

	d := Delivery[R]{Shard: l.shard.id, Attempt: b.attempts, CheckpointBefore: l.checkpoint, Window: l.window.show(b.final)}
	if l.window != nil && len(b.records) > 0 {
		l.window.used = true
	}
	payload := []byte(`{"Records":[`)
	for i, r := range b.records {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, r.JSON...)
		r.delivered = append(r.delivered, now)
		if b.attempts == 1 && !r.done.IsZero() {
			s.stats.Repeated++
		}
		d.Attempt = max(d.Attempt, len(r.delivered))
		d.Records = append(d.Records, r.Event)
		d.SequenceNumbers = append(d.SequenceNumbers, r.SequenceNumber)
	}
	payload = append(payload, ']')
	if d.Window != nil {
		payload = d.Window.appendTo(payload, l.shard.id, s.config.ARN)
	}
	payload = append(payload, '}')

	event := lambdatest.Event{Payload: payload, RecordIDs: d.SequenceNumbers, Attempt: d.Attempt}
	s.function.Start(ctx, h, event, func(r lambdatest.Result) {
		d.Invocation, d.Started, d.Ended = r.Invocation, r.Started, r.Ended
		d.Ending, d.Response, d.Err = r.Ending, r.Response, r.Err
		s.mu.Lock()
		s.settle(l, b, &d)
		s.mu.Unlock()
		defer func() { // also if Observe ends the goroutine, as testing.T.Fatal does
			s.mu.Lock()
			defer s.mu.Unlock()
			l.running = false
			p.running--
			s.broadcast()
		}()
		if s.config.Observe != nil {
			s.config.Observe(d)
		}
	})
}
