package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

const skippedForOrder = " skipped: batch: an earlier record failed"

func TestLaneStopsAtItsFailure(t *testing.T) {
	for _, test := range []struct {
		name     string
		records  string
		fails    string
		option   func(*batch.Options)
		ran      []string
		failures []string
	}{
		{
			"one lane", "m.1 m.2 m.3 m.4 m.5", "m.3", concurrency(4),
			[]string{"m.1", "m.2", "m.3"},
			[]string{"m.3 failed: boom", "m.4" + skippedForOrder, "m.5" + skippedForOrder},
		}, {
			"two lanes", "A.1 B.1 A.2 B.2 A.3", "A.1", concurrency(1),
			[]string{"A.1", "B.1", "B.2"},
			[]string{"A.1 failed: boom", "A.2" + skippedForOrder, "A.3" + skippedForOrder},
		}, {
			"two lanes, the batch stops", "A.1 B.1 A.2 B.2 A.3", "A.1",
			func(o *batch.Options) { o.Concurrency, o.StopOnFailure = 1, true },
			[]string{"A.1"},
			[]string{
				"A.1 failed: boom", "B.1" + skippedForOrder, "A.2" + skippedForOrder, "B.2" + skippedForOrder, "A.3" + skippedForOrder,
			},
		}, {
			"ten records, the batch stops", "r1 r2 r3 r4 r5 r6 r7 r8 r9 r10", "r3",
			func(o *batch.Options) { o.Concurrency, o.StopOnFailure = 1, true },
			[]string{"r1", "r2", "r3"},
			[]string{
				"r3 failed: boom", "r4" + skippedForOrder, "r5" + skippedForOrder, "r6" + skippedForOrder,
				"r7" + skippedForOrder, "r8" + skippedForOrder, "r9" + skippedForOrder, "r10" + skippedForOrder,
			},
		}, {
			"no lane", "a b c", "a", concurrency(1), []string{"a", "b", "c"}, []string{"a failed: boom"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran trace
			report := process(t, t.Context(), newRecords(test.records), func(_ context.Context, r *batch.Record) error {
				ran.add("%s", r.ID)
				if r.ID == test.fails {
					return errBoom
				}
				return nil
			}, test.option)
			if diff := cmp.Diff(test.ran, ran.list()); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
			var failures []string
			for i := range report.Results {
				if r := &report.Results[i]; !r.Outcome.Done() {
					failures = append(failures, summarize(r))
				}
			}
			if diff := cmp.Diff(test.failures, failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// What a settled outcome means for the next of the lane.
func TestLaneGoesOnBehindWhatIsDone(t *testing.T) {
	for _, test := range []struct {
		settled batch.Settlement
		goesOn  bool
	}{
		{batch.Settlement{Outcome: batch.Succeeded}, true},
		{batch.Settlement{Outcome: batch.Replayed}, true},
		{batch.Settlement{Outcome: batch.Ignored}, true},
		{batch.Settlement{Outcome: batch.DeadLettered, Err: errBoom}, true},
		{batch.Settlement{Outcome: batch.Succeeded, Unrecorded: true}, false},
		{batch.Settlement{Outcome: batch.DeadLettered, Err: errBoom, Unrecorded: true}, false},
		{batch.Settlement{Outcome: batch.Failed, Err: errBoom}, false},
		{batch.Settlement{Outcome: batch.InProgress, Err: errBoom}, false},
		{batch.Settlement{Outcome: batch.Skipped, Err: errBoom}, false},
	} {
		t.Run(fmt.Sprintf("%v %v", test.settled.Outcome, test.settled.Unrecorded), func(t *testing.T) {
			report := runStages(t, t.Context(), newRecords("A.1 A.2 A.3"), &stages{
				settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
					if i == 0 {
						return test.settled
					}
					return s
				},
			})
			first := batch.Result{
				Record: &batch.Record{ID: "A.1"}, Outcome: test.settled.Outcome, Err: test.settled.Err, Unrecorded: test.settled.Unrecorded,
			}
			want := []string{summarize(&first), "A.2 succeeded", "A.3 succeeded"}
			if !test.goesOn {
				want = []string{summarize(&first), "A.2" + skippedForOrder, "A.3" + skippedForOrder}
			}
			if diff := cmp.Diff(want, summary(report)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if last := report.Results[2]; !test.goesOn && (last.Err != batch.ErrOrder || last.Duration != 0) {
				t.Errorf("last = %v in %v, want ErrOrder in no time", last.Err, last.Duration)
			}
		})
	}
}

func TestLaneGoesOnOnlyAfterSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr trace
		begin := time.Now()
		stage := func(name string, i int) { tr.add("%v %s %d", time.Since(begin), name, i) }
		runStages(t, t.Context(), newRecords("A.1 A.2 x"), &stages{
			prepare: func(_ context.Context, i int) (string, error) { stage("prepare", i); return "", nil },
			run: func(_ context.Context, i int) error {
				if i == 2 {
					time.Sleep(time.Minute)
				}
				stage("run", i)
				return nil
			},
			settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
				time.Sleep(time.Duration(i+1) * time.Second)
				stage("settled", i)
				return s
			},
		}, concurrency(3))
		want := []string{"1s settled 0", "1s prepare 1", "1s run 1", "3s settled 1", "1m0s run 2", "1m3s settled 2"}
		got := tr.list()
		if len(got) < 3 {
			t.Fatalf("trace = %q", got)
		}
		// The two that start at once do so in any order.
		if diff := cmp.Diff(want, got[3:]); diff != "" {
			t.Errorf("trace (-want +got):\n%s", diff)
		}
	})
}

func TestOtherLanesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var tr trace
		process(t, t.Context(), newRecords("A.1 A.2 B.1 B.2 B.3 x"), func(_ context.Context, r *batch.Record) error {
			time.Sleep(time.Second)
			if r.Lane == "A" {
				time.Sleep(time.Hour)
			}
			tr.add("%v %s", time.Since(begin), r.ID)
			return nil
		}, concurrency(2))
		want := []string{"1s B.1", "2s B.2", "3s B.3", "4s x", "1h0m1s A.1", "2h0m2s A.2"}
		if diff := cmp.Diff(want, tr.list()); diff != "" {
			t.Errorf("trace (-want +got):\n%s", diff)
		}
	})
}

