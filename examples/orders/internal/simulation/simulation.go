// Package simulation sends orders through a queue in memory into the real handler of the orders function, lets things go
// wrong on the way, and counts afterwards what was charged twice, why, and what was lost.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/internal/crash"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/orders/orders"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// Config says what to simulate.
type Config struct {
	// Seed decides all that is random. Two runs with the same Config end alike, however fast the machine is, unless the
	// machine is so slow that a batch runs into Timeout.
	Seed uint64
	// Orders is how many orders are sent.
	Orders int
	// Concurrency is how many orders of a batch the function handles at once.
	Concurrency int
	// Timeout is the function's timeout.
	Timeout time.Duration
	// Store is the function's store. Nil means that there is no guard.
	Store idempotency.Store
	// Namespace is the guard's. Runs that share a table need one each, since they send the same orders.
	Namespace string
	// Progress, if not nil, is called now and then while the simulation runs.
	Progress func(Progress)
}

// Progress is how far a simulation has got.
type Progress struct {
	Round      int // from 1; see deliver
	RoundEnded bool
	Deliveries int
	Crashes    int

	// Of the Orders some were Charged, some were moved to the dead-letter queue and never charged, and the rest is left.
	Orders, Charged, DeadLettered int
	// Hopeless is whether nothing can charge those that are left, so that they are on their way to the dead-letter queue.
	Hopeless bool
}

const (
	batchSize       = 10
	maxReceiveCount = 5
	tick            = 5 * time.Millisecond
	progressEvery   = 100 * time.Millisecond
)

type simulation struct {
	config      Config
	draw        draw.Seed
	orders      []order
	byID        map[string]*order
	byMessage   map[string]string // message ID to order
	byBody      map[string]string // message body to order
	provider    *provider
	crashes     *crash.Crashes
	faults      *faults
	witness     *witness
	queue       *sqstest.Queue
	deadLetters *sqstest.Queue
	handler     lambdatest.Handler
	runs        atomic.Int64
	rounds      int
}

// Run runs a simulation. Nothing that it starts outlives it, except that handlers which hang return a little later.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	s := &simulation{
		config: config, draw: draw.Seed(config.Seed), witness: newWitness(),
		orders: newOrders(draw.Seed(config.Seed), config.Orders),
		byID:   make(map[string]*order), byMessage: make(map[string]string), byBody: make(map[string]string),
	}
	for i := range s.orders {
		o := &s.orders[i]
		s.byID[o.id], s.byBody[o.body] = o, o.id
	}
	s.crashes = newCrashes(s.draw, config)
	s.faults = &faults{draw: s.draw, calls: make(map[string]int),
		refused: func(id string) bool { return s.fate(id) == unrecorded }}
	s.provider = &provider{draw: s.draw, fate: s.fate, hangs: s.crashes.Hangs,
		closed: make(chan struct{}), calls: make(map[string]int)}
	if err := s.open(); err != nil {
		return nil, err
	}
	defer func() {
		close(s.provider.closed)
		err = errors.Join(err, s.queue.Close(), s.deadLetters.Close())
	}()
	if err := s.send(); err != nil {
		return nil, err
	}
	if err := s.deliver(ctx); err != nil {
		return nil, err
	}
	return s.result(), nil
}

func (s *simulation) fate(id string) fate {
	if o := s.byID[id]; o != nil {
		return o.fate
	}
	return ordinary
}

// open makes the queues and the function that reads them.
func (s *simulation) open() (err error) {
	seed := s.config.Seed | 1<<63 // a queue takes 0 for no seed
	s.deadLetters, err = sqstest.NewQueue("orders-dead-letters", func(o *sqstest.Options) { o.Seed = seed })
	if err != nil {
		return err
	}
	s.queue, err = sqstest.NewQueue("orders", func(o *sqstest.Options) {
		o.Seed = seed
		o.FunctionTimeout = s.config.Timeout
		o.VisibilityTimeout = 12 * time.Hour // longer than any round, which then ends it; see deliver
		o.BatchSize = batchSize
		o.DeadLetter, o.MaxReceiveCount = s.deadLetters, maxReceiveCount
		o.Crash = func(p lambdatest.Point) bool { return s.crashes.At(p, orderOf(p), s.ordersOf(p.RecordIDs)) }
		o.StoreFault = s.faults.at
		o.Observe = s.witness.delivered
	})
	if err != nil {
		return err
	}
	guard, err := s.guard()
	if err != nil {
		return err
	}
	handler, err := orders.NewHandler(s.provider, guard, func(o *sqs.Options) {
		o.Concurrency = s.config.Concurrency
		o.Logger = slog.New(slog.DiscardHandler) // the table at the end says it better
		o.Middleware = []batch.Middleware{s.countRuns}
		o.Hooks = []batch.Hook{s}
		o.DeadLetter = s.deadLetter
	})
	if err != nil {
		return err
	}
	s.handler = lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return handler.Invoke(context.WithValue(ctx, invocationKey{}, s.crashes.Current()), payload)
	})
	return nil
}

