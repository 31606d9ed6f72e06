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

// hanging is stages, middleware and a sink in which the first record hangs at one place until wake is closed.
type hanging struct {
	at    string
	wake  chan struct{}
	calls trace
}

func (h *hanging) reach(place string, i int) {
	if i != 0 {
		return
	}
	h.calls.add("%s", place)
	if h.at == place {
		<-h.wake
		h.calls.add("woke up")
	}
}

func (h *hanging) stages(t *testing.T) *stages {
	return &stages{
		prepare: func(_ context.Context, i int) (string, error) {
			h.reach("prepare", i)
			return "key " + string(rune('a'+i)), nil
		},
		admit: func(_ context.Context, i int) batch.Admission {
			h.reach("admit", i)
			return batch.Admission{Attempt: 7}
		},
		run: func(_ context.Context, i int) error {
			h.reach("run", i)
			if h.at == "sink" && i == 0 {
				return batch.Permanent(errBoom)
			}
			return nil
		},
		settle: func(ctx context.Context, i int, s batch.Settlement) batch.Settlement {
			h.reach("settle", i)
			if i == 0 {
				h.calls.add("settled %v", s.Outcome)
				if err := ctx.Err(); err != nil {
					t.Errorf("settling with a context that has ended: %v", err)
				}
			}
			return s
		},
	}
}

func (h *hanging) options(o *batch.Options) {
	o.DeadLetter = func(_ context.Context, _ *batch.Record, err error) error { h.reach("sink", 0); return nil }
	o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			if r.ID == "A.1" {
				h.reach("middleware", 0)
			}
			return next(ctx, r)
		}
	}}
}

