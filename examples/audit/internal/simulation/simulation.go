// Package simulation changes the orders of a table in memory and hands its stream to the audit function, lets things go
// wrong on the way, and counts afterwards what was logged twice, why, out of order, and not at all.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/examples/audit/internal/byhand"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Config says what to simulate.
type Config struct {
	// Seed decides all that is random. Two runs with the same Config end alike, however fast the machine is, unless it is
	// so slow that a change takes longer than its lease.
	Seed draw.Seed
	// Orders is how many orders the table gets, at least 1.
	Orders int
	// Function is what handles the stream.
	Function Function
	// Store is the store of the guard of Oncekit.
	Store idempotency.Store
	// Progress, if not nil, is called after each part of the run.
	Progress func(Progress)
}

// Function is one of the functions that are compared.
type Function int

const (
	Oncekit    Function = iota // the handler of package audit
	LoopGoesOn                 // a loop that goes on behind a record that fails, and names all that did
	LoopStops                  // a loop that stops at the first record that fails
)

// Progress is how far a simulation has got.
type Progress struct {
	Part, Changes, Logged, Crashes int
}

const (
	batchSize = 20
	// concurrency is the function's. The batch's whole is in work at once, so that which orders a crash finds at work does
	// not depend on who comes first.
	concurrency = batchSize
	// maximumRetryAttempts is that of the mapping. The template has more: here the loops, which nothing else keeps from trying
	// for ever, are to give up within seconds.
	maximumRetryAttempts = 5
	timeout              = 2 * time.Second
	// lease is short, so that what a crash leaves behind can be taken over soon. By default it would be the rest of timeout.
	lease = 400 * time.Millisecond
	skew  = 50 * time.Millisecond
)

type simulation struct {
	config   Config
	table    *dynamodbstreamtest.Table
	log      *memoryLog
	faults   *faults
	evidence *evidence.Evidence
	handler  lambdatest.Handler

	mu           sync.Mutex
	changes      []*change
	byEvent      map[string]*change
	bySequence   map[string]*change
	deadLettered map[string]error // by event
	replays      int
}

// change is a record of the stream.
type change struct {
	dynamodbstreamtest.Change
	order  string
	number int // of the changes of its order, from 1
}

// String names the change.
func (c *change) String() string { return fmt.Sprintf("%s change %d", c.order, c.number) }

// Run runs a simulation. Nothing that it starts outlives it.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	s := &simulation{
		config: config, evidence: evidence.New("row"),
		log:     &memoryLog{draw: config.Seed, calls: make(map[string]int)},
		byEvent: make(map[string]*change), bySequence: make(map[string]*change), deadLettered: make(map[string]error),
	}
	workers := concurrency
	if config.Function != Oncekit {
		workers = 1
	}
	s.faults = newFaults(config.Seed, workers)
	s.faults.orderOf = s.orderOf
	s.table, err = dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id"}, s.options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.table.Close()) }()
	if s.handler, err = s.function(); err != nil {
		return nil, err
	}
	if err := s.parts(ctx); err != nil {
		return nil, err
	}
	return s.result(), nil
}

func (s *simulation) options(o *dynamodbstreamtest.Options) {
	o.Seed = uint64(s.config.Seed) | 1<<63 // a table takes 0 for no seed
	o.FunctionTimeout = timeout
	o.BatchSize = batchSize
	o.BisectOnError = true
	o.MaximumRetryAttempts = maximumRetryAttempts
	o.Crash = func(p lambdatest.Point) bool { return s.faults.crash(p, s.ordersOf(p.RecordIDs)) }
	o.StoreFault = s.faults.store
	o.Observe = func(d dynamodbstreamtest.Delivery) { s.evidence.InvocationEnded(d.Invocation, d.Ending) }
}

// function returns what handles the stream.
func (s *simulation) function() (lambdatest.Handler, error) {
	if s.config.Function != Oncekit {
		loop := byhand.Loop{Log: s.log, Stop: s.config.Function == LoopStops}
		return s.numbered(loop), nil
	}
	store := s.table.Store(s.evidence.Store(s.config.Store))
	guard, err := idempotency.New("audit", store, func(o *idempotency.Options) {
		o.CountAttempts = true
		o.Lease, o.Skew = lease, skew
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		return nil, err
	}
	handler, err := audit.NewHandler(s.log, guard, s.deadLetter, func(o *dynamodbstream.Options) {
		o.Concurrency = concurrency
		o.Logger = slog.New(slog.DiscardHandler) // the table at the end says it better
		o.Hooks = []batch.Hook{s}
	})
	if err != nil {
		return nil, err
	}
	return s.numbered(handler), nil
}

type invocationKey struct{}

// numbered is the handler, with the number of its invocation in the context. Invocations follow one another, since the
// stream has one shard.
func (s *simulation) numbered(h lambdatest.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return h.Invoke(context.WithValue(ctx, invocationKey{}, s.faults.crashes.Current()), payload)
	})
}

// invocationOf returns the number of the invocation that ctx belongs to.
func invocationOf(ctx context.Context) int {
	invocation, _ := ctx.Value(invocationKey{}).(int)
	return invocation
}

