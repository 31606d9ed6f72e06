package dynamodbstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// tableScenario is a table whose items are changed at random, and what goes wrong with the handler of its stream. What
// is random in a run comes from the seed.
type tableScenario struct {
	guarded                                  bool
	writes                                   []plannedWrite
	seed                                     uint64
	shards, batchSize, retries, factor       int
	bisect, serial, sink, bulk               bool
	concurrency                              int
	duplicates, crashes, storeFaults, faults float64
	lease                                    time.Duration
}

// plannedWrite happens after so many invocations.
type plannedWrite struct {
	after int
	does  string // put, delete, expire, rollover, split or redeliver
	item  string
	n     int // which shard, or which change
}

func drawTableScenario(t *rapid.T) *tableScenario {
	s := &tableScenario{
		guarded:     rapid.Bool().Draw(t, "guarded"),
		seed:        rapid.Uint64Range(1, 1<<32).Draw(t, "seed"),
		shards:      rapid.IntRange(1, 3).Draw(t, "shards"),
		batchSize:   rapid.SampledFrom([]int{100, 10, 3, 1}).Draw(t, "batch size"),
		retries:     rapid.SampledFrom([]int{-1, -1, 3, 0}).Draw(t, "retries"),
		factor:      1,
		bisect:      rapid.Bool().Draw(t, "bisect"),
		serial:      rapid.Bool().Draw(t, "serial"),
		sink:        rapid.Bool().Draw(t, "sink"),
		concurrency: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "concurrency"),
		duplicates:  rapid.SampledFrom([]float64{0, .3}).Draw(t, "lost answers"),
		crashes:     rapid.SampledFrom([]float64{0, .02}).Draw(t, "crashes"),
		storeFaults: rapid.SampledFrom([]float64{0, .05}).Draw(t, "store faults"),
		faults:      rapid.SampledFrom([]float64{0, .1, .4}).Draw(t, "faults of the handler"),
		lease:       rapid.SampledFrom([]time.Duration{0, time.Second, 45 * time.Second}).Draw(t, "lease"),
	}
	if s.guarded {
		s.bulk = rapid.Bool().Draw(t, "bulk")
		s.factor = rapid.IntRange(1, 3).Draw(t, "factor")
	}
	after, items := 0, rapid.SampledFrom([]int{4, 20}).Draw(t, "items") // with many, records of many lanes share a call
	for range rapid.IntRange(1, 40).Draw(t, "writes") {
		after += rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "later by")
		s.writes = append(s.writes, plannedWrite{
			after: after,
			does: rapid.SampledFrom([]string{"put", "put", "put", "put", "put", "delete", "expire", "redeliver", "rollover", "split"}).
				Draw(t, "does"),
			item: string(rune('a' + rapid.IntRange(0, items-1).Draw(t, "item"))),
			n:    rapid.IntRange(0, 30).Draw(t, "n"),
		})
	}
	return s
}

// tableLedger knows everything that happens to a table's stream, and holds it against the rules as it happens. It learns
// it from the handler itself, from the store's transitions and from the poller.
type tableLedger struct {
	s     *tableScenario
	table *dynamodbstreamtest.Table

	mu          sync.Mutex
	entries     []*changeEntry // in the order in which they were written
	known       map[string]*changeEntry
	versions    map[string]int // of the items that there are
	parents     map[string][]string
	current     map[string]*tableEvent // the invocation that has the change, by its eventID
	invocations int
	written     int // how many of the planned writes are done
	faults      []string
}

// changeEntry is one change.
type changeEntry struct {
	item, stored              string
	version                   int // of the item, 0: it was removed
	change                    dynamodbstreamtest.Change
	runs                      []*changeRun
	owner                     string // of the claim in the store, empty: none
	lease                     time.Time
	completed, unsure         bool // in the store; unsure: a completion was refused, or its reply lost
	sunkIn                    map[*tableEvent]bool
	delivered, done, abandons bool // by the poller
}

// changeRun is one start of the handler.
type changeRun struct {
	in           *tableEvent
	owner        string
	lease, ended time.Time
	succeeded    bool
}

// tableEvent is one invocation.
type tableEvent struct{ died bool }

type tableEventKey struct{}

type item struct {
	ID      string `dynamodbav:"id"`
	Version int    `dynamodbav:"version"`
}

