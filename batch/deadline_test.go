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

const (
	skippedForDeadline = " skipped: batch: deadline is near"
	abandoned          = " abandoned: batch: record was still at work when the answer had to go"
)

func reserve(d time.Duration) func(*batch.Options) { return func(o *batch.Options) { o.Reserve = d } }

// Every test here has a deadline of its own in the fake time of a bubble.
func within(t *testing.T, left time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), left)
	t.Cleanup(cancel)
	return ctx
}

func TestReserve(t *testing.T) {
	for _, test := range []struct {
		name         string
		left         time.Duration
		reserve      time.Duration
		cut, answer  time.Duration // after the start
		withinLogged string
	}{
		{"default", time.Minute, 0, 59 * time.Second, 59500 * time.Millisecond, ""},
		{"default of a short batch", 3 * time.Second, 0, 2700 * time.Millisecond, 2850 * time.Millisecond, ""},
		{"explicit", time.Minute, 10 * time.Second, 50 * time.Second, 55 * time.Second, ""},
		{"clamped", time.Minute, time.Hour, 30 * time.Second, 45 * time.Second,
			`level=WARN msg="batch reserve is more than half of the time left and was cut down to that" reserve=1h0m0s used=30s`},
		{"none", time.Minute, -1, time.Minute, 61 * time.Second, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				wake := make(chan struct{})
				var logged trace
				type end struct {
					At    time.Duration
					Cause error
				}
				ended := make(chan end, 1)
				report := process(t, within(t, test.left), newRecords("hangs never"), func(ctx context.Context, r *batch.Record) error {
					if deadline, ok := ctx.Deadline(); !ok || deadline.Sub(begin) != test.cut {
						t.Errorf("handler's deadline is %v after the start, want %v", deadline.Sub(begin), test.cut)
					}
					<-ctx.Done()
					ended <- end{time.Since(begin), context.Cause(ctx)}
					<-wake
					return nil
				}, concurrency(1), reserve(test.reserve), logTo(&logged))
				if took := time.Since(begin); took != test.answer {
					t.Errorf("answer after %v, want %v", took, test.answer)
				}
				got := <-ended
				if got.At != test.cut {
					t.Errorf("handler cancelled after %v, want %v", got.At, test.cut)
				}
				if test.reserve >= 0 && got.Cause != batch.ErrDeadlineNear {
					t.Errorf("cause = %v, want ErrDeadlineNear", got.Cause)
				}
				if !errors.Is(report.Results[1].Err, batch.ErrDeadlineNear) || report.Results[1].Outcome != batch.Skipped {
					t.Errorf("second = %s, want skipped for ErrDeadlineNear", summarize(&report.Results[1]))
				}
				if got := summarize(&report.Results[0]); got != "hangs"+abandoned {
					t.Errorf("first = %s, want %s", got, "hangs"+abandoned)
				}
				if first := logged.list()[0]; (test.withinLogged != "") != (first == test.withinLogged) {
					t.Errorf("logged %q first, want %q", first, test.withinLogged)
				}
				close(wake)
				synctest.Wait()
			})
		})
	}
}

// Handlers that heed their context end the batch at the cut, without waiting for the answer's time.
func TestCutEndsHeedingHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		report := process(t, within(t, time.Minute), newRecords("A.1 A.2 A.3 quick slow after"), func(ctx context.Context, r *batch.Record) error {
			if r.ID == "quick" {
				return nil
			}
			<-ctx.Done()
			if r.ID == "slow" {
				time.Sleep(100 * time.Millisecond)
				return nil // it was done in the end
			}
			time.Sleep(time.Millisecond) // at the very time of the cut, either may be first
			return context.Cause(ctx)
		}, concurrency(2))
		want := []string{
			"A.1 failed: batch: deadline is near",
			"A.2" + skippedForDeadline, "A.3" + skippedForDeadline,
			"quick succeeded", "slow succeeded", "after" + skippedForDeadline,
		}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took != 59100*time.Millisecond {
			t.Errorf("took %v, want 59.1s", took)
		}
	})
}

// All that is left of a lane at the cut was not started for want of time, not because something before it failed.
func TestCutBeforeALaneBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told trace
		report := process(t, within(t, time.Minute), newRecords("first A.1 A.2 A.3 B.1"), func(ctx context.Context, _ *batch.Record) error {
			<-ctx.Done()
			return nil
		}, concurrency(1), func(o *batch.Options) {
			o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) { told.add("%s", r.Record.ID) })}
		})
		want := []string{
			"first succeeded", "A.1" + skippedForDeadline, "A.2" + skippedForDeadline, "A.3" + skippedForDeadline, "B.1" + skippedForDeadline,
		}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if got := told.list(); len(got) != 5 {
			t.Errorf("finished hooks for %q, want one a record", got)
		}
	})
}

type finishedFunc func(*batch.Result)

func (f finishedFunc) OnRecordFinished(_ context.Context, r *batch.Result) { f(r) }

