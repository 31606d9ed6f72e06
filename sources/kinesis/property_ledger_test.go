package kinesis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// ledger knows everything that happens to a stream, and holds it against the rules as it happens. It learns it from the
// handler itself, from the store's transitions and from the poller, and from nothing that the library says.
type ledger struct {
	s      *streamScenario
	stream *kinesistest.Stream

	mu          sync.Mutex
	entries     []*ledgerEntry          // in the order in which they were put
	named       map[string]*ledgerEntry // by name, by ID, and by key as stored
	numbered    map[string][]*ledgerEntry
	parents     map[string][]string     // of a shard
	current     map[string]*ledgerEvent // by the eventID of the first record
	invocations int
	acted       int // how many of the scenario's actions are done
	sunk        int
	unsure      map[string]bool // by key: a completion was refused, or its reply lost
	story       []ledgerLine
	faults      []string
}

// ledgerEntry is one record: of an aggregate, if it is part of one.
type ledgerEntry struct {
	plannedRecord
	name, id, shard, sequence string
	stored                    string // its key in the store
	sub                       int
	lane                      string // what the poller keeps in order above a parallelization factor of 1
	runs                      []*ledgerRun

	// By the store.
	owner     string // of the claim, empty: none
	lease     time.Time
	claims    int
	completed bool // at any time
	expiry    time.Time
	passed    bool // by the watermark

	sunkIn                     map[*ledgerEvent]bool
	delivered, done, discarded bool // by the poller
}

// ledgerRun is one start of the handler.
type ledgerRun struct {
	in             *ledgerEvent
	owner          string
	lease          time.Time
	started, ended time.Time
	succeeded      bool
	completed      bool // the completion was stored
}

// ledgerEvent is one invocation.
type ledgerEvent struct {
	deadline time.Time
	over     time.Time
	died     bool
	running  int
	failed   map[*ledgerEntry]time.Time // when, and not dead-lettered since
	unsure   bool                       // it could not move its watermark
}

func newLedgerEvent() *ledgerEvent { return &ledgerEvent{failed: map[*ledgerEntry]time.Time{}} }

type ledgerEventKey struct{}

func newLedger(s *streamScenario) *ledger {
	return &ledger{
		s: s, named: map[string]*ledgerEntry{}, numbered: map[string][]*ledgerEntry{}, parents: map[string][]string{},
		current: map[string]*ledgerEvent{}, unsure: map[string]bool{},
	}
}

// ledgerLine is a line of the story that a failed test tells. It is formatted then, and not a million times before.
type ledgerLine struct {
	at     time.Time
	format string
	args   []any
}

func (n ledgerLine) String() string {
	return n.at.Format("04:05.000 ") + fmt.Sprintf(n.format, n.args...)
}

// tell adds to the story. The arguments must not change any more. The caller holds mu.
func (l *ledger) tell(format string, args ...any) {
	l.story = append(l.story, ledgerLine{time.Now(), format, args})
}

// report returns what is wrong and how it came to that, or "".
func (l *ledger) report() string {
	if len(l.faults) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%+v", strings.Join(l.faults, "\n"), *l.s)
	for _, n := range l.story {
		fmt.Fprintf(&b, "\n%v", n)
	}
	return b.String()
}

func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
	l.tell("FAULT: "+format, args...)
}

// put notes the records that were put together.
func (l *ledger) put(shard, sequence string, records []plannedRecord, names []string, kitLane string) {
	for i, r := range records {
		e := &ledgerEntry{
			plannedRecord: r, name: names[i], shard: shard, sequence: sequence, sub: i, lane: kitLane,
			sunkIn: map[*ledgerEvent]bool{},
		}
		e.id = shard + ":" + sequence
		key := "ledger#" + l.stream.ARN() + "#" + e.id
		if len(records) > 1 {
			e.id += fmt.Sprint("#", i)
			key += fmt.Sprint("#", i)
		}
		l.entries = append(l.entries, e)
		e.stored = key
		l.named[e.name], l.named[e.id], l.named[key] = e, e, e
		l.numbered[shard+":"+sequence] = append(l.numbered[shard+":"+sequence], e)
		l.tell("%s is put: key %q, %s", e.name, e.key, e.id)
	}
}

// before reports whether q must be finished before e starts. The entries are in the order put.
func (l *ledger) before(q, e *ledgerEntry) bool {
	switch {
	case q == e || !l.s.strict() && q.key != e.key:
		return false
	case q.shard != e.shard:
		return l.descends(e.shard, q.shard)
	default:
		return l.s.factor == 1 || q.lane == e.lane
	}
}

func (l *ledger) descends(shard, from string) bool {
	for _, parent := range l.parents[shard] {
		if parent == from || l.descends(parent, from) {
			return true
		}
	}
	return false
}