// Whatever fails, crashes, hangs and comes again: no change of an item starts before the earlier ones are finished for
// good, nothing starts again whose completion is stored, no checkpoint passes a change that is not done, and nothing
// is lost.
func TestPropertyOfATable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawTableScenario(rt)
		for range 3 {
			l := &tableLedger{
				s: s, known: map[string]*changeEntry{}, versions: map[string]int{}, parents: map[string][]string{},
				current: map[string]*tableEvent{},
			}
			synctest.Test(t, func(t *testing.T) { l.run(t) })
			if len(l.faults) > 0 {
				rt.Fatalf("%s\n%+v", strings.Join(l.faults, "\n"), *s)
			}
			s.seed++
		}
	})
}

func (l *tableLedger) fault(format string, args ...any) {
	l.faults = append(l.faults, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (l *tableLedger) run(t *testing.T) {
	s := l.s
	crashes, left := lambdatest.Randomly(s.seed, s.crashes), atomic.Int32{}
	left.Store(8)
	var err error
	l.table, err = dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id"}, func(o *dynamodbstreamtest.Options) {
		o.Shards, o.BatchSize, o.MaximumRetryAttempts, o.ParallelizationFactor = s.shards, s.batchSize, s.retries, s.factor
		o.BisectOnError, o.Seed, o.DuplicateProbability, o.FunctionTimeout = s.bisect, s.seed, s.duplicates, 10*time.Second
		o.Crash = func(p lambdatest.Point) bool { return crashes(p) && left.Add(-1) >= 0 }
		o.StoreFault, o.Observe = l.storeFault(), l.observe
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := dynamodbstream.NewHandler(l.handle, func(o *dynamodbstream.Options) {
		o.Concurrency, o.Serial, o.Logger = s.concurrency, s.serial, discard()
		if s.sink {
			o.DeadLetter = l.sink
		}
		if !s.guarded {
			return
		}
		var store idempotency.Store = tableStore{idempotency.NewMemoryStore(), l}
		if s.bulk {
			store = storetest.Bulk(store)
		}
		o.Idempotency, err = idempotency.New("ledger", l.table.Store(store),
			func(o *idempotency.Options) { o.Lease, o.Logger = s.lease, discard() })
		if err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	for l.writeDue() {
		l.mu.Unlock()
		err := l.table.Drain(t.Context(), l.invoked(h))
		l.mu.Lock()
		if err != nil {
			l.fault("%v", err)
			break
		}
		l.invocations += 3 // so that what is planned for later comes
	}
	l.mu.Unlock()
	time.Sleep(5 * time.Minute) // stragglers wake up
	if err := l.table.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Minute) // and what was parked ends
	l.audit()
}

// writeDue does what is planned to happen after so many invocations, and reports whether there was anything. The caller
// holds mu.
func (l *tableLedger) writeDue() (wrote bool) {
	for ; l.written < len(l.s.writes) && l.s.writes[l.written].after <= l.invocations; l.written++ {
		wrote = true
		if err := l.write(l.s.writes[l.written]); err != nil {
			l.fault("%v", err)
		}
	}
	return wrote
}

func (l *tableLedger) write(w plannedWrite) error {
	key := dynamodbstreamtest.Item{"id": events.NewStringAttribute(w.item)}
	shards := l.table.Shards()
	shard := shards[w.n%len(shards)]
	switch w.does {
	case "put":
		version := len(l.entries) + 1
		c, err := l.table.Put(dynamodbstreamtest.Item{
			"id": key["id"], "version": events.NewNumberAttribute(fmt.Sprint(version)),
		})
		l.note(w.item, version, c)
		return err
	case "delete", "expire":
		if l.versions[w.item] == 0 {
			return nil
		}
		remove := l.table.Delete
		if w.does == "expire" {
			remove = l.table.Expire
		}
		c, err := remove(key)
		l.note(w.item, 0, c)
		return err
	case "rollover":
		successor, err := l.table.Rollover(shard)
		l.parents[successor] = []string{shard}
		return err
	case "split":
		lower, higher, err := l.table.Split(shard)
		l.parents[lower], l.parents[higher] = []string{shard}, []string{shard}
		return err
	case "redeliver":
		for i := range l.entries {
			if e := l.entries[(w.n+i)%len(l.entries)]; e.delivered {
				return l.table.Redeliver(e.change.ShardID, e.change.SequenceNumber)
			}
		}
	}
	return nil
}

func (l *tableLedger) note(item string, version int, c dynamodbstreamtest.Change) {
	e := &changeEntry{
		item: item, version: version, change: c, stored: "ledger#" + l.table.ARN() + "#" + c.EventID,
		sunkIn: map[*tableEvent]bool{},
	}
	l.versions[item] = version
	l.entries = append(l.entries, e)
	l.known[c.EventID], l.known[e.stored], l.known[c.ShardID+c.SequenceNumber] = e, e, e
}

// handle is the handler. Now and then it fails, panics, takes its time or hangs and takes no notice of its context.
func (l *tableLedger) handle(ctx context.Context, c *dynamodbstream.Change[item]) error {
	lambdatest.Checkpoint(ctx, "start "+c.ID())
	run, starts := l.start(ctx, c)
	chance := lambdatest.Seed(l.s.seed).Fraction("step", c.ID(), fmt.Sprint(starts)) / l.s.faults
	succeeded := false
	defer func() { l.end(run, succeeded) }()
	switch {
	case !(chance < 1) || starts > 4:
	case chance < .2:
		return errors.New("on purpose")
	case chance < .3:
		return batch.Permanent(errors.New("on purpose, for good"))
	case chance < .4:
		panic("on purpose")
	case chance < .7:
		time.Sleep(300 * time.Millisecond)
	default:
		time.Sleep(10700 * time.Millisecond)
	}
	lambdatest.Checkpoint(ctx, "effect "+c.ID())
	succeeded = true
	return nil
}

// start notes that the handler starts with a change, and how often it has. It may only do so if everything before the change
// is finished, if the change is not done, and if every earlier success of it is one that could not be remembered.
func (l *tableLedger) start(ctx context.Context, c *dynamodbstream.Change[item]) (run *changeRun, starts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, _ := ctx.Value(tableEventKey{}).(*tableEvent)
	e, now := l.known[c.ID()], time.Now()
	if e == nil || in == nil || c.Keys.ID != e.item || (c.New == nil) != (e.version == 0) || c.New != nil && c.New.Version != e.version {
		l.fault("change %q in %v is of %+v to %+v, want %+v", c.ID(), in, c.Keys, c.New, e)
		return &changeRun{}, 0
	}
	for _, q := range l.entries {
		if q == e || in.died { // in this very moment, by another record's crash
			break
		}
		if l.before(q, e) && !l.finished(q, in) {
			l.fault("version %d of %s starts before version %d", e.version, e.item, q.version)
		}
	}
	run = &changeRun{in: in, lease: e.lease}
	if l.s.guarded {
		info, _ := idempotency.FromContext(ctx)
		run.owner = info.Owner
		if info.Owner == "" || info.Owner != e.owner || !now.Before(e.lease) {
			l.fault("version %d of %s starts without a live claim", e.version, e.item)
		}
		if e.completed {
			l.fault("version %d of %s starts after its completion was stored", e.version, e.item)
		}
		for _, r := range e.runs {
			failed := !r.ended.IsZero() && !r.succeeded
			excused := r.in.died || e.unsure || r.ended.IsZero() || !r.ended.Before(r.lease)
			if !failed && (!excused || !now.After(r.lease.Add(idempotency.DefaultSkew))) {
				l.fault("version %d of %s starts again, without a reason", e.version, e.item)
			}
		}
	}
	e.runs = append(e.runs, run)
	return run, len(e.runs)
}

// before reports whether q, which was written before e, must be finished before e starts.
func (l *tableLedger) before(q, e *changeEntry) bool {
	serial := l.s.serial || !l.s.guarded && l.s.concurrency <= 1
	switch {
	case q.item == e.item:
		return q.change.ShardID == e.change.ShardID || l.descends(e.change.ShardID, q.change.ShardID)
	case !serial:
		return false
	case q.change.ShardID == e.change.ShardID:
		return l.s.factor == 1
	default:
		return l.descends(e.change.ShardID, q.change.ShardID)
	}
}

func (l *tableLedger) descends(shard, from string) bool {
	for _, parent := range l.parents[shard] {
		if parent == from || l.descends(parent, from) {
			return true
		}
	}
	return false
}

func (l *tableLedger) finished(e *changeEntry, in *tableEvent) bool {
	return e.done || e.abandons || e.completed || !l.s.guarded && (e.sunkIn[in] || e.succeeded(in))
}

// succeeded reports whether a run of the change has succeeded in the invocation, or, if that is nil, in any.
func (e *changeEntry) succeeded(in *tableEvent) bool {
	for _, r := range e.runs {
		if r.succeeded && (in == nil || r.in == in) {
			return true
		}
	}
	return false
}

func (l *tableLedger) end(run *changeRun, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.ended, run.succeeded = time.Now(), succeeded
}

func (l *tableLedger) sink(ctx context.Context, r *batch.Record, err error) error {
	lambdatest.Checkpoint(ctx, "sink "+r.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.known[r.ID]
	if e == nil || !batch.IsPermanent(err) {
		l.fault("the sink got %q: %v", r.ID, err)
		return nil
	}
	in, _ := ctx.Value(tableEventKey{}).(*tableEvent)
	e.sunkIn[in] = true
	return nil
}

// invoked returns h with a tableEvent in the context of each invocation.
func (l *tableLedger) invoked(h lambdatest.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		_, first, _ := strings.Cut(string(payload), `"eventID":"`)
		first, _, _ = strings.Cut(first, `"`)
		in := &tableEvent{}
		l.mu.Lock()
		l.current[first] = in
		l.mu.Unlock()
		return h.Invoke(context.WithValue(ctx, tableEventKey{}, in), payload)
	})
}

// observe notes the end of an invocation. What its answer says is done must be done.
func (l *tableLedger) observe(d dynamodbstreamtest.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := d.Records[0].EventID
	in := l.current[first]
	if in == nil {
		in = &tableEvent{} // it crashed before the handler was invoked
	}
	delete(l.current, first)
	in.died = d.Ending != lambdatest.Answered && d.Ending != lambdatest.FunctionError
	if d.Ending == lambdatest.Answered {
		var answer events.DynamoDBEventResponse
		if err := json.Unmarshal(d.Response, &answer); err != nil || len(answer.BatchItemFailures) > 1 || d.Err != nil {
			l.fault("answer is %s (%v), want one with at most one sequence number: %v", d.Response, d.Err, err)
		}
		for _, r := range d.Records {
			if len(answer.BatchItemFailures) > 0 && answer.BatchItemFailures[0].ItemIdentifier == r.Change.SequenceNumber {
				break
			}
			e := l.known[r.EventID]
			done := e.succeeded(in) && (!l.s.guarded || e.unsure)
			if !done && !e.completed && !e.sunkIn[in] {
				l.fault("invocation %d says that version %d of %s is done, which is not", d.Invocation, e.version, e.item)
			}
		}
	}
	for _, number := range d.SequenceNumbers {
		l.known[d.Shard+number].delivered = true
	}
	for _, number := range d.Done {
		l.known[d.Shard+number].done = true
	}
	for _, number := range d.Discarded {
		l.known[d.Shard+number].abandons = true
	}
	l.invocations++
	l.writeDue()
}

// storeFault is the fault of a store call.
func (l *tableLedger) storeFault() func(lambdatest.Point) lambdatest.Fault {
	strikes := lambdatest.Randomly(l.s.seed+1, l.s.storeFaults)
	return func(p lambdatest.Point) (f lambdatest.Fault) {
		if !strikes(p) {
			return f
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		fraction := func(of string) float64 {
			return lambdatest.Seed(l.s.seed).Fraction(of, p.Name, p.Key, time.Now().String())
		}
		switch kind := fraction("fault"); {
		case kind < .3:
			f.Err = errors.New("throttled")
		case kind < .6:
			f.Err, f.ReplyLost = errors.New("reset"), true
		default:
			f.Latency = 6 * time.Second
		}
		if n := len(p.Keys); n > 1 && fraction("part") < .5 {
			f.Part = 1 + int(fraction("part of")*float64(n-1))
		}
		switch p.Name {
		case "Complete":
			l.known[p.Key].unsure = true
		case "CompleteAll":
			for _, key := range p.Keys {
				l.known[key].unsure = true
			}
		}
		return f
	}
}

// audit finds what is lost.
func (l *tableLedger) audit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.table.Histories() {
		if h.Waiting || h.Done.IsZero() && h.Discarded.IsZero() {
			l.fault("change %s of %s is nowhere", h.SequenceNumber, h.Shard)
		}
	}
	for _, e := range l.entries {
		if !e.succeeded(nil) && len(e.sunkIn) == 0 && !e.abandons {
			l.fault("version %d of %s is lost", e.version, e.item)
		}
	}
}

// tableStore tells the ledger of the transitions that were made.
type tableStore struct {
	idempotency.Store
	*tableLedger
}

func (s tableStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.Store.Claim(ctx, r)
	if e := s.known[r.Key]; err == nil && result.Claimed {
		e.owner, e.lease = r.Owner, r.Lease
	}
	return result, err
}

func (s tableStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Renew(ctx, r)
	if err == nil {
		e := s.known[r.Key]
		e.owner, e.lease = r.NewOwner, r.Lease
	}
	return err
}

func (s tableStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Store.Complete(ctx, r); err != nil {
		return err
	}
	e := s.known[r.Key]
	succeeded := false
	for _, run := range e.runs {
		succeeded = succeeded || run.owner == r.Owner && run.succeeded
	}
	if !succeeded && len(e.sunkIn) == 0 {
		s.fault("version %d of %s is completed without a success", e.version, e.item)
	}
	e.owner, e.completed = "", true
	return nil
}
