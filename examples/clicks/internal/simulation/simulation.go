// Package simulation puts clicks into a Kinesis stream in memory, has them read by the real handler of the clicks function
// or by a loop written by hand, lets things go wrong on the way, and counts afterwards what was repeated, out of order and
// lost.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/examples/clicks/clicks"
	"github.com/oncekit/oncekit/examples/clicks/internal/byhand"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Reader is what reads the stream.
type Reader int

const (
	// Oncekit is the handler of the clicks function.
	Oncekit Reader = iota
	// LoopGoesOn is a loop that goes on behind a failure.
	LoopGoesOn
	// LoopStops is a loop that stops at its first failure.
	LoopStops
)

// Config says what to simulate.
type Config struct {
	// Seed decides all that is random. Two runs with the same Config end alike, however fast the machine is, unless it is so
	// slow that an append takes as long as a claim is good for, half a second.
	Seed uint64
	// Clicks is how many clicks are sent.
	Clicks int
	// Reader reads the stream.
	Reader Reader
	// Store is the function's store, which the loops have none of.
	Store idempotency.Store
	// Progress, if not nil, is called with how many clicks were appended, each counted once, whenever there is one more.
	Progress func(appended int)
}

// The function and its mapping, in proportion to a run of some seconds.
const (
	batchSize            = 4
	functionTimeout      = 5 * time.Second
	lease                = 500 * time.Millisecond
	maxAttempts          = 4
	maximumRetryAttempts = 6
	// concurrency is more than there are visitors, so that how far each comes depends on no other.
	concurrency = 2 * visitors
)

type simulation struct {
	config   Config
	plan     *plan
	schedule schedule
	journeys *journeys
	account  *account
	letters  letters
	shards   map[string]*shard
	stream   *kinesistest.Stream
	handler  lambdatest.Handler

	// Of each record: its clicks and its shard, by its sequence number. Of each click: its ID, by that of its batch.Record.
	clicksOf map[string][]string
	shardOf  map[string]*shard
	byRecord map[string]string
}

// Run runs a simulation. Nothing that it starts outlives it.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	d := draw.Seed(config.Seed)
	s := &simulation{
		config: config, schedule: schedule{d}, account: newAccount(), shards: make(map[string]*shard),
		clicksOf: make(map[string][]string), shardOf: make(map[string]*shard), byRecord: make(map[string]string),
	}
	if s.plan, err = newPlan(d, config.Clicks); err != nil {
		return nil, err
	}
	s.journeys = &journeys{
		draw: d, schedule: s.schedule, ran: s.account.ran, progress: config.Progress,
		calls: make(map[string]int), clicks: make(map[string]bool),
	}
	s.stream, err = kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
		o.Seed = config.Seed | 1<<63 // a stream takes 0 for no seed
		o.Shards = shards
		o.BatchSize = batchSize
		o.FunctionTimeout = functionTimeout
		o.BisectOnError = true
		o.MaximumRetryAttempts = maximumRetryAttempts
		o.Crash = s.crash
		o.Observe = s.observe
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stream.Close()) }()
	for _, id := range s.stream.Shards() {
		s.shards[id] = s.newShard(d, id)
	}
	reader, err := s.reader()
	if err != nil {
		return nil, err
	}
	s.handler = s.inInvocation(reader)
	if err := s.put(); err != nil {
		return nil, err
	}
	if err := s.stream.Drain(ctx, s.handler); err != nil {
		return nil, err
	}
	before := s.account.totals()
	if err := s.redeliver(ctx); err != nil {
		return nil, err
	}
	return s.result(before), nil
}

// reader returns what reads the stream.
func (s *simulation) reader() (lambdatest.Handler, error) {
	if s.config.Reader != Oncekit {
		return byhand.Loop{Journeys: s.journeys, StopAtFailure: s.config.Reader == LoopStops}, nil
	}
	logger := slog.New(slog.DiscardHandler) // the table at the end says it better
	guard, err := idempotency.New("clicks", s.stream.Store(s.account.Store(s.config.Store)), func(o *idempotency.Options) {
		o.CountAttempts = true
		o.Lease = lease
		o.Skew = -1 // all clocks are one here
		o.Logger = logger
	})
	if err != nil {
		return nil, err
	}
	sink, err := deadletter.New(&s.letters, "https://sqs.us-east-1.amazonaws.com/123456789012/clicks-dead")
	if err != nil {
		return nil, err
	}
	return clicks.NewHandler(s.journeys, guard, func(o *kinesis.Options) {
		o.Concurrency = concurrency
		o.MaxAttempts = maxAttempts
		o.DeadLetter = func(ctx context.Context, r *batch.Record, err error) error {
			lambdatest.Checkpoint(ctx, "give up "+s.byRecord[r.ID])
			return sink.DeadLetter(ctx, r, err)
		}
		o.Hooks = []batch.Hook{s}
		o.Logger = logger
	})
}