// finished reports whether the record is done for good, so that the next one of its key may start in the invocation.
func (l *ledger) finished(e *ledgerEntry, in *ledgerEvent) bool {
	if e.done || e.discarded || e.completed || e.passed {
		return true
	}
	if l.s.by == byGuard {
		return e.broken && e.sunkIn[in] // it has no claim that could be completed
	}
	return e.sunkIn[in] || e.succeededIn(in)
}

func (e *ledgerEntry) succeededIn(in *ledgerEvent) bool {
	for _, r := range e.runs {
		if r.succeeded && r.in == in {
			return true
		}
	}
	return false
}

func (e *ledgerEntry) succeeded() bool {
	for _, r := range e.runs {
		if r.succeeded {
			return true
		}
	}
	return false
}

// handle is the handler.
func (l *ledger) handle(ctx context.Context, r *kinesis.Record[ledgerData]) error {
	lambdatest.Checkpoint(ctx, "start "+r.Data.Name)
	run, step := l.start(ctx, r)
	outcome := errors.New("panicked")
	defer func() {
		if outcome != nil { // a success is noted below, where the invocation is known to live
			l.end(run, r.Data.Name, false)
		}
	}()
	if err := step.wait(ctx); err != nil {
		outcome = err
		return err
	}
	err := step.end()
	outcome = err
	if err == nil {
		outcome = errors.New("crashed")
		lambdatest.Checkpoint(ctx, "effect "+r.Data.Name)
		outcome = nil
		l.end(run, r.Data.Name, true)
	}
	return err
}

type ledgerData struct{ Name string }

// start notes that the handler starts, which it may only do if everything before the record is finished, if the record is
// not done, and if every earlier success of it is one that could not be remembered.
func (l *ledger) start(ctx context.Context, r *kinesis.Record[ledgerData]) (*ledgerRun, plannedStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, _ := ctx.Value(ledgerEventKey{}).(*ledgerEvent)
	e, now := l.named[r.Data.Name], time.Now()
	if in == nil || e == nil || e.id != r.ID() {
		l.fault("a record with the data %q and the ID %q was run in %v, want one that was put", r.Data.Name, r.ID(), in)
		return &ledgerRun{in: newLedgerEvent()}, plannedStep{}
	}
	step := e.step(len(e.runs))
	run := &ledgerRun{in: in, started: now, lease: e.lease}
	l.tell("%s starts: %+v", e.name, step)
	if in.died {
		// Another record of the invocation has crashed it in this very moment.
		e.runs = append(e.runs, run)
		return run, step
	}
	if l.s.strict() && in.running > 0 {
		l.fault("%s starts while another runs, and the shard is serial", e.name)
	}
	for q, at := range in.failed {
		if l.s.strict() || l.s.stops() && now.After(at) {
			l.fault("%s starts after %s has failed", e.name, q.name)
		}
	}
	for _, q := range l.entries {
		if q == e {
			break
		}
		if l.before(q, e) && !l.finished(q, in) {
			l.fault("%s starts before %s is finished", e.name, q.name)
		}
	}
	if l.s.by == byGuard {
		info, _ := idempotency.FromContext(ctx)
		run.owner = info.Owner
		if e.owner == "" || e.owner != info.Owner || !now.Before(e.lease) {
			l.fault("%s starts without a live claim: owner %q until %v, in the store %q", e.name, info.Owner, e.lease, e.owner)
		}
		if e.completed && !l.expired(e, now) {
			l.fault("%s starts after its completion was stored", e.name)
		}
	}
	for _, earlier := range e.runs {
		if why := l.unexplained(e, earlier, now); why != "" {
			l.fault("%s starts again: %s", e.name, why)
		}
	}
	in.running++
	e.runs = append(e.runs, run)
	return run, step
}

// expired is as in the contract of idempotency.Store.
func (l *ledger) expired(e *ledgerEntry, now time.Time) bool { return e.expiry.Unix() < now.Unix() }

// unexplained says why the run must not be repeated, or returns "".
func (l *ledger) unexplained(e *ledgerEntry, r *ledgerRun, now time.Time) string {
	failed := !r.ended.IsZero() && !r.succeeded
	switch {
	case l.s.by == byNothing || failed || r.completed:
		return "" // it is another rule that says when completed records may
	case l.s.by == byWatermark && r.ended.IsZero() && !now.After(r.in.deadline.Add(l.skew())):
		return "an earlier start has not ended, and the time of its invocation is not over"
	case l.s.by == byWatermark:
		if r.in.died || r.in.unsure || r.ended.IsZero() || !r.ended.Before(r.in.over) {
			return ""
		}
		return "it had succeeded in an invocation that lived and moved the watermark"
	case !now.After(r.lease.Add(l.skew())):
		return "the lease of an earlier start is not over"
	case r.in.died || l.unsure[e.stored] || r.ended.IsZero() || !r.ended.Before(r.lease):
		return ""
	}
	return "it had succeeded, and nothing kept the completion from being stored"
}

