package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// queueScenario is a queue, and what goes wrong with the handler of its messages. What is random in a run comes from the
// seed.
type queueScenario struct {
	isFIFO, bulk                             bool
	groups                                   []string // of the messages
	seed                                     uint64
	batchSize, pollers, concurrency          int
	duplicates, crashes, storeFaults, faults float64
	lease                                    time.Duration
}

func drawQueueScenario(t *rapid.T) *queueScenario {
	s := &queueScenario{
		isFIFO:      rapid.Bool().Draw(t, "FIFO"),
		bulk:        rapid.Bool().Draw(t, "bulk"),
		seed:        rapid.Uint64Range(1, 1<<32).Draw(t, "seed"),
		batchSize:   rapid.SampledFrom([]int{10, 3, 1}).Draw(t, "batch size"),
		pollers:     rapid.IntRange(1, 3).Draw(t, "pollers"),
		concurrency: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "concurrency"),
		crashes:     rapid.SampledFrom([]float64{0, .02, .05}).Draw(t, "crashes"),
		storeFaults: rapid.SampledFrom([]float64{0, .05}).Draw(t, "store faults"),
		faults:      rapid.SampledFrom([]float64{0, .1, .4}).Draw(t, "faults of the handler"),
		lease:       rapid.SampledFrom([]time.Duration{0, time.Second, 45 * time.Second}).Draw(t, "lease"),
	}
	if !s.isFIFO {
		s.batchSize = rapid.SampledFrom([]int{s.batchSize, 100}).Draw(t, "batch size of a standard queue")
		s.duplicates = rapid.SampledFrom([]float64{0, .2}).Draw(t, "duplicates")
	}
	for range rapid.IntRange(1, 80).Draw(t, "messages") {
		s.groups = append(s.groups, rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "group"))
	}
	return s
}

// queueLedger knows everything that happens to a queue's messages, and holds it against the rules as it happens. It learns
// it from the handler itself, from the store's transitions and from the queue.
type queueLedger struct {
	idempotency.Store
	s     *queueScenario
	queue *sqstest.Queue

	mu      sync.Mutex
	entries []*messageEntry // in the order sent
	known   map[string]*messageEntry
	current map[string]*queueEvent // by the receipt handle of the first message
	faults  []string
}

// messageEntry is one message.
type messageEntry struct {
	id, group         string
	runs              []*messageRun
	owner             string // of the claim in the store, empty: none
	lease             time.Time
	completed, unsure bool // in the store; unsure: a completion was refused, or its reply lost
	deleted           bool
}

// messageRun is one start of the handler.
type messageRun struct {
	in           *queueEvent
	owner        string
	lease, ended time.Time
	succeeded    bool
}

// queueEvent is one invocation.
type queueEvent struct{ died bool }

type queueEventKey struct{}

// Whatever fails, crashes, hangs and comes twice: no message of a FIFO group starts before the earlier ones are finished for
// good, nothing starts again whose completion is stored, nothing is deleted that is not done, and nothing is lost.
func TestPropertyOfAQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawQueueScenario(rt)
		for range 2 {
			l := &queueLedger{
				Store: idempotency.NewMemoryStore(), s: s, known: map[string]*messageEntry{}, current: map[string]*queueEvent{},
			}
			synctest.Test(t, func(t *testing.T) { l.run(t) })
			if len(l.faults) > 0 {
				rt.Fatalf("%s\n%+v", strings.Join(l.faults, "\n"), *s)
			}
			s.seed++
		}
	})
}

func (l *queueLedger) fault(format string, args ...any) {
	l.faults = append(l.faults, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (l *queueLedger) run(t *testing.T) {
	s := l.s
	name := "orders"
	if s.isFIFO {
		name = "orders.fifo"
	}
	crashes, left := lambdatest.Randomly(s.seed, s.crashes), atomic.Int32{}
	left.Store(8)
	var err error
	l.queue, err = sqstest.NewQueue(name, func(o *sqstest.Options) {
		o.BatchSize, o.Concurrency, o.Seed, o.DuplicateProbability = s.batchSize, s.pollers, s.seed, s.duplicates
		if s.batchSize > 10 {
			o.BatchingWindow = time.Second
		}
		o.FunctionTimeout = 10 * time.Second
		o.Crash = func(p lambdatest.Point) bool { return crashes(p) && left.Add(-1) >= 0 }
		o.StoreFault, o.Observe = l.storeFault(), l.observe
	})
	if err != nil {
		t.Fatal(err)
	}
	var store idempotency.Store = l
	if s.bulk {
		store = storetest.Bulk(store)
	}
	guard, err := idempotency.New("orders", l.queue.Store(store),
		func(o *idempotency.Options) { o.Lease, o.Logger = s.lease, discard() })
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, l.handle, concurrency(s.concurrency), func(o *sqs.Options) { o.Idempotency = guard })
	for i, group := range s.groups {
		m := sqstest.Message{Body: fmt.Sprintf(`"m%d"`, i)}
		if s.isFIFO {
			m.GroupID, m.DeduplicationID = group, fmt.Sprint(i)
		}
		id, err := l.queue.Send(m)
		if err != nil {
			t.Fatal(err)
		}
		e := &messageEntry{id: id, group: m.GroupID}
		l.entries = append(l.entries, e)
		l.known[id], l.known["orders#"+id] = e, e
	}
	if err := l.queue.Drain(t.Context(), l.invoked(h)); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Minute) // stragglers wake up
	if err := l.queue.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Minute) // and what was parked ends
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if !e.deleted || !e.succeeded() {
			l.fault("%s is lost: deleted %t, %d runs", e.id, e.deleted, len(e.runs))
		}
	}
}