// Wherever a record hangs, the answer goes out in time, and what the straggler does later changes nothing of it: it
// settles its claim, with the time that the batch still has, and that is all.
func TestStraggler(t *testing.T) {
	for _, test := range []struct {
		at    string
		want  string
		after []string // what it does when it wakes up
	}{
		{"prepare", skippedForDeadline, []string{"settle", "settled skipped"}},
		{"admit", skippedForDeadline, []string{"settle", "settled skipped"}},
		{"middleware", abandoned, []string{"run", "settle", "settled succeeded"}},
		{"run", abandoned, []string{"settle", "settled succeeded"}},
		{"sink", abandoned, []string{"settle", "settled dead-lettered"}},
		{"settle", abandoned, []string{"settled succeeded"}},
	} {
		t.Run(test.at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				h := hanging{at: test.at, wake: make(chan struct{})}
				var told trace
				report := runStages(t, within(t, time.Minute), newRecords("A.1 A.2 x"), h.stages(t), h.options, concurrency(2),
					reserve(10*time.Second), logTo(&told), func(o *batch.Options) {
						o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) { told.add("hook %s", r.Record.ID) })}
					})
				if took := time.Since(begin); took != 55*time.Second {
					t.Errorf("answer after %v, want 55s", took)
				}
				want := []string{"A.1" + test.want, "A.2" + skippedForDeadline, "x succeeded"}
				if diff := cmp.Diff(want, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				before, toldBefore, callsBefore := snapshot(report), told.list(), h.calls.list()

				close(h.wake)
				// While it wakes up, the caller may look at the report: the race detector watches both.
				for range 100 {
					_ = snapshot(report)
				}
				synctest.Wait()

				if diff := cmp.Diff(before, snapshot(report)); diff != "" {
					t.Errorf("the report changed after the answer (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(toldBefore, told.list()); diff != "" {
					t.Errorf("log lines and hooks after the answer (-before +after):\n%s", diff)
				}
				after := append([]string{"woke up"}, test.after...)
				if diff := cmp.Diff(after, h.calls.list()[len(callsBefore):]); diff != "" {
					t.Errorf("what the straggler did (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// snapshot is all that a caller can see of a report.
func snapshot(r *batch.Report) []string {
	lines := append(summary(r), r.String())
	for i := range r.Results {
		result := &r.Results[i]
		lines = append(lines, result.Record.Key, result.Record.Lane, string(rune('0'+result.Record.Attempt)), result.Duration.String())
	}
	return lines
}

// A twin that is compared too late, and one that waits for a leader who hangs.
func TestStragglingTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var calls trace
		report := runStages(t, within(t, time.Minute), newRecords("leader waits A.slow A.after"), &stages{
			prepare: func(_ context.Context, i int) (string, error) {
				time.Sleep(time.Duration(i) * time.Second)
				return "same", nil
			},
			twin: func(leader, follower int) error {
				if calls.add("twin %d %d", leader, follower); follower == 2 {
					<-wake
				}
				return nil
			},
			run: func(_ context.Context, i int) error { calls.add("run %d", i); <-wake; return nil },
			settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
				calls.add("settle %d", i)
				return s
			},
		}, concurrency(3))
		want := []string{"leader" + abandoned, "waits" + abandoned, "A.slow" + skippedForDeadline, "A.after" + skippedForDeadline}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		before := snapshot(report)
		close(wake)
		synctest.Wait()
		if diff := cmp.Diff(before, snapshot(report)); diff != "" {
			t.Errorf("the report changed after the answer (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"run 0", "twin 0 1", "twin 0 2", "settle 0"}, calls.list()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// A sink that hangs is at work with its record, also where that never got to its handler: the record is Abandoned, so that
// PanicOnAbandoned ends the environment in which the sink still runs.
func TestStragglingSinkOfARefusedRecord(t *testing.T) {
	for _, refused := range []string{"prepare", "prepare panics", "twin", "admit"} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, panics %v", refused, panics), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					wake := make(chan struct{})
					var calls trace
					var reported *batch.Report
					begin := time.Now()
					value := func() (value any) {
						defer func() { value = recover() }()
						runStages(t, within(t, time.Minute), newRecords("x A.1 A.2 b"), &stages{
							prepare: func(_ context.Context, i int) (string, error) {
								switch {
								case i != 1:
								case refused == "prepare":
									return "", batch.Permanent(errBoom)
								case refused == "prepare panics":
									panic(batch.Permanent(errBoom))
								case refused == "twin":
									return "key 0", nil
								}
								return fmt.Sprint("key ", i), nil
							},
							twin: func(int, int) error { return batch.Permanent(errBoom) },
							admit: func(_ context.Context, i int) batch.Admission {
								if i == 1 && refused == "admit" {
									return batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(errBoom)}
								}
								return batch.Admission{}
							},
							run: func(_ context.Context, i int) error {
								if i == 1 {
									t.Error("the refused record ran")
								}
								return nil
							},
							settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
								if i == 1 {
									calls.add("settled %v", s.Outcome)
								}
								return s
							},
						}, concurrency(1), func(o *batch.Options) {
							o.PanicOnAbandoned = panics
							o.Hooks = []batch.Hook{batchFinishedFunc(func(r *batch.Report) { reported = r })}
							o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
								calls.add("sink %s", r.ID)
								<-wake
								return nil
							}
						})
						return nil
					}()
					if took := time.Since(begin); took >= time.Minute {
						t.Errorf("answer after %v, want it before the deadline", took)
					}
					want := []string{"x succeeded", "A.1" + abandoned, "A.2" + skippedForDeadline, "b" + skippedForDeadline}
					if diff := cmp.Diff(want, summary(reported)); diff != "" {
						t.Errorf("results (-want +got):\n%s", diff)
					}
					if took := reported.Results[1].Duration; took <= 0 || took >= time.Minute {
						t.Errorf("the sink's record took %v, want the time of the batch", took)
					}
					err, _ := value.(error)
					failed, ok := errors.AsType[*batch.FailedError](err)
					if ok != panics || (value != nil) != panics || (ok && (failed.ID != "A.1" || failed.First != batch.ErrAbandoned)) {
						t.Errorf("panic is %v, want a FailedError of A.1, abandoned: %v", value, panics)
					}
					close(wake)
					synctest.Wait()
					if diff := cmp.Diff([]string{"sink A.1", "settled dead-lettered"}, calls.list()); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// A straggler that fails after the answer went out is not dead-lettered: its source was told that it comes back.
func TestLateFailureIsNotDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var calls trace
		runStages(t, within(t, time.Minute), newRecords("a b"), &stages{
			run: func(_ context.Context, i int) error {
				<-wake
				if i == 0 {
					return batch.Permanent(errBoom)
				}
				panic("late")
			},
			settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
				calls.add("settle %d %v: %v", i, s.Outcome, s.Err)
				return s
			},
		}, concurrency(2), func(o *batch.Options) {
			o.MaxAttempts = 1
			o.DeadLetter = func(context.Context, *batch.Record, error) error { calls.add("sink"); return nil }
		})
		if got := calls.list(); got != nil {
			t.Errorf("before the straggler woke up: %q, want nothing", got)
		}
		close(wake)
		synctest.Wait()
		got := calls.list()
		if len(got) == 2 && got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		if diff := cmp.Diff([]string{"settle 0 failed: boom", "settle 1 failed: batch: panic: late"}, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Goexit in a straggler: its successor settles, and ends.
func TestLateGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var settled trace
		report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
			run: func(context.Context, int) error { <-wake; return exit() },
			settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement {
				settled.add("%v", s.Outcome)
				return s
			},
		})
		close(wake)
		synctest.Wait()
		if diff := cmp.Diff([]string{"failed"}, settled.list()); diff != "" {
			t.Errorf("settled (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a" + abandoned}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestStragglersHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var calls trace
		report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
			admit: func(context.Context, int) batch.Admission {
				calls.add("admit")
				<-wake
				return batch.Admission{Outcome: batch.InProgress, RetryAt: time.Now().Add(time.Second)}
			},
		})
		before := snapshot(report)
		close(wake)
		synctest.Wait()
		time.Sleep(time.Hour)
		if diff := cmp.Diff(before, snapshot(report)); diff != "" {
			t.Errorf("the report changed after the answer (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"admit"}, calls.list()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Process waits for all its goroutines but those that are still late: not for the one that hangs, and neither less nor
// more because another straggler woke up while the answer was being made.
func TestProcessWaitsForAllButTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		wake := make(chan struct{})
		report := process(t, within(t, time.Minute), newRecords("hangs wakes hook"), func(_ context.Context, r *batch.Record) error {
			switch r.ID {
			case "hangs":
				<-wake
			case "wakes":
				time.Sleep(55500 * time.Millisecond)
			case "hook":
				time.Sleep(54 * time.Second)
			}
			return nil
		}, reserve(10*time.Second), func(o *batch.Options) {
			o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) {
				switch r.Record.ID {
				case "hangs":
					time.Sleep(time.Second) // at 55s, in the goroutine of Process
				case "hook":
					time.Sleep(6 * time.Second) // at 54s, in a worker
				}
			})}
		})
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("Process took %v, want the 1m of the last hook", took)
		}
		if diff := cmp.Diff([]string{"hangs" + abandoned, "wakes" + abandoned, "hook succeeded"}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		close(wake)
		synctest.Wait()
	})
}

