package kinesis_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// windowTally is the state of a window: how often each record is in it, and their number by partition key.
type windowTally struct{ Seen, Sums map[string]int }

// windowLedger holds what becomes of tumbling windows against the rules.
type windowLedger struct {
	*ledger
	length   time.Duration
	finishes []plannedStep // what the finishing does the first times
	finished int
	effects  []*windowEffect
	folds    map[string]int
}

// windowEffect is what the finishing of a window was for.
type windowEffect struct {
	kinesis.Window[windowTally]
	in               *ledgerEvent
	began, at, lease time.Time
}

// Whatever fails, crashes and comes again: the state of an answer has the records before its checkpoint and no others, each
// once, and a window is finished once, with the records that arrived in it.
func TestPropertyOfWindows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStreamScenario(rt, byNothing)
		w := &windowLedger{length: oneOf[time.Duration](rt, "window", 10, 60) * time.Second}
		for i := range s.actions {
			for k := range s.actions[i].puts {
				s.actions[i].puts[k].arrives = oneOf[time.Duration](rt, "arrives after", 0, 0, 1, 5, 30, 150) * time.Second
			}
		}
		for range oneOf(rt, "finishes", 0, 0, 1, 2) {
			w.finishes = append(w.finishes, plannedStep{
				takes: s.drawTime(rt), ignores: rapid.Bool().Draw(rt, "ignores context"), ends: oneOf(rt, "ends", stepSucceeds, stepFails, stepPanics),
			})
		}
		w.ledger, w.folds = newLedger(s), map[string]int{}
		synctest.Test(t, func(t *testing.T) { w.run(t) })
		if report := w.report(); report != "" {
			rt.Fatal(report)
		}
	})
}