// handle is the handler. Now and then it fails, panics, takes its time or hangs and takes no notice of its context.
func (l *queueLedger) handle(ctx context.Context, m *sqs.Message[string]) error {
	lambdatest.Checkpoint(ctx, "start "+m.ID())
	run, starts := l.start(ctx, m)
	chance := lambdatest.Seed(l.s.seed).Fraction("step", m.ID(), fmt.Sprint(starts)) / l.s.faults
	succeeded := false
	defer func() { l.end(run, succeeded) }()
	switch {
	case !(chance < 1) || starts > 4:
	case chance < .3:
		return errors.New("on purpose")
	case chance < .4:
		panic("on purpose")
	case chance < .7:
		time.Sleep(300 * time.Millisecond)
	default:
		time.Sleep(10700 * time.Millisecond)
	}
	lambdatest.Checkpoint(ctx, "effect "+m.ID())
	succeeded = true
	return nil
}

// start notes that the handler starts with a message, and how often it has. It may only do so if everything before it in its
// group is finished, if it is not done, and if every earlier success of it is one that could not be remembered.
func (l *queueLedger) start(ctx context.Context, m *sqs.Message[string]) (run *messageRun, starts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, _ := ctx.Value(queueEventKey{}).(*queueEvent)
	e, now := l.known[m.ID()], time.Now()
	for _, q := range l.entries {
		if q == e || in.died { // in this very moment, by another record's crash
			break
		}
		if l.s.isFIFO && q.group == e.group && !q.completed && !q.deleted {
			l.fault("%s starts before %s of its group is finished", e.id, q.id)
		}
	}
	info, _ := idempotency.FromContext(ctx)
	if info.Owner == "" || info.Owner != e.owner || !now.Before(e.lease) {
		l.fault("%s starts without a live claim", e.id)
	}
	if e.completed {
		l.fault("%s starts after its completion was stored", e.id)
	}
	for _, r := range e.runs {
		failed := !r.ended.IsZero() && !r.succeeded
		excused := r.in.died || e.unsure || r.ended.IsZero() || !r.ended.Before(r.lease)
		if !failed && (!excused || !now.After(r.lease.Add(idempotency.DefaultSkew))) {
			l.fault("%s starts again, without a reason", e.id)
		}
	}
	run = &messageRun{in: in, owner: info.Owner, lease: e.lease}
	e.runs = append(e.runs, run)
	return run, len(e.runs)
}

func (l *queueLedger) end(run *messageRun, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.ended, run.succeeded = time.Now(), succeeded
}

func (e *messageEntry) succeeded() bool {
	for _, r := range e.runs {
		if r.succeeded {
			return true
		}
	}
	return false
}

// invoked returns h with a queueEvent in the context of each invocation.
func (l *queueLedger) invoked(h lambdatest.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		_, first, _ := strings.Cut(string(payload), `"receiptHandle":"`)
		first, _, _ = strings.Cut(first, `"`)
		in := &queueEvent{}
		l.mu.Lock()
		l.current[first] = in
		l.mu.Unlock()
		return h.Invoke(context.WithValue(ctx, queueEventKey{}, in), payload)
	})
}

// observe notes the end of an invocation. What is deleted must be done.
func (l *queueLedger) observe(d sqstest.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in := l.current[d.Messages[0].ReceiptHandle]; in != nil { // or it crashed before the handler was invoked
		in.died = d.Ending != lambdatest.Answered && d.Ending != lambdatest.FunctionError
	}
	if d.Err != nil {
		l.fault("invocation %d failed: %v", d.Invocation, d.Err)
	}
	for _, id := range d.Deleted {
		e := l.known[id]
		if !e.completed && !(e.unsure && e.succeeded()) {
			l.fault("invocation %d says that %s is done, which is not", d.Invocation, id)
		}
		e.deleted = true
	}
}

// storeFault is the fault of a store call.
func (l *queueLedger) storeFault() func(lambdatest.Point) lambdatest.Fault {
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
		if strings.HasPrefix(p.Name, "Complete") {
			for _, key := range append(p.Keys, p.Key) {
				l.known[key].unsure = true
			}
		}
		return f
	}
}

// Claim tells the ledger of a claim that was made, as the methods below do of other transitions.
func (l *queueLedger) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	result, err := l.Store.Claim(ctx, r)
	if e := l.known[r.Key]; err == nil && result.Claimed {
		e.owner, e.lease = r.Owner, r.Lease
	}
	return result, err
}

// Renew is that of idempotency.Store.
func (l *queueLedger) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.Store.Renew(ctx, r)
	if e := l.known[r.Key]; err == nil {
		e.owner, e.lease = r.NewOwner, r.Lease
	}
	return err
}

// Complete is that of idempotency.Store.
func (l *queueLedger) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Store.Complete(ctx, r); err != nil {
		return err
	}
	e := l.known[r.Key]
	succeeded := false
	for _, run := range e.runs {
		succeeded = succeeded || run.owner == r.Owner && run.succeeded
	}
	if !succeeded {
		l.fault("%s is completed without a success", e.id)
	}
	e.owner, e.completed = "", true
	return nil
}
