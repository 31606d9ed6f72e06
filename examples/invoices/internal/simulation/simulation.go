// Package simulation publishes orders on a bus in memory, has them delivered to the invoices function by a rule and by a queue,
// lets things go wrong on the way, and counts afterwards what was invoiced twice, why, and not at all.
package simulation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/examples/invoices/internal/shop"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// Config says what to simulate.
type Config struct {
	// Seed decides all that is random. Two runs with the same Config end alike, however fast the machine is, unless it is so
	// slow that an invocation takes longer than its timeout.
	Seed draw.Seed
	// Orders is how many orders are placed, at least 1.
	Orders int
	// Key is that of the function.
	Key invoices.Key
	// Store is the store of the function's guard. Without one there is no guard.
	Store idempotency.Store
	// Progress, if not nil, is called after each part of the run.
	Progress func(Progress)
}

// Progress is how far a simulation has got.
type Progress struct {
	Part                        string
	Invoiced, Invoices, Crashes int
}

// What takes a minute on AWS takes half a second here.
const (
	retryDelay        = minute // of Lambda, before the first retry of an asynchronous invocation; twice that before the second
	functionTimeout   = minute / 2
	visibilityTimeout = minute
	skew              = minute / 10

	minute = 500 * time.Millisecond
)

const (
	publishedAgain = 0.15 // of the orders
	copies         = 0.1  // of the events are delivered again by one way or the other, without a reason
)

type simulation struct {
	config   Config
	bus      *eventbridgetest.Bus
	queue    *sqstest.Queue
	redriven *sqstest.Queue // the queue's dead-letter queue
	system   *system
	evidence *evidence.Evidence
	guard    *idempotency.Guard
	handler  lambdatest.Handler

	orders []billing.Order
	events []event

	mu       sync.Mutex
	current  map[way]int    // invocation, by the way that it came
	letters  map[string]int // that the function has sent, by order
	reasons  map[string]error
	replayed int
}

// event is an event of the shop, and the message that has it in its body.
type event struct {
	eventbridgetest.Event
	id, order string
	message   string
}

// body is that of the message. Both rules deliver the same event, with the same id.
func (e event) body(replay string) string { return string(shop.Delivered(e.Event, e.id, replay)) }

// Run runs a simulation. Nothing that it starts outlives it.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	s := &simulation{
		config: config, system: newSystem(config.Seed, config.Orders), evidence: evidence.New("invoice"),
		current: make(map[way]int), letters: make(map[string]int), reasons: make(map[string]error),
	}
	if s.bus, err = eventbridgetest.NewBus("shop", s.busOptions); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.bus.Close()) }()
	if s.redriven, err = sqstest.NewQueue("orders-dead"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.redriven.Close()) }()
	if s.queue, err = sqstest.NewQueue("orders", s.queueOptions); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.queue.Close()) }()
	if config.Store != nil {
		// A call of the function counts as one of the way by which it was invoked.
		store := s.bus.Store(s.queue.Store(s.evidence.Store(config.Store)))
		if s.guard, err = invoices.NewGuard(store, s.guardOptions); err != nil {
			return nil, err
		}
	}
	if s.handler, err = invoices.NewHandler(s.system, s.guard, s.functionOptions); err != nil {
		return nil, err
	}
	if err := s.day(ctx); err != nil {
		return nil, err
	}
	result = s.result()
	if s.guard != nil {
		result.Again, err = s.replayAgain(ctx)
	}
	return result, err
}

func (s *simulation) busOptions(o *eventbridgetest.Options) {
	o.Seed = uint64(s.config.Seed) | 1<<63 // a bus takes 0 for no seed
	o.FunctionTimeout = functionTimeout
	o.RetryDelay = retryDelay
	o.Crash = func(p lambdatest.Point) bool { return s.begins(p, byRule) }
	o.Observe = func(d eventbridgetest.Delivery) { s.evidence.InvocationEnded(number(byRule, d.Invocation), d.Ending) }
}

func (s *simulation) queueOptions(o *sqstest.Options) {
	o.Seed = uint64(s.config.Seed) | 1<<63
	o.FunctionTimeout = functionTimeout
	o.VisibilityTimeout = visibilityTimeout
	o.DeadLetter = s.redriven
	o.Crash = func(p lambdatest.Point) bool { return s.begins(p, byQueue) }
	o.Observe = func(d sqstest.Delivery) { s.evidence.InvocationEnded(number(byQueue, d.Invocation), d.Ending) }
}

func (s *simulation) guardOptions(o *idempotency.Options) {
	o.Skew = skew
	o.Logger = slog.New(slog.DiscardHandler)
}

func (s *simulation) functionOptions(o *invoices.Options) {
	o.Key = s.config.Key
	o.Concurrency = 1                        // so that which orders a crash finds undone does not depend on who comes first
	o.Logger = slog.New(slog.DiscardHandler) // the table at the end says it better
	o.Hooks = []batch.Hook{s}
	o.DeadLetter = s.deadLetter
}