// OnRecordFinished implements batch.OnRecordFinished.
func (s *simulation) OnRecordFinished(ctx context.Context, r *batch.Result) {
	invocation := invocationOf(ctx)
	if s.evidence.HasEnded(invocation) {
		return // it crashed: a dead process finishes nothing
	}
	c := s.changeOf(r.Record)
	s.evidence.RecordEnded(evidence.Attempt{ID: c.EventID, Invocation: invocation}, *r)
	s.mu.Lock()
	if r.Outcome == batch.Replayed {
		s.replays++
	}
	s.mu.Unlock()
	s.faults.crashes.Finishes(c.order)
}

// deadLetter is the handler's Options.DeadLetter. In production it is a deadletter.Sink's.
func (s *simulation) deadLetter(ctx context.Context, r *batch.Record, cause error) error {
	c := s.changeOf(r)
	lambdatest.Checkpoint(ctx, "dead-letter "+c.EventID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadLettered[c.EventID] = cause
	return nil
}

func (s *simulation) changeOf(r *batch.Record) *change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byEvent[r.Value.(*dynamodbstream.Change[audit.Order]).ID()]
}

func (s *simulation) orderOf(eventID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byEvent[eventID]; c != nil {
		return c.order
	}
	return ""
}

func (s *simulation) ordersOf(sequenceNumbers []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	orders := make([]string, len(sequenceNumbers))
	for i, number := range sequenceNumbers {
		orders[i] = s.bySequence[number].order
	}
	return orders
}

// parts writes the first half of the changes and delivers them. Then the mapping loses its checkpoint and begins again in
// the middle of them, while the second half is written.
func (s *simulation) parts(ctx context.Context) error {
	plan := newPlan(s.config.Seed, s.config.Orders)
	half := (len(plan) + 1) / 2
	for i, part := range [][]todo{plan[:half], plan[half:]} {
		if i > 0 {
			from := s.changes[len(s.changes)/2]
			if err := s.table.Redeliver(from.ShardID, from.SequenceNumber); err != nil {
				return err
			}
		}
		if err := s.write(part); err != nil {
			return err
		}
		if i == 0 { // one that is redelivered, or nobody would notice
			s.faults.unrecorded = s.changes[len(s.changes)*3/4].EventID
		}
		if err := s.table.Drain(ctx, s.handler); err != nil {
			return err
		}
		if s.config.Progress != nil {
			s.config.Progress(Progress{
				Part: i + 1, Changes: len(s.changes), Logged: len(s.rows()), Crashes: s.table.Stats().Crashes,
			})
		}
	}
	return nil
}

// write takes the steps in the table. Nothing is delivered meanwhile.
func (s *simulation) write(steps []todo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range steps {
		written, err := step.take(s.config.Seed, s.table)
		if err != nil {
			return fmt.Errorf("%s: %w", step.order, err)
		}
		if written.EventID == "" {
			continue // the step left the order as it was
		}
		c := &change{Change: written, order: step.order, number: 1}
		for _, other := range s.changes {
			if other.order == c.order {
				c.number++
			}
		}
		s.changes = append(s.changes, c)
		s.byEvent[c.EventID], s.bySequence[c.SequenceNumber] = c, c
	}
	return nil
}

// rows returns the rows of each change, in the order appended.
func (s *simulation) rows() map[string][]row {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	rows := make(map[string][]row)
	for _, r := range s.log.rows {
		rows[r.EventID] = append(rows[r.EventID], r)
	}
	return rows
}

// result counts what has happened.
func (s *simulation) result() *Result {
	stats := s.table.Stats()
	r := &Result{
		Changes: len(s.changes), Redelivered: stats.Repeated, Deliveries: stats.Deliveries,
		Retries: stats.Deliveries - stats.Put - stats.Repeated,
		Rows:    len(s.log.rows), Replays: s.replays, Crashes: stats.Crashes,
		LogThrottled: s.log.throttled, Throttled: s.faults.throttled, RepliesLost: s.faults.lost,
	}
	rows := s.rows()
	for _, c := range s.changes {
		logged, cause := rows[c.EventID], s.deadLettered[c.EventID]
		if len(logged) > 0 {
			r.Logged++
		}
		if cause != nil {
			r.DeadLettered = append(r.DeadLettered, DeadLetter{Change: c.String(), Err: cause, Logged: len(logged) > 0})
		}
		if len(logged) == 0 && cause == nil {
			r.Lost = append(r.Lost, c.String())
		}
		for n := 1; n < len(logged); n++ {
			repeat := Repeat{Change: c.String(), First: logged[n-1].invocation, Again: logged[n].invocation}
			repeat.Cause, repeat.Unexplained = s.evidence.Excuse(logged[n-1].effect(), logged[n].effect())
			r.Repeats = append(r.Repeats, repeat)
		}
	}
	r.OutOfOrder = outOfOrder(s.log.rows, s.byEvent)
	return r
}

// outOfOrder returns the changes whose first row stands behind one of a later change of the same order.
func outOfOrder(rows []row, byEvent map[string]*change) []string {
	var changes []string
	latest := make(map[string]int) // by order
	seen := make(map[string]bool)
	for _, r := range rows {
		c := byEvent[r.EventID]
		if !seen[r.EventID] && c.number < latest[c.order] {
			changes = append(changes, c.String())
		}
		seen[r.EventID] = true
		latest[c.order] = max(latest[c.order], c.number)
	}
	slices.Sort(changes)
	return changes
}