func (s *simulation) guard() (*idempotency.Guard, error) {
	if s.config.Store == nil {
		return nil, nil
	}
	seen := s.witness.Store(s.config.Store)
	return idempotency.New(s.config.Namespace, s.queue.Store(seen), func(o *idempotency.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Skew = s.config.skew()
		o.Expiry = time.Hour // nothing is delivered later than that
	})
}

// skew is the guard's, in proportion to the short timeout. All clocks are one here.
func (c *Config) skew() time.Duration { return c.Timeout / 4 }

type invocationKey struct{}

// invocationOf returns the number of the invocation that ctx belongs to.
func invocationOf(ctx context.Context) int {
	invocation, _ := ctx.Value(invocationKey{}).(int)
	return invocation
}

func (s *simulation) ordersOf(messageIDs []string) []string {
	ids := make([]string, len(messageIDs))
	for i, m := range messageIDs {
		ids[i] = s.byMessage[m]
	}
	return ids
}

// countRuns is middleware that counts the calls of the handler. Those of dead processes do not count.
func (s *simulation) countRuns(next batch.Handler) batch.Handler {
	return func(ctx context.Context, r *batch.Record) error {
		lambdatest.Checkpoint(ctx, "run "+r.Key)
		s.runs.Add(1)
		s.witness.ran(evidence.Attempt{ID: s.byMessage[r.ID], Invocation: invocationOf(ctx)})
		return next(ctx, r)
	}
}

// OnRecordFinished implements batch.OnRecordFinished.
func (s *simulation) OnRecordFinished(ctx context.Context, r *batch.Result) {
	invocation := invocationOf(ctx)
	if s.witness.HasEnded(invocation) {
		return // it crashed: a dead process finishes nothing
	}
	id := s.byMessage[r.Record.ID]
	s.witness.finished(evidence.Attempt{ID: id, Invocation: invocation}, *r)
	s.crashes.Finishes(id)
}

// deadLetter is the handler's Options.DeadLetter. In production it would send to a queue of AWS.
func (s *simulation) deadLetter(ctx context.Context, r *batch.Record, _ error) error {
	lambdatest.Checkpoint(ctx, "dead-letter "+s.byMessage[r.ID])
	_, err := s.deadLetters.Send(sqstest.Message{Body: s.byID[s.byMessage[r.ID]].body})
	return err
}

// send puts all orders into the queue, and the second copies that are to be delivered with them or soon after.
func (s *simulation) send() error {
	type due struct {
		at      int
		message string
	}
	var copies []due
	for i := range s.orders {
		for len(copies) > 0 && copies[0].at <= i {
			if err := s.queue.Redeliver(copies[0].message); err != nil {
				return err
			}
			copies = copies[1:]
		}
		o := &s.orders[i]
		message, err := s.queue.Send(sqstest.Message{Body: o.body})
		if err != nil {
			return fmt.Errorf("send %s: %w", o.id, err)
		}
		s.byMessage[message] = o.id
		switch o.duplicated {
		case together:
			if err := s.queue.Redeliver(message); err != nil {
				return err
			}
		case soon:
			copies = append(copies, due{i + batchSize, message})
		}
	}
	for _, c := range copies {
		if err := s.queue.Redeliver(c.message); err != nil {
			return err
		}
	}
	return nil
}

// result counts what has happened.
func (s *simulation) result() *Result {
	stats := s.queue.Stats()
	w := s.witness
	r := &Result{
		Orders: len(s.orders), Duplicates: stats.Duplicates, Deliveries: stats.Receives,
		Retries: stats.Receives - stats.Sent - stats.Duplicates,
		Runs:    int(s.runs.Load()), Replays: w.counts[batch.Replayed], InProgress: w.counts[batch.InProgress],
		Unreached: w.unreached(s.byMessage),
		Crashes:   stats.Crashes, Hung: w.counts[batch.Abandoned],
		Throttled: s.faults.throttled, RepliesLost: s.faults.lost,
	}
	moved, movedByQueue := s.moved(), make(map[string]bool)
	for _, h := range s.queue.Histories() {
		if !h.DeadLettered.IsZero() {
			movedByQueue[s.byMessage[h.ID]] = true
		}
	}
	charges := s.provider.charges()
	for i := range s.orders {
		id := s.orders[i].id
		charged := charges[id]
		r.Charges += len(charged)
		if len(charged) > 0 {
			r.Charged++
		}
		if moved[id] {
			d := DeadLetter{Order: id, Err: w.failures[id], Charged: len(charged) > 0}
			if movedByQueue[id] {
				d.Receives = maxReceiveCount
			}
			r.DeadLettered = append(r.DeadLettered, d)
		}
		if len(charged) == 0 && !moved[id] {
			r.Lost = append(r.Lost, id)
		}
		for n := 1; n < len(charged); n++ {
			r.Repeats = append(r.Repeats, w.explain(charged[n-1], charged[n]))
		}
	}
	return r
}

// moved returns the orders that are in the dead-letter queue.
func (s *simulation) moved() map[string]bool {
	ids := make(map[string]bool)
	for _, h := range s.deadLetters.Histories() {
		ids[s.byBody[h.Message.Body]] = true
	}
	return ids
}