func TestPanicOnAbandoned(t *testing.T) {
	for _, test := range []struct {
		name   string
		hangs  bool
		panics bool
	}{
		{"a handler hangs", true, true},
		{"a handler fails", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wake := make(chan struct{})
				var told trace
				var value any
				func() {
					defer func() { value = recover() }()
					process(t, within(t, time.Minute), newRecords("x a b"), func(_ context.Context, r *batch.Record) error {
						switch {
						case r.ID == "x":
							return nil
						case r.ID == "a" && test.hangs:
							<-wake
						}
						return errBoom
					}, func(o *batch.Options) {
						o.PanicOnAbandoned = true
						o.Hooks = []batch.Hook{batchFinishedFunc(func(r *batch.Report) { told.add("%d failed", r.Failed()) })}
					})
				}()
				err, _ := value.(error)
				failed, ok := errors.AsType[*batch.FailedError](err)
				if ok != test.panics || (value != nil) != test.panics {
					t.Errorf("panic = %v, want a FailedError: %v", value, test.panics)
				}
				if ok && (failed.Failed != 2 || failed.Records != 3 || failed.First != batch.ErrAbandoned || failed.ID != "a") {
					t.Errorf("error = %+v, want 2 of 3, the first (a): ErrAbandoned", failed)
				}
				if diff := cmp.Diff([]string{"2 failed"}, told.list()); diff != "" {
					t.Errorf("finished hooks (-want +got):\n%s", diff)
				}
				close(wake)
				synctest.Wait()
			})
		})
	}
}

type batchFinishedFunc func(*batch.Report)

func (f batchFinishedFunc) OnBatchFinished(_ context.Context, r *batch.Report) { f(r) }