func TestDeadlinePastOrCancelledBefore(t *testing.T) {
	cause := errors.New("shutting down")
	for _, test := range []struct {
		name   string
		parent func(context.Context) (context.Context, context.CancelFunc)
		is     error
	}{
		{"past", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, -time.Minute)
		}, context.DeadlineExceeded},
		{"now", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 0)
		}, context.DeadlineExceeded},
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			return ctx, func() {}
		}, cause},
		{"cancelled, with a deadline far away", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Hour, nil)
			cancel()
			return ctx, cancel
		}, context.Canceled},
	} {
		for _, r := range []time.Duration{-1, 0, time.Second} {
			t.Run(fmt.Sprintf("%s, reserve %v", test.name, r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					ctx, cancel := test.parent(t.Context())
					defer cancel()
					var calls trace
					report := runStages(t, ctx, newRecords("A.1 A.2 x"), &stages{
						prepare: func(context.Context, int) (string, error) { calls.add("prepare"); return "", nil },
					}, reserve(r))
					for i := range report.Results {
						if r := report.Results[i]; r.Outcome != batch.Skipped || !errors.Is(r.Err, batch.ErrDeadlineNear) || !errors.Is(r.Err, test.is) {
							t.Errorf("result = %s, want skipped for ErrDeadlineNear and %v", summarize(&r), test.is)
						}
					}
					if len(calls.list()) > 0 || time.Since(begin) > 0 {
						t.Errorf("%d records prepared in %v, want none in no time", len(calls.list()), time.Since(begin))
					}
				})
			})
		}
	}
}

func TestNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := process(t, t.Context(), newRecords("A.1 A.2"), func(ctx context.Context, _ *batch.Record) error {
			if deadline, ok := ctx.Deadline(); ok {
				t.Errorf("handler's deadline is %v, want none", deadline)
			}
			time.Sleep(100 * time.Hour)
			return ctx.Err()
		}, reserve(time.Minute))
		if diff := cmp.Diff([]string{"A.1 succeeded", "A.2 succeeded"}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestCancelled(t *testing.T) {
	for _, test := range []struct {
		name   string
		left   time.Duration // zero: no deadline
		cancel time.Duration
		answer time.Duration
	}{
		{"without a deadline", 0, time.Second, 2 * time.Second},
		{"long before the deadline", time.Hour, time.Second, 2 * time.Second},
		{"just before the cut", time.Minute, 58900 * time.Millisecond, 59500 * time.Millisecond},
		{"after the cut", time.Minute, 59200 * time.Millisecond, 59500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx := t.Context()
				if test.left > 0 {
					ctx = within(t, test.left)
				}
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(test.cancel, cancel)
				wake := make(chan struct{})
				report := process(t, ctx, newRecords("hangs heeds late A.1"), func(ctx context.Context, r *batch.Record) error {
					<-ctx.Done()
					switch r.ID {
					case "hangs":
						<-wake
					case "late":
						time.Sleep(100 * time.Millisecond)
						return nil
					}
					return ctx.Err()
				}, concurrency(3))
				if took := time.Since(begin); took != test.answer {
					t.Errorf("answer after %v, want %v", took, test.answer)
				}
				got := summary(report)
				want := []string{"hangs" + abandoned, "heeds failed: context canceled", "late succeeded", "A.1" + skippedForDeadline + ": context canceled"}
				if test.cancel > 59*time.Second {
					want[1], want[3] = "heeds failed: context deadline exceeded", "A.1"+skippedForDeadline
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				close(wake)
				synctest.Wait()
			})
		})
	}
}

// A claim whose reply comes too late starts no handler. It is settled, so that it can be released.
func TestAdmissionComesTooLate(t *testing.T) {
	for _, test := range []struct {
		name     string
		takes    time.Duration
		deadline time.Duration // of the admission, after the start
		cut      bool
	}{
		{"after its own deadline", 10 * time.Second, 9 * time.Second, false},
		{"at its own deadline", 10 * time.Second, 10 * time.Second, false},
		{"after the cut", 59100 * time.Millisecond, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var calls trace
				report := runStages(t, within(t, time.Minute), newRecords("A.1 A.2 x"), &stages{
					admit: func(_ context.Context, i int) (a batch.Admission) {
						if i == 0 {
							time.Sleep(test.takes)
							if test.deadline > 0 {
								a.Deadline = begin.Add(test.deadline)
							}
						}
						return a
					},
					run: func(_ context.Context, i int) error { calls.add("run %d", i); return nil },
					settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
						calls.add("settle %d %v", i, s.Outcome)
						return s
					},
				}, concurrency(1))
				want := []string{"A.1" + skippedForDeadline, "A.2" + skippedForOrder, "x succeeded"}
				wantCalls := []string{"settle 0 skipped", "run 2", "settle 2 succeeded"}
				if test.cut {
					want[1], want[2] = "A.2"+skippedForDeadline, "x"+skippedForDeadline
					wantCalls = wantCalls[:1]
				}
				if diff := cmp.Diff(want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(wantCalls, calls.list()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A decoder that takes so long that the time is up claims nothing any more.
func TestNothingIsAdmittedAfterTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls trace
		report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
			prepare: func(context.Context, int) (string, error) { time.Sleep(59200 * time.Millisecond); return "key", nil },
			admit:   func(context.Context, int) batch.Admission { calls.add("admit"); return batch.Admission{} },
			settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement {
				calls.add("settle %v", s.Outcome)
				return s
			},
		})
		if diff := cmp.Diff([]string{"a" + skippedForDeadline}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"settle skipped"}, calls.list()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestSettlesInTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(within(t, time.Minute), key{}, "value")
		ctx, cancel := context.WithCancel(ctx)
		deadline, _ := ctx.Deadline()
		runStages(t, ctx, newRecords("a"), &stages{
			run: func(ctx context.Context, _ int) error { cancel(); <-ctx.Done(); return nil },
			settle: func(ctx context.Context, _ int, s batch.Settlement) batch.Settlement {
				if end, _ := ctx.Deadline(); ctx.Err() != nil || !end.Equal(deadline) || ctx.Value(key{}) != "value" {
					t.Errorf("settling with %v until %v, want a live context with the batch's values until %v", ctx.Err(), end, deadline)
				}
				return s
			},
		})
	})
}
