package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

var errBoom = errors.New("boom")

func TestFailuresInInputOrder(t *testing.T) {
	for _, n := range []int{1, 2, 4, 10} {
		t.Run(fmt.Sprint("concurrency ", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report := process(t, t.Context(), numbered(10), func(_ context.Context, r *batch.Record) error {
					var i int
					fmt.Sscanf(r.ID, "r%d", &i)
					time.Sleep(time.Duration(10-i) * time.Millisecond) // the last one is the first to be done
					if i == 2 || i == 5 || i == 9 {
						return errBoom
					}
					return nil
				}, concurrency(n))
				want := []string{
					"r0 succeeded", "r1 succeeded", "r2 failed: boom", "r3 succeeded", "r4 succeeded",
					"r5 failed: boom", "r6 succeeded", "r7 succeeded", "r8 succeeded", "r9 failed: boom",
				}
				if diff := cmp.Diff(want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A record's failure is in the report and is not the error of the call: an invocation that answers with an error makes
// the whole batch come back.
func TestFailureIsNoErrorOfTheCall(t *testing.T) {
	report, err := batch.Process(t.Context(), newRecords("a b c"), func(_ context.Context, r *batch.Record) error {
		if r.ID == "b" {
			return errBoom
		}
		return nil
	}, quiet)
	if err != nil {
		t.Fatalf("err = %v, want nil", err)
	}
	if diff := cmp.Diff([]string{"a succeeded", "b failed: boom", "c succeeded"}, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got := report.Results[1].Err; got != errBoom {
		t.Errorf("error of b = %#v, want the very error that the handler returned", got)
	}
}

func TestProcessRefuses(t *testing.T) {
	var ran, told atomic.Int32
	handler := func(context.Context, *batch.Record) error { ran.Add(1); return nil }
	hooked := func(o *batch.Options) { o.Hooks = []batch.Hook{startedFunc(func() { told.Add(1) })} }
	for _, test := range []struct {
		name    string
		handler batch.Handler
		option  func(*batch.Options)
		want    string
	}{
		{"nil handler", nil, hooked, "batch: handler is nil, want a function"},
		{"option out of its limits", handler, func(o *batch.Options) { hooked(o); o.Concurrency = -1 },
			"batch: Options.Concurrency is -1, want 0 (for 10) to 10000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, err := batch.Process(t.Context(), newRecords("a"), test.handler, test.option)
			if report != nil || err == nil || err.Error() != test.want {
				t.Errorf("Process = %v, %v, want nil, %s", report, err, test.want)
			}
		})
	}
	if ran.Load() > 0 || told.Load() > 0 {
		t.Errorf("%d handlers and %d hooks ran, want none", ran.Load(), told.Load())
	}
}

type startedFunc func()

func (f startedFunc) OnBatchStarted(context.Context, []batch.Record) { f() }

func TestEmptyBatch(t *testing.T) {
	for _, records := range [][]batch.Record{nil, {}} {
		var logged trace
		report := process(t, t.Context(), records, func(context.Context, *batch.Record) error { return nil }, logTo(&logged))
		if len(report.Results) != 0 || report.Failed() != 0 || report.Err(batch.ErrorOnTotalFailure) != nil {
			t.Errorf("report = %v, %v, want an empty one", report, report.Err(batch.ErrorOnTotalFailure))
		}
		if lines := logged.list(); len(lines) != 1 {
			t.Errorf("logged %q, want one summary", lines)
		}
	}
}

func TestRecordsAreTheCallers(t *testing.T) {
	records := newRecords("A.1 A.2 x")
	before := newRecords("A.1 A.2 x")
	report := process(t, t.Context(), records, func(_ context.Context, r *batch.Record) error {
		r.Value = "changed"
		return nil
	})
	if diff := cmp.Diff(before, records, cmp.AllowUnexported(batch.Record{})); diff != "" {
		t.Errorf("Process changed the caller's records (-before +after):\n%s", diff)
	}
	for i := range records {
		if records[i].ID = "reused"; report.Results[i].Record.ID != before[i].ID {
			t.Errorf("record %d of the report is the caller's own", i)
		}
	}
}

func TestFailureCancelsNoSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := process(t, t.Context(), newRecords("a b c"), func(ctx context.Context, r *batch.Record) error {
			if r.ID == "a" {
				time.Sleep(10 * time.Millisecond)
				return errBoom
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(100 * time.Millisecond):
				return nil
			}
		})
		if diff := cmp.Diff([]string{"a failed: boom", "b succeeded", "c succeeded"}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestConcurrencyOneIsInputOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr trace
		process(t, t.Context(), newRecords("A.1 x B.1 A.2 y"), func(_ context.Context, r *batch.Record) error {
			tr.add("%s begins", r.ID)
			time.Sleep(time.Millisecond)
			tr.add("%s ends", r.ID)
			if r.ID == "x" || r.ID == "B.1" {
				return errBoom
			}
			return nil
		}, concurrency(1))
		want := []string{
			"A.1 begins", "A.1 ends", "x begins", "x ends", "B.1 begins", "B.1 ends", "A.2 begins", "A.2 ends", "y begins", "y ends",
		}
		if diff := cmp.Diff(want, tr.list()); diff != "" {
			t.Errorf("trace (-want +got):\n%s", diff)
		}
	})
}

func TestConcurrencyIsReachedAndKept(t *testing.T) {
	for _, test := range []struct{ option, records, want int }{
		{0, 50, batch.DefaultConcurrency},
		{1, 50, 1},
		{3, 50, 3},
		{100, 50, 50},
	} {
		t.Run(fmt.Sprint(test.option), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var inside gauge
				begin := time.Now()
				process(t, t.Context(), numbered(test.records), func(context.Context, *batch.Record) error {
					inside.enter()
					defer inside.leave()
					time.Sleep(time.Second)
					return nil
				}, concurrency(test.option))
				if most := inside.most(); most != test.want {
					t.Errorf("%d handlers ran at once, want %d", most, test.want)
				}
				rounds := (test.records + test.want - 1) / test.want
				if took := time.Since(begin); took != time.Duration(rounds)*time.Second {
					t.Errorf("took %v, want %d rounds of a second", took, rounds)
				}
			})
		})
	}
}

