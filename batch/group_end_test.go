package batch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// Records are claimed ahead by one group at most, and by no more than handlers begin in half a second.
func TestGroupsRunAhead(t *testing.T) {
	for _, test := range []struct {
		handler time.Duration
		most    int // claims that wait
		last    int // the largest group behind the first two
	}{
		{0, 110, 100},
		{time.Millisecond, 110, 100},
		{20 * ms, 110, 100},
		{100 * ms, 60, 50},    // ten handlers of a tenth of a second, in half a second
		{time.Second, 25, 10}, // only what can begin at once: those of ten workers that end together
		{time.Minute, 25, 10},
	} {
		t.Run(fmt.Sprint(test.handler), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(100, 25)
				g.run = sleeps(test.handler)
				first := map[int]bool{} // records of the first two groups, which go out before the pace is known
				g.admit = func(_ context.Context, records []int, _ []batch.Admission) {
					g.mu.Lock()
					for _, i := range records {
						first[i] = len(g.sizes) <= 2
					}
					g.mu.Unlock()
					time.Sleep(4 * ms)
				}
				g.settle = takes[batch.Settlement](4 * ms)
				report := runStages(t, t.Context(), numbered(400), g, concurrency(10))
				if got := report.Count(batch.Succeeded); got != 400 {
					t.Errorf("%d succeeded, want 400", got)
				}
				if g.sizes[0] != 25 {
					t.Errorf("the first group has %d records, want 25 while the pace is unknown", g.sizes[0])
				}
				if g.most > test.most || g.most < test.most/2 {
					t.Errorf("%d claims waited, want %d at most, and not far less", g.most, test.most)
				}
				if got := slices.Max(g.sizes[2:]); got > test.last {
					t.Errorf("a later group has %d records, want %d at most: %v", got, test.last, g.sizes)
				}
				wait := 500*ms + test.handler // behind those that were ahead already
				if test.handler > 500*ms {
					wait = 0
				}
				for i, waited := range g.waited {
					if !first[i] && waited > wait {
						t.Errorf("record %d waited %v for a worker, want %v at most", i, waited, wait)
					}
				}
			})
		})
	}
}

// Where nothing runs since all is done, groups are as large as they can be from the second one on.
func TestGroupsOfReplays(t *testing.T) {
	g := newGrouped(100, 25)
	g.admit = func(_ context.Context, _ []int, admissions []batch.Admission) {
		for k := range admissions {
			admissions[k].Outcome = batch.Replayed
		}
	}
	report := runStages(t, t.Context(), numbered(1000), g, concurrency(10))
	if got := report.Count(batch.Replayed); got != 1000 {
		t.Errorf("%d replayed, want 1000", got)
	}
	if g.sizes[0] != 25 || len(g.sizes) > 14 {
		t.Errorf("groups are of %v, want one of 25 and all but a few of 100", g.sizes)
	}
}

// Claims whose records do not start any more are released in one call, before the answer.
func TestGroupsReleasedAtTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		g := newGrouped(10, 10)
		g.run = sleeps(40 * time.Second)
		g.settle = takes[batch.Settlement](2 * time.Second)
		report := runStages(t, within(t, time.Minute), numbered(12), g, concurrency(2), reserve(10*time.Second))
		if took := time.Since(begin); took != 55*time.Second {
			t.Errorf("answer after %v, want 55s", took)
		}
		want := map[batch.Outcome]int{batch.Succeeded: 2, batch.Abandoned: 2, batch.Skipped: 8}
		for outcome, n := range want {
			if got := report.Count(outcome); got != n {
				t.Errorf("%d are %v, want %d: %q", got, outcome, n, summary(report))
			}
		}
		n, first := g.count("skipped")
		if n != 1 || !strings.HasPrefix(first, "50s settle ") || strings.Count(first, "skipped") < 6 {
			t.Errorf("%d calls to settle skipped records, the first %q, want one for all that were claimed at the cut", n, first)
		}
		time.Sleep(time.Minute) // the abandoned handlers return
		g.wantNoClaims(t)
	})
}