func (l *ledger) skew() time.Duration {
	if l.s.skew < 0 {
		return 0
	}
	return idempotency.DefaultSkew
}

func (l *ledger) end(run *ledgerRun, name string, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.ended, run.succeeded = time.Now(), succeeded
	run.in.running--
	if !succeeded {
		run.in.failed[l.named[name]] = run.ended
	}
	l.tell("%s ends, success: %v", name, succeeded)
}

// sink is the dead-letter sink. It must get what has failed for good or often enough, and nothing else.
func (l *ledger) sink(ctx context.Context, r *batch.Record, err error) error {
	lambdatest.Checkpoint(ctx, "sink "+r.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.named[r.ID]
	in, _ := ctx.Value(ledgerEventKey{}).(*ledgerEvent)
	switch {
	case e == nil || in == nil:
		l.fault("the sink got %q in %v, want a record that was put", r.ID, in)
		return nil
	case !batch.IsPermanent(err) && (l.s.maxAttempts == 0 || e.claims < l.s.maxAttempts):
		l.fault("the sink got %s after %d claims: %v", e.name, e.claims, err)
	}
	if l.sunk++; l.sunk <= l.s.sinkFails {
		return errors.New("the sink is full")
	}
	l.tell("%s is in the sink", e.name)
	e.sunkIn[in] = true
	delete(in.failed, e)
	return nil
}

// invoked returns h with a ledgerEvent in the context of each invocation.
func (l *ledger) invoked(h lambdatest.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		_, first, ok := strings.Cut(string(payload), `"eventID":"`)
		if !ok {
			_, first, _ = strings.Cut(string(payload), `"shardId":"`)
		}
		first, _, _ = strings.Cut(first, `"`)
		in := newLedgerEvent()
		in.deadline, _ = ctx.Deadline()
		l.mu.Lock()
		l.current[first] = in
		l.mu.Unlock()
		return h.Invoke(context.WithValue(ctx, ledgerEventKey{}, in), payload)
	})
}

// observe notes the end of an invocation. What its answer says is done must be done.
func (l *ledger) observe(d kinesistest.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell("%d %s: %s %v, answer lost: %v, discarded %d", d.Invocation, d.Ending, d.Response, d.Err, d.AnswerLost, len(d.Discarded))
	in := l.over(d)
	each := func(numbers []string, fn func(*ledgerEntry)) {
		for _, number := range numbers {
			for _, e := range l.numbered[d.Shard+":"+number] {
				fn(e)
			}
		}
	}
	each(d.SequenceNumbers, func(e *ledgerEntry) { e.delivered = true })
	if d.Ending == lambdatest.Answered {
		each(d.SequenceNumbers[:l.checkpoint(d)], func(e *ledgerEntry) {
			if !l.mayBeDone(e, in) {
				l.fault("invocation %d says that %s is done, which is not", d.Invocation, e.name)
			}
		})
	}
	each(d.Done, func(e *ledgerEntry) { e.done = true })
	each(d.Discarded, func(e *ledgerEntry) { e.discarded = true })
	l.invocations++
	l.actDue()
}

// over notes that an invocation has ended. The caller holds mu.
func (l *ledger) over(d kinesistest.Delivery) *ledgerEvent {
	first := ""
	if len(d.SequenceNumbers) > 0 {
		first = d.Shard + ":" + d.SequenceNumbers[0]
	} else {
		first = d.Shard // the end of a window
	}
	in := l.current[first]
	if in == nil {
		in = newLedgerEvent() // it crashed before the handler was invoked
	}
	delete(l.current, first)
	in.over, in.died = d.Ended, d.Ending != lambdatest.Answered && d.Ending != lambdatest.FunctionError
	return in
}

// checkpoint returns how many of the batch's records are before the first that the answer reports.
func (l *ledger) checkpoint(d kinesistest.Delivery) int {
	var answer struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(d.Response, &answer); err != nil || len(answer.BatchItemFailures) > 1 || d.Err != nil {
		l.fault("answer is %s (%v), want one with at most one sequence number: %v", d.Response, d.Err, err)
		return 0
	}
	if len(answer.BatchItemFailures) == 0 {
		return len(d.SequenceNumbers)
	}
	for i, number := range d.SequenceNumbers {
		if number == answer.BatchItemFailures[0].ItemIdentifier {
			return i
		}
	}
	l.fault("answer names %s, which is not in the batch", d.Response)
	return 0
}

// mayBeDone reports whether an answer of the invocation may say that the record is done.
func (l *ledger) mayBeDone(e *ledgerEntry, in *ledgerEvent) bool {
	switch l.s.by {
	case byGuard:
		return e.completed || e.sunkIn[in] || l.unsure[e.stored] && !l.s.failsUnsure && e.succeededIn(in)
	case byWatermark:
		return e.passed || in.unsure && (e.sunkIn[in] || e.succeededIn(in))
	default:
		return e.sunkIn[in] || e.succeededIn(in)
	}
}
