package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// A record that waited for a worker for too long is admitted once more before it runs, together with others like it.
func TestGroupsRenew(t *testing.T) {
	for _, startBy := range []time.Duration{0, 300 * ms, 2500 * ms, time.Minute} {
		t.Run(fmt.Sprint(startBy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(10, 10)
				until, admitted := make([]time.Time, 30), make([]int, 30)
				g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
					time.Sleep(4 * ms)
					for k, i := range records {
						if admitted[i]++; startBy > 0 {
							until[i] = time.Now().Add(startBy)
							admissions[k].StartBy = until[i]
						}
					}
				}
				g.run = func(_ context.Context, i int) error {
					if startBy > 0 && time.Now().After(until[i]) {
						t.Errorf("record %d began %v too late", i, time.Since(until[i]))
					}
					time.Sleep(time.Second)
					return nil
				}
				report := runStages(t, t.Context(), numbered(30), g, concurrency(3))
				if got := report.Count(batch.Succeeded); got != 30 {
					t.Errorf("%d succeeded, want 30: %q", got, summary(report))
				}
				if most := slices.Max(admitted); (most > 1) != (startBy == 300*ms || startBy == 2500*ms) {
					t.Errorf("a record was admitted %d times with %v to start: %v", most, startBy, admitted)
				}
				if startBy == 2500*ms && len(g.sizes) > 24 {
					t.Errorf("%d calls to admit, of %v, want renewals in groups", len(g.sizes), g.sizes)
				}
			})
		})
	}
}

// What the second admission says holds.
func TestGroupsRenewalRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		second batch.Admission
		want   string
		sunk   bool
		third  bool
	}{
		{"failed", batch.Admission{Outcome: batch.Failed, Err: errBoom}, " failed: boom", false, false},
		{"permanent", batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(errBoom)}, " dead-lettered: boom", true, false},
		{"too late", batch.Admission{Outcome: batch.Skipped, Err: batch.ErrDeadlineNear}, skippedForDeadline, false, false},
		{"done elsewhere", batch.Admission{Outcome: batch.Replayed}, " replayed", false, false},
		{"held elsewhere", batch.Admission{Outcome: batch.InProgress, Err: errHeld}, " in progress: held elsewhere", false, false},
		{"held, and free again", batch.Admission{Outcome: batch.InProgress, Err: errHeld, RetryAt: time.Unix(0, 0)}, " succeeded", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(4, 4)
				g.run = func(_ context.Context, i int) error {
					time.Sleep(time.Second + time.Duration(i)*ms)
					return nil
				}
				admitted := make([]int, 4)
				g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
					for k, i := range records {
						switch admitted[i]++; admitted[i] {
						case 1:
							admissions[k].StartBy = time.Now().Add(100 * ms)
						case 2:
							admissions[k] = test.second
						}
					}
				}
				sunk := 0
				report := runStages(t, t.Context(), newRecords("a b c d"), g, concurrency(2), func(o *batch.Options) {
					o.DeadLetter = func(context.Context, *batch.Record, error) error { sunk++; return nil }
				})
				want := []string{"a succeeded", "b succeeded", "c" + test.want, "d" + test.want}
				if diff := cmp.Diff(want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if (sunk == 2) != test.sunk {
					t.Errorf("%d records in the sink, want them: %v", sunk, test.sunk)
				}
				if n, _ := g.count("run"); (n == 4) != test.third {
					t.Errorf("%d ran: %q", n, g.list())
				}
			})
		})
	}
}

// A call for a group that panics or exits fails the records it was made for, and no others. Their claims are released.
func TestGroupsPanic(t *testing.T) {
	for _, test := range []struct {
		name  string
		stage string
		exit  bool
	}{{"admit panics", "admit", false}, {"admit exits", "admit", true}, {"settle panics", "settle", false}, {"settle exits", "settle", true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(3, 3)
				fail := func(records []int) {
					switch {
					case !slices.Contains(records, 0):
					case test.exit:
						_ = exit()
					default:
						panic("boom")
					}
				}
				var failed []int
				g.admit = func(_ context.Context, records []int, _ []batch.Admission) {
					if test.stage == "admit" && records[0] == 0 {
						failed = slices.Clone(records)
						fail(records)
					}
				}
				g.settle = func(_ context.Context, records []int, _ []batch.Settlement) {
					if test.stage == "settle" && slices.Contains(records, 0) {
						failed = slices.Clone(records)
						fail(records)
					}
				}
				var told trace
				report := runStages(t, t.Context(), newRecords("A.1 b c d e A.2"), g, concurrency(3), func(o *batch.Options) {
					o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) { told.add("%s", r.Record.ID) })}
				})
				if len(failed) == 0 {
					t.Fatal("nothing has failed")
				}
				for i, r := range report.Results {
					want := batch.Succeeded
					switch {
					case slices.Contains(failed, i):
						want = batch.Failed
						if _, ok := errors.AsType[*batch.PanicError](r.Err); !ok {
							t.Errorf("%s failed with %v, want a PanicError", r.Record.ID, r.Err)
						}
					case i == 5:
						want = batch.Skipped // its lane has failed
					}
					if r.Outcome != want {
						t.Errorf("%s is %v, want %v", r.Record.ID, r.Outcome, want)
					}
				}
				if test.stage == "admit" {
					n, line := g.count("0 failed")
					if n != 1 || strings.Count(line, "failed") != len(failed) {
						t.Errorf("settled %d times, %q, want all of %v in one call", n, line, failed)
					}
				}
				names := told.list()
				slices.Sort(names)
				if diff := cmp.Diff([]string{"A.1", "A.2", "b", "c", "d", "e"}, names); diff != "" {
					t.Errorf("records that hooks were told of (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A hook that ends its goroutine, which is that of a call for a group, does not keep the batch from its answer.
func TestGroupsHookExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := runStages(t, t.Context(), numbered(20), newGrouped(4, 4), concurrency(3), func(o *batch.Options) {
			o.Hooks = []batch.Hook{finishedFunc(func(*batch.Result) { _ = exit() })}
		})
		if got := report.Count(batch.Succeeded); got != 20 {
			t.Errorf("%d succeeded, want 20", got)
		}
	})
}