// Claims that come when it is too late, before the answer or after it, are released as well.
func TestGroupsOfLateReplies(t *testing.T) {
	for _, test := range []struct {
		reply, answer time.Duration
	}{{52 * time.Second, 52 * time.Second}, {57 * time.Second, 55 * time.Second}, {70 * time.Second, 55 * time.Second}} {
		t.Run(fmt.Sprint(test.reply), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				g := newGrouped(3, 3)
				g.admit = takes[batch.Admission](test.reply)
				var told trace
				report := runStages(t, within(t, time.Minute), newRecords("a b c"), g, concurrency(3), reserve(10*time.Second), logTo(&told))
				if took := time.Since(begin); took != test.answer {
					t.Errorf("answer after %v, want %v", took, test.answer)
				}
				want := []string{"a" + skippedForDeadline, "b" + skippedForDeadline, "c" + skippedForDeadline}
				if diff := cmp.Diff(want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				before, toldBefore := snapshot(report), told.list()
				time.Sleep(test.reply)
				synctest.Wait()
				if diff := cmp.Diff(before, snapshot(report)); diff != "" {
					t.Errorf("the report changed after the answer (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(toldBefore, told.list()); diff != "" {
					t.Errorf("log lines after the answer (-before +after):\n%s", diff)
				}
				g.want(t, "0s admit [0 1 2]", fmt.Sprintf("%v settle 0 skipped, 1 skipped, 2 skipped", test.reply))
			})
		})
	}
}

// A handler that ignores its context and ends after the answer is settled, in a call that the answer did not wait for.
func TestGroupsOfStragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		g := newGrouped(3, 3)
		g.run = func(_ context.Context, i int) error {
			time.Sleep(56*time.Second + time.Duration(i)*time.Second)
			return nil
		}
		g.settle = func(ctx context.Context, _ []int, _ []batch.Settlement) {
			if err := ctx.Err(); err != nil {
				t.Errorf("settling with a context that has ended: %v", err)
			}
		}
		report := runStages(t, within(t, time.Minute), newRecords("a b c"), g, concurrency(3), reserve(10*time.Second))
		if took := time.Since(begin); took != 55*time.Second || report.Count(batch.Abandoned) != 3 {
			t.Errorf("%q after %v, want three abandoned after 55s", summary(report), took)
		}
		before := snapshot(report)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(before, snapshot(report)); diff != "" {
			t.Errorf("the report changed after the answer (-before +after):\n%s", diff)
		}
		for i := range 3 {
			if n, first := g.count(fmt.Sprintf("settle %d succeeded", i)); n != 1 || at(first) != time.Duration(56+i)*time.Second {
				t.Errorf("record %d was settled %d times, first %q, want once as it ended", i, n, first)
			}
		}
	})
}

// A failure that stops the batch releases what is claimed and has not started, and what is about to be.
func TestGroupsReleasedAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(4, 4)
		g.run = sleeps(400 * ms)
		var calls atomic.Int32
		g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
			if calls.Add(1) == 2 {
				admissions[0] = batch.Admission{Outcome: batch.Failed, Err: errBoom, Stop: true}
			}
		}
		report := runStages(t, t.Context(), numbered(20), g, concurrency(2))
		if report.Count(batch.Failed) != 1 || report.Count(batch.Succeeded)+report.Count(batch.Skipped) != 19 {
			t.Errorf("results are %q, want one failure and no other", summary(report))
		}
		for _, r := range report.Results {
			if r.Outcome == batch.Skipped && r.Err != batch.ErrOrder {
				t.Errorf("%s is skipped for %v, want %v", r.Record.ID, r.Err, batch.ErrOrder)
			}
		}
		g.wantNoClaims(t)
		if n, line := g.count("failed"); n != 1 || at(line) > 405*ms {
			t.Errorf("the failure was settled %d times, %q, want once, and soon after the second call at 400ms", n, line)
		}
	})
}

// Where any failure stops the batch, each record is admitted and settled by itself.
func TestStopOnFailureHasNoGroups(t *testing.T) {
	g := newGrouped(4, 4)
	runStages(t, t.Context(), numbered(20), g, concurrency(3), func(o *batch.Options) { o.StopOnFailure = true })
	if n := len(g.sizes); n != 20 || slices.Max(g.sizes) != 1 {
		t.Errorf("groups of %v, want 20 of one record", g.sizes)
	}
}

// A straggler that ends while the answer is on its way settles in a call that the answer does not wait for.
func TestGroupsOfStragglersInTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		g := newGrouped(3, 3)
		g.run = sleeps(56 * time.Second)
		g.settle = takes[batch.Settlement](time.Minute)
		runStages(t, within(t, time.Minute), newRecords("a"), g, concurrency(3), reserve(10*time.Second), func(o *batch.Options) {
			o.Hooks = []batch.Hook{finishedFunc(func(*batch.Result) { time.Sleep(2 * time.Second) })}
		})
		if took := time.Since(begin); took != 57*time.Second {
			t.Errorf("answer after %v, want 55s and two more for the hook", took)
		}
		time.Sleep(time.Hour)
		g.want(t, "0s admit [0]", "0s run 0", "56s settle 0 succeeded")
	})
}