// day is what happens: two halves of a day, then copies of what is done, then a replay of the day.
func (s *simulation) day(ctx context.Context) error {
	half := (s.config.Orders + 1) / 2
	if err := s.publish(0, half); err != nil {
		return err
	}
	if err := s.deliver(ctx, "the morning's orders, first by the rule", byRule, byQueue); err != nil {
		return err
	}
	if err := s.publish(half, s.config.Orders); err != nil {
		return err
	}
	if err := s.deliver(ctx, "the afternoon's orders, first by the queue", byQueue, byRule); err != nil {
		return err
	}
	if err := s.deliverAgain(); err != nil {
		return err
	}
	if err := s.deliver(ctx, "copies of what is done", byRule, byQueue); err != nil {
		return err
	}
	s.system.repair()
	if err := s.replay("the-day"); err != nil {
		return err
	}
	return s.deliver(ctx, "a replay of the day from the archive", byRule, byQueue)
}

// publish places orders. The shop does not get the answer to every PutEvents, and then puts the order again.
func (s *simulation) publish(from, to int) error {
	for i := from; i < to; i++ {
		o := newOrder(s.config.Seed, i, s.config.Orders)
		s.orders = append(s.orders, o)
		times := 1
		if s.config.Seed.Chance(publishedAgain, "published again", o.ID) {
			times = 2
		}
		for range times {
			if err := s.put(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// put publishes an order: one rule takes the event to the function, another one to the queue.
func (s *simulation) put(o billing.Order) error {
	placed := shop.Placed(o)
	id, err := s.bus.Put(placed)
	if err != nil {
		return err
	}
	e := event{Event: placed, id: id, order: o.ID}
	if e.message, err = s.queue.Send(sqstest.Message{Body: e.body("")}); err != nil {
		return err
	}
	s.events = append(s.events, e)
	return nil
}

// deliverAgain delivers some events twice, by one way or the other, although nothing went wrong.
func (s *simulation) deliverAgain() error {
	for _, e := range s.events {
		if s.config.Seed.Chance(copies, "delivered again by the rule", e.id) {
			if err := s.bus.Redeliver(e.id); err != nil {
				return err
			}
		}
		if s.config.Seed.Chance(copies, "delivered again by the queue", e.id) {
			if err := s.queue.Redeliver(e.message); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay replays all events from the archive to both rules.
func (s *simulation) replay(name string) error {
	if _, err := s.bus.Replay(time.Time{}, time.Now(), name); err != nil {
		return err
	}
	for _, e := range s.events {
		if _, err := s.queue.Send(sqstest.Message{Body: e.body(name)}); err != nil {
			return err
		}
	}
	return nil
}

// deliver delivers everything that is under way, by one way after the other.
func (s *simulation) deliver(ctx context.Context, part string, ways ...way) error {
	for _, w := range ways {
		drain := s.bus.Drain
		if w == byQueue {
			drain = s.queue.Drain
		}
		if err := drain(ctx, s.numbered(w)); err != nil {
			return err
		}
	}
	if s.config.Progress != nil {
		s.config.Progress(Progress{
			Part: part, Invoiced: len(s.system.byOrder()), Invoices: len(s.system.all()),
			Crashes: s.bus.Stats().Crashes + s.queue.Stats().Crashes,
		})
	}
	return nil
}

// replayAgain replays the day once more, with a function that has RunReplays, to the rule that invokes it.
func (s *simulation) replayAgain(ctx context.Context) (*Again, error) {
	handler, err := invoices.NewHandler(s.system, s.guard, s.functionOptions, func(o *invoices.Options) { o.RunReplays = true })
	if err != nil {
		return nil, err
	}
	s.handler = handler
	before := s.system.all()
	again := new(Again)
	if again.Events, err = s.bus.Replay(time.Time{}, time.Now(), "the-day-again"); err != nil {
		return nil, err
	}
	if err := s.bus.Drain(ctx, s.numbered(byRule)); err != nil {
		return nil, err
	}
	keys := make(map[string]bool)
	for _, i := range before {
		keys[i.key] = true
	}
	again.Keys = len(keys)
	orders := make(map[string]bool)
	for _, i := range s.system.all()[len(before):] {
		orders[i.order] = true
		again.Invoices++
	}
	again.Orders = len(orders)
	return again, nil
}

// deadLetter is the function's Options.DeadLetter. In production it is a deadletter.Sink's.
func (s *simulation) deadLetter(ctx context.Context, r *batch.Record, cause error) error {
	var order string
	switch v := r.Value.(type) {
	case *eventbridge.Event[billing.Order]:
		order = v.Detail.ID
	case *sqs.Message[billing.Order]:
		order = v.Body.ID
	}
	lambdatest.Checkpoint(ctx, "dead-letter "+order)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters[order]++
	s.reasons[order] = cause
	return nil
}

// OnRecordFinished implements batch.OnRecordFinished.
func (s *simulation) OnRecordFinished(ctx context.Context, r *batch.Result) {
	invocation := invocationOf(ctx)
	if s.evidence.HasEnded(invocation) {
		return // it crashed: a dead process finishes nothing
	}
	s.evidence.RecordEnded(evidence.Attempt{ID: r.Record.Key, Invocation: invocation}, *r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Outcome == batch.Replayed {
		s.replayed++
	}
}
