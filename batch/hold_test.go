package batch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

var errHeld = errors.New("held elsewhere")

func held(until time.Time) batch.Admission {
	return batch.Admission{Outcome: batch.InProgress, Err: errHeld, RetryAt: until}
}

// Records that wait for a claim hold no worker: with one worker, all others run meanwhile. They come back when their time
// has come, in the order of those times, and then the lowest index first.
func TestHeldRecordsHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		waits := map[int]time.Duration{0: 30 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 4: 10 * time.Second}
		var tr trace
		admitted := map[int]int{}
		report := runStages(t, t.Context(), newRecords("h30 h10 A.h20 A.next g10 x y"), &stages{
			prepare: func(_ context.Context, i int) (string, error) {
				tr.add("%v prepare %d", time.Since(begin), i)
				return "", nil
			},
			admit: func(_ context.Context, i int) batch.Admission {
				if admitted[i]++; admitted[i] == 1 && waits[i] > 0 {
					return held(begin.Add(waits[i]))
				}
				return batch.Admission{}
			},
			run: func(_ context.Context, i int) error {
				time.Sleep(time.Second)
				tr.add("%v ran %d", time.Since(begin), i)
				return nil
			},
		}, concurrency(1))
		want := []string{
			"0s prepare 0", "0s prepare 1", "0s prepare 2", "0s prepare 4", "0s prepare 5", "1s ran 5", "1s prepare 6", "2s ran 6",
			"11s ran 1", "12s ran 4", "21s ran 2", "21s prepare 3", "22s ran 3", "31s ran 0",
		}
		if diff := cmp.Diff(want, tr.list()); diff != "" {
			t.Errorf("trace (-want +got):\n%s", diff)
		}
		if got := report.Count(batch.Succeeded); got != 7 {
			t.Errorf("%d succeeded, want all: %q", got, summary(report))
		}
		if got := report.Results[0].Duration; got != 31*time.Second {
			t.Errorf("held record took %v, want 31s with its wait", got)
		}
	})
}

// What the admission said when it held the record is its outcome if the batch ends before its time, and it is not settled:
// it has no claim.
func TestHeldUntilTheEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		until  time.Duration
		option func(*batch.Options)
		last   error
		want   []string
		at     time.Duration
	}{
		{"cut", time.Hour, func(*batch.Options) {}, nil,
			[]string{"A.h in progress: held elsewhere", "A.2" + skippedForOrder, "x succeeded"}, 59 * time.Second},
		{"polled until the cut", 1100 * time.Millisecond, func(*batch.Options) {}, nil,
			[]string{"A.h in progress: held elsewhere", "A.2" + skippedForOrder, "x succeeded"}, 59 * time.Second},
		{"another fails", time.Hour, func(o *batch.Options) { o.StopOnFailure = true }, errBoom,
			[]string{"A.h in progress: held elsewhere", "A.2" + skippedForOrder, "x failed: boom"}, 5 * time.Second},
		{"another fails, which stops nothing", time.Hour, func(*batch.Options) {}, errBoom,
			[]string{"A.h in progress: held elsewhere", "A.2" + skippedForOrder, "x failed: boom"}, 59 * time.Second},
	} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s with concurrency %d", test.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					var settled trace
					report := runStages(t, within(t, time.Minute), newRecords("A.h A.2 x"), &stages{
						admit: func(_ context.Context, i int) batch.Admission {
							if i == 0 {
								return held(time.Now().Add(test.until))
							}
							return batch.Admission{}
						},
						run: func(_ context.Context, i int) error { time.Sleep(5 * time.Second); return test.last },
						settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
							settled.add("%d", i)
							return s
						},
					}, concurrency(n), test.option)
					if diff := cmp.Diff(test.want, summary(report)); diff != "" {
						t.Errorf("results (-want +got):\n%s", diff)
					}
					if took := time.Since(begin); took != test.at {
						t.Errorf("took %v, want %v", took, test.at)
					}
					if diff := cmp.Diff([]string{"2"}, settled.list()); diff != "" {
						t.Errorf("settled (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// A record that is ready again, and waits for a worker when the batch is cut, keeps what the admission said.
func TestReadmittedButCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var admitted trace
		report := runStages(t, within(t, time.Minute), newRecords("h x"), &stages{
			admit: func(_ context.Context, i int) batch.Admission {
				if admitted.add("%d", i); i == 0 {
					return held(time.Now().Add(time.Second))
				}
				return batch.Admission{}
			},
			run: func(ctx context.Context, _ int) error { <-ctx.Done(); return nil },
		}, concurrency(1))
		if diff := cmp.Diff([]string{"h in progress: held elsewhere", "x succeeded"}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"0", "1"}, admitted.list()); diff != "" {
			t.Errorf("admitted (-want +got):\n%s", diff)
		}
	})
}