// The lowest ready index is next, also when a record becomes ready that was passed over before.
func TestLowestReadyIndexFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr trace
		process(t, t.Context(), newRecords("A.1 long B.1 A.2 B.2 A.3 x y"), func(_ context.Context, r *batch.Record) error {
			tr.add("%s", r.ID)
			time.Sleep(time.Second)
			if r.ID == "long" {
				time.Sleep(time.Minute)
			}
			return nil
		}, concurrency(2))
		first, rest := tr.list()[:2], tr.list()[2:]
		if first[0] == "long" {
			first[0], first[1] = first[1], first[0] // both start at once
		}
		want := []string{"A.1", "long", "B.1", "A.2", "B.2", "A.3", "x", "y"}
		if diff := cmp.Diff(want, append(first, rest...)); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
	})
}

// As many lane heads as there are workers start at once, wherever they are in the batch.
func TestReadyRecordsDoNotWaitBehindBlockedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		process(t, t.Context(), newRecords("A.1 A.2 A.3 A.4 B.1 C.1 D.1"), func(context.Context, *batch.Record) error {
			time.Sleep(time.Second)
			return nil
		}, concurrency(4))
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("took %v, want the 4s of the longest lane", took)
		}
	})
}

// Behind a failure that stops the batch no handler starts, also not one whose record a worker has already: its claim may
// take long. What runs goes on.
func TestStopOnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran, settled trace
		records := newRecords("fails runs claims after")
		report := runStages(t, t.Context(), records, &stages{
			admit: func(_ context.Context, i int) batch.Admission {
				if records[i].ID == "claims" {
					time.Sleep(2 * time.Second)
				}
				return batch.Admission{}
			},
			run: func(ctx context.Context, i int) error {
				ran.add("%s", records[i].ID)
				time.Sleep(time.Duration(i+1) * time.Second)
				if i == 0 {
					return errBoom
				}
				return ctx.Err()
			},
			settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
				settled.add("%s %v", records[i].ID, s.Outcome)
				return s
			},
		}, func(o *batch.Options) { o.Concurrency, o.StopOnFailure = 3, true })
		want := []string{"fails failed: boom", "runs succeeded", "claims" + skippedForOrder, "after" + skippedForOrder}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if got := len(ran.list()); got != 2 {
			t.Errorf("ran %q, want fails and runs", ran.list())
		}
		if got := len(settled.list()); got != 3 {
			t.Errorf("settled %q, want the three that were prepared", settled.list())
		}
	})
}

func TestAdmissionStops(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome batch.Outcome
		want    []string
	}{
		{"a failure", batch.Failed, []string{"a failed: boom", "b" + skippedForOrder, "c" + skippedForOrder}},
		{"what is done", batch.Ignored, []string{"a ignored: boom", "b succeeded", "c succeeded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := runStages(t, t.Context(), newRecords("a b c"), &stages{
				admit: func(_ context.Context, i int) batch.Admission {
					if i == 0 {
						return batch.Admission{Outcome: test.outcome, Err: errBoom, Stop: true}
					}
					return batch.Admission{}
				},
			}, concurrency(1))
			if diff := cmp.Diff(test.want, summary(report)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// A failure before the handler stops the lane too, and the record is settled.
func TestPrepareFails(t *testing.T) {
	var calls trace
	records := newRecords("A.1 A.2 x")
	report := runStages(t, t.Context(), records, &stages{
		prepare: func(_ context.Context, i int) (string, error) {
			calls.add("prepare %s", records[i].ID)
			if i == 0 {
				return "", errBoom
			}
			return "", nil
		},
		admit: func(_ context.Context, i int) batch.Admission {
			calls.add("admit %s", records[i].ID)
			return batch.Admission{}
		},
		run: func(_ context.Context, i int) error { calls.add("run %s", records[i].ID); return nil },
		settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
			calls.add("settle %s %v", records[i].ID, s.Outcome)
			if i == 0 {
				s.Err = errors.Join(s.Err, errors.New("and more"))
			}
			return s
		},
	}, concurrency(1))
	want := []string{"A.1 failed: boom; and more", "A.2" + skippedForOrder, "x succeeded"}
	if diff := cmp.Diff(want, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	wantCalls := []string{"prepare A.1", "settle A.1 failed", "prepare x", "admit x", "run x", "settle x succeeded"}
	if diff := cmp.Diff(wantCalls, calls.list()); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}