// OnRecordFinished implements batch.OnRecordFinished.
func (s *simulation) OnRecordFinished(ctx context.Context, r *batch.Result) {
	v := invocationOf(ctx)
	if s.account.HasEnded(v.number) {
		return // it crashed: a dead process finishes nothing
	}
	click := s.byRecord[r.Record.ID]
	s.account.finished(evidence.Attempt{ID: click, Invocation: v.number}, *r)
	s.shards[v.shard].crashes.Finishes(s.plan.byID[click].Visitor)
}

// observe is the stream's Options.Observe.
func (s *simulation) observe(d kinesistest.Delivery) {
	var ids []string
	for _, number := range d.SequenceNumbers {
		ids = append(ids, s.clicksOf[number]...)
	}
	s.account.delivered(d.Invocation, d.Ending, ids)
}

// put puts all clicks into the stream.
func (s *simulation) put() error {
	for _, record := range s.plan.records {
		id, number, err := s.stream.PutAggregated(streamRecords(record)...)
		if err != nil {
			return fmt.Errorf("put %s: %w", record[0].ID, err)
		}
		s.shardOf[number] = s.shards[id]
		for i, c := range record {
			s.clicksOf[number] = append(s.clicksOf[number], c.ID)
			name := id + ":" + number
			if len(record) > 1 {
				name = fmt.Sprint(name, "#", i)
			}
			s.byRecord[name] = c.ID
		}
	}
	return nil
}

// redeliver has the second half of the last shard delivered again: its poller has lost its checkpoint.
func (s *simulation) redeliver(ctx context.Context) error {
	s.journeys.redeliver()
	ids := s.stream.Shards()
	last := ids[len(ids)-1]
	var numbers []string
	for _, h := range s.stream.Histories() {
		if h.Shard == last {
			numbers = append(numbers, h.SequenceNumber)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	if err := s.stream.Redeliver(last, numbers[len(numbers)/2]); err != nil {
		return err
	}
	return s.stream.Drain(ctx, s.handler)
}

// result counts what has happened, and how much of that since before.
func (s *simulation) result(before totals) *Result {
	stats, now := s.stream.Stats(), s.account.totals()
	r := &Result{
		Clicks: len(s.plan.clicks), Records: stats.Put,
		Deliveries: now.deliveries, Runs: now.runs, Replays: now.replays, NotRun: s.account.notRun(),
		Segment: Segment{
			Clicks: now.deliveries - before.deliveries, Runs: now.runs - before.runs, Replays: now.replays - before.replays,
		},
		Invocations: stats.Invocations, Crashes: stats.Crashes, Discarded: stats.Discarded,
		Appends: len(s.journeys.ledger),
	}
	givenUp := make(map[string]bool)
	for _, l := range s.letters.sorted() {
		id := s.byRecord[l.ID]
		givenUp[id] = true
		r.DeadLettered = append(r.DeadLettered, DeadLetter{
			Click: id, Visitor: s.plan.byID[id].Visitor, Attempts: l.Attempts, Err: l.Error, Appended: s.journeys.clicks[id],
		})
	}
	found := check(s.plan, s.journeys.ledger, givenUp)
	r.Appended, r.Lost = found.appended, found.lost
	for _, d := range found.outOfOrder {
		if d.late.redelivery {
			r.RedeliveredOutOfOrder++
		} else {
			r.OutOfOrder = append(r.OutOfOrder, d.String())
		}
	}
	slices.Sort(r.OutOfOrder) // whichever shard was faster
	for _, again := range found.repeats {
		if again.again.redelivery {
			r.Redelivered++
		} else {
			r.Repeats = append(r.Repeats, s.account.explain(again))
		}
	}
	sortRepeats(r.Repeats)
	return r
}