// A record that is being admitted again when the answer goes keeps what its last admission said.
func TestReadmittedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var polls atomic.Int32
		report := runStages(t, within(t, time.Minute), newRecords("A.h A.2"), &stages{
			admit: func(context.Context, int) batch.Admission {
				if polls.Add(1) > 1 {
					<-wake
				}
				return held(time.Now().Add(time.Second))
			},
		})
		if polls.Load() != 2 {
			t.Fatalf("admitted %d times, want twice", polls.Load())
		}
		if diff := cmp.Diff([]string{"A.h in progress: held elsewhere", "A.2" + skippedForDeadline}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		close(wake)
		synctest.Wait()
	})
}

// A claim that is refused only after another record has stopped the batch, or after the cut, holds nobody.
func TestHeldAfterTheStop(t *testing.T) {
	for _, test := range []struct {
		name  string
		takes time.Duration
		want  []string
	}{
		{"stop", 10 * time.Second, []string{"h in progress: held elsewhere", "x failed: boom"}},
		{"cut", 59200 * time.Millisecond, []string{"h in progress: held elsewhere", "x failed: boom"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				report := runStages(t, within(t, time.Minute), newRecords("h x"), &stages{
					admit: func(_ context.Context, i int) batch.Admission {
						if i == 0 {
							time.Sleep(test.takes)
							return held(time.Now().Add(time.Hour))
						}
						return batch.Admission{}
					},
					run: func(context.Context, int) error { return errBoom },
				}, concurrency(2), func(o *batch.Options) { o.StopOnFailure = test.name == "stop" })
				if diff := cmp.Diff(test.want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if took := time.Since(begin); took != test.takes {
					t.Errorf("took %v, want %v", took, test.takes)
				}
			})
		})
	}
}

// A failure while a record waits stops its lane too.
func TestHeldThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		var prepared trace
		report := runStages(t, t.Context(), newRecords("A.h A.2"), &stages{
			prepare: func(_ context.Context, i int) (string, error) { prepared.add("%d", i); return "", nil },
			admit: func(context.Context, int) batch.Admission {
				if polls++; polls < 100 {
					return held(time.Now()) // at once
				}
				return batch.Admission{Outcome: batch.Failed, Err: errBoom}
			},
		}, concurrency(1))
		if diff := cmp.Diff([]string{"A.h failed: boom", "A.2" + skippedForOrder}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if polls != 100 {
			t.Errorf("admitted %d times, want 100", polls)
		}
		if diff := cmp.Diff([]string{"0"}, prepared.list()); diff != "" {
			t.Errorf("prepared (-want +got):\n%s", diff)
		}
	})
}

func TestThousandsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := make([]int, 5000)
		report := runStages(t, t.Context(), numbered(len(polls)), &stages{
			admit: func(_ context.Context, i int) batch.Admission {
				if polls[i]++; polls[i] < 4 {
					return held(time.Now().Add(time.Second))
				}
				return batch.Admission{}
			},
		})
		if got := report.Count(batch.Succeeded); got != len(polls) {
			t.Errorf("%d succeeded, want %d", got, len(polls))
		}
	})
}