func TestGoroutinesAreBounded(t *testing.T) {
	before := runtime.NumGoroutine()
	var most atomic.Int64
	records := numbered(10_000)
	for i := range records {
		records[i].Lane = fmt.Sprint("lane ", i%3000)
	}
	report := process(t, t.Context(), records, func(context.Context, *batch.Record) error {
		most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
		return nil
	}, concurrency(8))
	if got := report.Count(batch.Succeeded); got != len(records) {
		t.Errorf("%d records succeeded, want %d", got, len(records))
	}
	if got := int(most.Load()) - before; got > 8 {
		t.Errorf("the batch started %d goroutines, want 8 at most", got)
	}
}

func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := process(t, t.Context(), newRecords("A.1 x A.2 A.3 instant"), func(_ context.Context, r *batch.Record) error {
			switch r.ID {
			case "x":
				time.Sleep(time.Second)
			case "A.1":
				time.Sleep(3 * time.Second)
			case "A.2":
				time.Sleep(5 * time.Second)
				return errBoom
			}
			return nil
		})
		var got []time.Duration
		for _, r := range report.Results {
			got = append(got, r.Duration)
		}
		if diff := cmp.Diff([]time.Duration{3 * time.Second, time.Second, 5 * time.Second, 0, 0}, got); diff != "" {
			t.Errorf("durations (-want +got):\n%s", diff)
		}
		if report.Duration != 8*time.Second {
			t.Errorf("batch took %v, want 8s", report.Duration)
		}
	})
}
