package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

var everyOutcome = []batch.Outcome{
	batch.Succeeded, batch.Replayed, batch.DeadLettered, batch.Ignored, batch.Failed, batch.InProgress, batch.Skipped, batch.Abandoned,
}

func TestOutcome(t *testing.T) {
	for i, want := range []struct {
		name string
		done bool
	}{
		{"succeeded", true}, {"replayed", true}, {"dead-lettered", true}, {"ignored", true},
		{"failed", false}, {"in progress", false}, {"skipped", false}, {"abandoned", false},
	} {
		if o := everyOutcome[i]; o.String() != want.name || o.Done() != want.done {
			t.Errorf("outcome %d is %q, done %v, want %q, %v", o, o, o.Done(), want.name, want.done)
		}
	}
	for o, want := range map[batch.Outcome]string{0: "pending", 9: "unknown outcome", 255: "unknown outcome"} {
		if got := o.String(); got != want || o.Done() {
			t.Errorf("outcome %d is %q, done %v, want %q, false", uint8(o), got, o.Done(), want)
		}
	}
}

// reportOf makes a report with these outcomes, in a batch that takes a second.
func reportOf(t *testing.T, settled ...batch.Settlement) (report *batch.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		report = runStages(t, t.Context(), numbered(len(settled)), &stages{
			settle: func(_ context.Context, i int, _ batch.Settlement) batch.Settlement {
				if i == 0 {
					time.Sleep(time.Second + 1234567*time.Nanosecond)
				}
				return settled[i]
			},
		})
	})
	return report
}

func TestReport(t *testing.T) {
	ok, failed := batch.Settlement{Outcome: batch.Succeeded}, batch.Settlement{Outcome: batch.Failed, Err: errBoom}
	type errs struct{ Nothing, Total, Any string }
	var all []batch.Settlement
	for _, o := range everyOutcome {
		all = append(all, batch.Settlement{Outcome: o, Err: errors.New(o.String())})
	}
	for _, test := range []struct {
		name    string
		settled []batch.Settlement
		want    string
		failed  int
		errs    errs
	}{
		{"nothing", nil, "0 records in 0s", 0, errs{}},
		{"one", []batch.Settlement{ok}, "1 record in 1.001235s: 1 succeeded", 0, errs{}},
		{"one of two", []batch.Settlement{ok, failed}, "2 records in 1.001235s: 1 succeeded, 1 failed", 1,
			errs{Any: "batch: 1 of 2 records failed, the first (r1): boom"}},
		{"all", []batch.Settlement{failed, {Outcome: batch.Skipped, Err: batch.ErrOrder}}, "2 records in 1.001235s: 1 failed, 1 skipped", 2,
			errs{Any: "batch: 2 of 2 records failed, the first (r0): boom", Total: "batch: 2 of 2 records failed, the first (r0): boom"}},
		{"unrecorded", []batch.Settlement{{Outcome: batch.Succeeded, Unrecorded: true}}, "1 record in 1.001235s: 1 succeeded (1 unrecorded)", 0, errs{}},
		{"of each", all, "8 records in 1.001235s: 1 succeeded, 1 replayed, 1 dead-lettered, 1 ignored, 1 failed, 1 in progress, 1 skipped, 1 abandoned", 4,
			errs{Any: "batch: 4 of 8 records failed, the first (r4): failed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := reportOf(t, test.settled...)
			if got := r.String(); got != test.want {
				t.Errorf("report is %q, want %q", got, test.want)
			}
			if got := r.Failed(); got != test.failed {
				t.Errorf("%d failed, want %d", got, test.failed)
			}
			counts, want := map[batch.Outcome]int{}, map[batch.Outcome]int{}
			unrecorded := 0
			for _, o := range everyOutcome {
				counts[o] = r.Count(o)
				want[o] = 0
			}
			for _, s := range test.settled {
				want[s.Outcome]++
				if s.Unrecorded {
					unrecorded++
				}
			}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if r.Unrecorded() != unrecorded || r.Count(0) != 0 || r.Count(200) != 0 {
				t.Errorf("%d unrecorded, %d pending, %d of an unknown outcome, want %d, 0, 0", r.Unrecorded(), r.Count(0), r.Count(200), unrecorded)
			}
			text := func(err error) string {
				if err == nil {
					return ""
				}
				return err.Error()
			}
			got := errs{text(r.Err(batch.ErrorOnNothing)), text(r.Err(batch.ErrorOnTotalFailure)), text(r.Err(batch.ErrorOnAnyFailure))}
			if diff := cmp.Diff(test.errs, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedError(t *testing.T) {
	r := reportOf(t, batch.Settlement{Outcome: batch.Succeeded, Unrecorded: true, Err: errSink}, batch.Settlement{Outcome: batch.Failed, Err: errBoom},
		batch.Settlement{Outcome: batch.Failed, Err: errSink})
	err := r.Err(batch.ErrorOnAnyFailure)
	failed, ok := errors.AsType[*batch.FailedError](err)
	if !ok {
		t.Fatalf("error is a %T, want a FailedError", err)
	}
	want := batch.FailedError{Failed: 2, Records: 3, First: errBoom, ID: "r1"}
	if diff := cmp.Diff(want, *failed, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if !errors.Is(err, errBoom) || errors.Is(err, errSink) {
		t.Errorf("%v matches boom: %v, the sink's: %v, want the first failure alone", err, errors.Is(err, errBoom), errors.Is(err, errSink))
	}
}