// Records that an admission refuses for good go to the sink, in a worker. Others go on beside it.
func TestGroupsDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(4, 4)
		g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
			for k, i := range records {
				if i < 2 {
					admissions[k] = batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(errBoom)}
				}
			}
		}
		begin := time.Now()
		report := runStages(t, t.Context(), newRecords("takes refuses c A.4 A.5"), g, concurrency(2), func(o *batch.Options) {
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
				time.Sleep(time.Second)
				if r.ID == "refuses" {
					return errSink
				}
				return nil
			}
		})
		want := []string{"takes dead-lettered: boom", "refuses failed: boom; batch: dead-letter sink: queue is gone", "c succeeded", "A.4 succeeded", "A.5 succeeded"}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took > time.Second+10*ms {
			t.Errorf("took %v, want both sinks at once", took)
		}
		if n, line := g.count("0 dead-lettered"); n != 1 {
			t.Errorf("settled %d times as dead-lettered, %q", n, line)
		}
	})
}

// A sink that has not begun when the batch stops does not begin, and its record is told as what it was.
func TestGroupsDeadLetterAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(4, 4)
		g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
			for k, i := range records {
				if i == 1 {
					admissions[k] = batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(errBoom)}
				}
			}
		}
		g.run = sleeps(time.Minute)
		report := runStages(t, within(t, time.Minute), newRecords("a b"), g, concurrency(1), reserve(10*time.Second), func(o *batch.Options) {
			o.DeadLetter = func(context.Context, *batch.Record, error) error { t.Error("the sink began"); return nil }
		})
		want := []string{"a" + abandoned, "b failed: boom"}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute)
	})
}

// Records that wait for claims held elsewhere come back together.
func TestGroupsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(50, 50)
		begin, admitted := time.Now(), make([]int, 40)
		g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
			for k, i := range records {
				if admitted[i]++; admitted[i] <= 2 {
					admissions[k] = held(begin.Add(time.Duration(admitted[i]) * 10 * time.Second))
				}
			}
		}
		report := runStages(t, t.Context(), numbered(40), g, concurrency(2))
		if got := report.Count(batch.Succeeded); got != 40 || len(g.sizes) > 6 {
			t.Errorf("%d succeeded, in groups of %v, want 40 in six groups at most", got, g.sizes)
		}
		if n, first := g.count("run"); n != 40 || at(first) != 20*time.Second {
			t.Errorf("%d ran, the first %q, want 40 from 20s on", n, first)
		}
	})
}

// Twins are admitted once, whatever group their leader is in.
func TestGroupsOfTwins(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGrouped(3, 3)
			g.prepare = func(i int) (string, error) { return fmt.Sprint("key", i%4), nil }
			g.run = func(_ context.Context, i int) error {
				time.Sleep(time.Second)
				if fails {
					return errBoom
				}
				return nil
			}
			report := runStages(t, t.Context(), numbered(20), g, concurrency(3))
			admitted := 0
			for _, n := range g.sizes {
				admitted += n
			}
			if n, _ := g.count("run"); n != 4 || admitted != 4 {
				t.Errorf("%d admitted, %d ran, want 4 of each", admitted, n)
			}
			if want := map[bool][2]int{false: {4, 16}, true: {0, 0}}[fails]; report.Count(batch.Succeeded) != want[0] || report.Count(batch.Replayed) != want[1] {
				t.Errorf("results are %q", summary(report))
			}
		})
	}
}

// Middleware is around each handler of a group, in the worker, with the context of its own admission.
func TestGroupsMiddleware(t *testing.T) {
	type key struct{}
	g := newGrouped(4, 4)
	g.admit = func(ctx context.Context, records []int, admissions []batch.Admission) {
		for k, i := range records {
			admissions[k].Context, admissions[k].Attempt = context.WithValue(ctx, key{}, i), 10+i
		}
	}
	g.run = func(ctx context.Context, i int) error {
		if ctx.Value(key{}) != i {
			t.Errorf("handler %d has the context of %v", i, ctx.Value(key{}))
		}
		return nil
	}
	records := numbered(10)
	for i := range records {
		records[i].Value = i
	}
	report := runStages(t, t.Context(), records, g, concurrency(2), func(o *batch.Options) {
		o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				if ctx.Value(key{}) != r.Value || r.Attempt != 10+r.Value.(int) {
					t.Errorf("middleware of %v has attempt %d and the context of %v", r.Value, r.Attempt, ctx.Value(key{}))
				}
				if r.Value == 3 {
					return errBoom
				}
				return next(ctx, r)
			}
		}}
	})
	if report.Count(batch.Succeeded) != 9 || report.Count(batch.Failed) != 1 {
		t.Errorf("results are %q, want nine that succeeded", summary(report))
	}
}