func (w *windowLedger) run(t *testing.T) {
	s := w.s
	var err error
	w.stream, err = kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
		o.Shards, o.BatchSize, o.MaximumRetryAttempts, o.TumblingWindow = s.shards, s.batchSize, s.retries, w.length
		o.FunctionTimeout, o.BisectOnError, o.ResetRetriesOnProgress = s.functionTimeout, s.bisect, s.reset
		o.Seed, o.DuplicateProbability, o.Crash, o.StoreFault = s.seed, s.duplicates, s.crash(), w.storeFault(s)
		o.Observe = w.observe
	})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New("ledger", w.stream.Store(idempotency.NewMemoryStore()), func(o *idempotency.Options) {
		o.Logger = discard()
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := kinesis.NewWindowHandler(w.fold, w.finish, func(o *kinesis.Options) {
		o.Idempotency, o.Logger, o.Timeout, o.ErrorOn = guard, discard(), s.timeout, s.errorOn
		if s.sink {
			o.DeadLetter = w.sink
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.actions {
		if a.does == "redeliver" {
			continue // a stream with windows does not
		}
		for _, r := range a.puts {
			time.Sleep(r.arrives)
		}
		w.mu.Lock()
		if err := w.act(a); err != nil {
			t.Fatal(err)
		}
		w.mu.Unlock()
	}
	if err := w.stream.Drain(t.Context(), w.invoked(h)); err != nil {
		w.mu.Lock()
		w.fault("%v", err)
		w.mu.Unlock()
	}
	time.Sleep(5 * time.Minute) // stragglers wake up
	if err := w.stream.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Minute) // and what was parked ends
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit()
}

// fold works on the state that it is given, before it fails or succeeds.
func (w *windowLedger) fold(ctx context.Context, state windowTally, r *kinesis.Record[ledgerData]) (windowTally, error) {
	lambdatest.Checkpoint(ctx, "fold "+r.Data.Name)
	w.mu.Lock()
	step := w.named[r.Data.Name].step(w.folds[r.Data.Name])
	w.folds[r.Data.Name]++
	w.tell("%s is folded: %+v", r.Data.Name, step)
	w.mu.Unlock()
	if state.Seen == nil {
		state = windowTally{Seen: map[string]int{}, Sums: map[string]int{}}
	}
	state.Seen[r.Data.Name]++
	err := step.wait(ctx)
	if err == nil {
		err = step.end()
	}
	state.Sums[r.PartitionKey()]++
	return state, err
}

func (w *windowLedger) finish(ctx context.Context, window *kinesis.Window[windowTally]) error {
	in, _ := ctx.Value(ledgerEventKey{}).(*ledgerEvent)
	info, claimed := idempotency.FromContext(ctx)
	lambdatest.Checkpoint(ctx, "finish")
	w.mu.Lock()
	if !claimed {
		w.fault("window %v of %s is finished without a claim", window.Start, window.ShardID)
	}
	step, began := plannedStep{}, time.Now()
	if w.finished < len(w.finishes) {
		step = w.finishes[w.finished]
	}
	w.finished++
	w.mu.Unlock()
	if err := step.wait(ctx); err != nil {
		return err
	}
	if err := step.end(); err != nil {
		return err
	}
	lambdatest.Checkpoint(ctx, "finished")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell("window %v of %s is finished: %v", window.Start, window.ShardID, window.State.Seen)
	late := !time.Now().Before(info.Lease) // a straggler, which another may have overtaken
	for _, e := range w.effects {
		again := e.ShardID == window.ShardID && e.Start.Equal(window.Start)
		if again && !late && !e.in.died && !w.unsureAbout(e) && e.at.Before(e.lease) {
			w.fault("window %v of %s is finished again, without a reason", window.Start, window.ShardID)
		}
	}
	w.effects = append(w.effects, &windowEffect{*window, in, began, time.Now(), info.Lease})
	return nil
}

// unsureAbout reports whether the store may not have taken the completion of a window.
func (w *windowLedger) unsureAbout(e *windowEffect) bool {
	for key := range w.unsure {
		if strings.Contains(key, e.ShardID) && strings.Contains(key, e.Start.UTC().Format(time.RFC3339)) {
			return true
		}
	}
	return false
}

// sink is the ledger's, for records. Windows do not fail for good.
func (w *windowLedger) sink(ctx context.Context, r *batch.Record, err error) error {
	if _, ok := r.Value.(*kinesis.Window[windowTally]); ok {
		return errors.New("the sink takes no windows")
	}
	return w.ledger.sink(ctx, r, err)
}

// observe holds the state of an answer against the one that the invocation was given, and the checkpoint.
func (w *windowLedger) observe(d kinesistest.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell("%d %s: %s %v, answer lost: %v, discarded %d, window %+v", d.Invocation, d.Ending, d.Response, d.Err, d.AnswerLost,
		len(d.Discarded), *d.Window)
	in := w.over(d)
	if d.Ending != lambdatest.Answered {
		return
	}
	var before windowTally
	var after struct{ State windowTally }
	if err := errors.Join(json.Unmarshal([]byte(d.Window.State), &before), json.Unmarshal(d.Response, &after)); err != nil {
		w.fault("state: %v", err)
	}
	want := map[string]int{}
	maps.Copy(want, before.Seen)
	for _, number := range d.SequenceNumbers[:w.checkpoint(d)] {
		for _, e := range w.numbered[d.Shard+":"+number] {
			if !e.sunkIn[in] {
				want[e.name]++
			}
		}
	}
	if after.State.Seen == nil {
		after.State.Seen = map[string]int{}
	}
	if diff := cmp.Diff(want, after.State.Seen); diff != "" {
		w.fault("state of invocation %d (-want +got):\n%s", d.Invocation, diff)
	}
	w.checkSums(&after.State)
}

func (w *windowLedger) checkSums(state *windowTally) {
	want := map[string]int{}
	for name, n := range state.Seen {
		want[w.named[name].key] += n
	}
	if len(want)+len(state.Sums) > 0 && !maps.Equal(want, state.Sums) {
		w.fault("sums are %v, want %v", state.Sums, want)
	}
}

// audit holds what windows were finished with against the records that arrived in them. The caller holds mu.
func (w *windowLedger) audit() {
	for _, h := range w.stream.Histories() {
		if h.Waiting || h.Done.IsZero() && h.Discarded.IsZero() {
			w.fault("record %s of %s is nowhere", h.SequenceNumber, h.Shard)
		}
		for _, e := range w.numbered[h.Shard+":"+h.SequenceNumber] {
			windows := 0
			for _, f := range w.effects {
				inside := f.ShardID == h.Shard && !h.Put.Before(f.Start) && h.Put.Before(f.End)
				seen := f.State.Seen[e.name]
				switch {
				case !inside && seen > 0 || seen > 1:
					w.fault("window %v of %s has %s %d times", f.Start, f.ShardID, e.name, seen)
				case inside && seen == 0 && h.Discarded.IsZero() && len(e.sunkIn) == 0:
					w.fault("window %v of %s is without %s", f.Start, f.ShardID, e.name)
				case seen == 1 && !h.Discarded.IsZero() && h.Discarded.Before(f.began):
					w.fault("window %v of %s has %s, which was discarded before", f.Start, f.ShardID, e.name)
				}
				if inside {
					windows++
				}
			}
			if windows == 0 && !w.gaveUp(&h) {
				w.fault("%s is in no window that was finished", e.name)
			}
		}
	}
	for _, f := range w.effects {
		w.checkSums(&f.State)
	}
}

// gaveUp reports whether the poller gave up the end of the record's window.
func (w *windowLedger) gaveUp(h *kinesistest.History) bool {
	for _, d := range w.stream.Discarded() {
		if d.Shard == h.Shard && d.Count == 0 && !h.Put.Before(d.Window.Start) && h.Put.Before(d.Window.End) {
			return true
		}
	}
	return false
}
