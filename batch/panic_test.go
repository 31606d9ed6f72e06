package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// ways to end a function that no caller expects.
var violence = []struct {
	name string
	do   func()
	err  string
	is   error
}{
	{"panic", func() { panic("ouch") }, "batch: panic: ouch", nil},
	{"panic with an error", func() { panic(fmt.Errorf("wrapped: %w", errBoom)) }, "batch: panic: wrapped: boom", errBoom},
	{"panic(nil)", func() { panic(nil) }, "batch: panic: panic called with nil argument", nil},
	{"runtime error", func() { none := numbered(0); _ = none[len(none)] },
		"batch: panic: runtime error: index out of range [0] with length 0", nil},
	{"Goexit", func() { runtime.Goexit() }, "batch: panic(nil) or runtime.Goexit", nil},
	{"FailNow of a test", func() { new(testing.T).FailNow() }, "batch: panic(nil) or runtime.Goexit", nil},
	{"panic with a nil pointer to an error", func() { panic((*brokenError)(nil)) },
		"batch: panic: an error of type *batch_test.brokenError whose methods panic", nil},
	{"panic with an error that ends the goroutine", func() { panic(exitingError{}) },
		"batch: panic: an error of type batch_test.exitingError whose methods panic", nil},
}

// brokenError is an error whose methods panic if it is a nil pointer, as they do when a function returns a nil pointer of
// a type of its own as an error.
type brokenError struct{ message string }

func (e *brokenError) Error() string { return e.message }
func (e *brokenError) Unwrap() error { return errors.New(e.message) }

// Wherever user code panics or ends its goroutine, one record fails with its stack, and the others go on. It is settled if
// it was not settling that went wrong.
func TestPanics(t *testing.T) {
	for _, place := range []string{"prepare", "twin", "admit", "run", "middleware", "sink", "settle"} {
		for _, v := range violence {
			for _, n := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s in %s with concurrency %d", v.name, place, n), func(t *testing.T) {
					records := newRecords("a A.b A.after c d e")
					at := func(here string, i int) {
						if i == 1 && here == place {
							v.do()
						}
					}
					var settled trace
					report := runStages(t, t.Context(), records, &stages{
						prepare: func(_ context.Context, i int) (string, error) {
							at("prepare", i)
							if place == "twin" && i < 2 {
								return "same", nil
							}
							return "", nil
						},
						// Either of the two may lead.
						twin:  func(leader, follower int) error { at("twin", 1); return nil },
						admit: func(_ context.Context, i int) batch.Admission { at("admit", i); return batch.Admission{} },
						run: func(_ context.Context, i int) error {
							at("run", i)
							if place == "sink" && i == 1 {
								return batch.Permanent(errors.New("useless"))
							}
							return nil
						},
						settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
							if i == 1 {
								settled.add("%v", s.Outcome)
							}
							at("settle", i)
							return s
						},
					}, concurrency(n), func(o *batch.Options) {
						o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
							return func(ctx context.Context, r *batch.Record) error {
								if r.ID == "A.b" {
									at("middleware", 1)
								}
								return next(ctx, r)
							}
						}}
						if place == "sink" {
							o.DeadLetter = func(context.Context, *batch.Record, error) error { v.do(); return nil }
						}
					})

					victim := 1
					if place == "twin" && report.Results[0].Outcome == batch.Failed {
						victim = 0
					}
					wantErr := v.err
					if place == "sink" {
						wantErr = "useless\nbatch: dead-letter sink: " + wantErr
					}
					for i := range report.Results {
						r := report.Results[i]
						switch {
						case i == victim:
							if r.Outcome != batch.Failed || r.Err == nil || r.Err.Error() != wantErr {
								t.Errorf("victim %s, want failed: %s", summarize(&r), wantErr)
							}
						case i == 2 && victim == 1:
							if r.Err != batch.ErrOrder {
								t.Errorf("next of the lane %s, want it skipped", summarize(&r))
							}
						case r.Outcome != batch.Succeeded:
							t.Errorf("bystander %s, want it succeeded", summarize(&r))
						}
					}
					err := report.Results[victim].Err
					if v.is != nil && !errors.Is(err, v.is) {
						t.Errorf("error %v does not match the one of the panic", err)
					}
					p, ok := errors.AsType[*batch.PanicError](err)
					if !ok {
						t.Fatalf("error is %#v, want a PanicError in it", err)
					}
					if stack := string(p.Stack); (p.Value == nil) != (stack == "") {
						t.Errorf("panic of %v with stack %q", p.Value, stack)
					} else if stack != "" && !strings.Contains(stack, "batch_test.init.func") {
						t.Errorf("stack does not show where the panic was:\n%s", stack)
					}
					if place == "twin" && victim == 0 {
						return
					}
					want := []string{"failed"}
					if place == "settle" {
						want = []string{"succeeded"}
					}
					if diff := cmp.Diff(want, settled.list()); diff != "" {
						t.Errorf("settled (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// Settling that goes wrong does not hide why there was something to settle.
func TestPanicInSettleKeepsTheError(t *testing.T) {
	for _, v := range violence {
		report := runStages(t, t.Context(), newRecords("a"), &stages{
			run:    func(context.Context, int) error { return errBoom },
			settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement { v.do(); return s },
		})
		if diff := cmp.Diff([]string{"a failed: boom; " + v.err}, summary(report)); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", v.name, diff)
		}
	}
}

func TestEveryRecordPanics(t *testing.T) {
	for _, v := range violence {
		for _, n := range []int{1, 8} {
			report := process(t, t.Context(), numbered(200), func(context.Context, *batch.Record) error { v.do(); return nil }, concurrency(n))
			if got := report.Count(batch.Failed); got != 200 {
				t.Errorf("%s: %d failed, want 200", v.name, got)
			}
		}
	}
}

// The handler's deferred functions have run before its record is settled, also after Goexit.
func TestDeferredBeforeSettling(t *testing.T) {
	for _, v := range violence {
		var tr trace
		runStages(t, t.Context(), newRecords("a"), &stages{
			run: func(context.Context, int) error {
				defer tr.add("deferred")
				v.do()
				return nil
			},
			settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement { tr.add("settled"); return s },
		})
		if diff := cmp.Diff([]string{"deferred", "settled"}, tr.list()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.name, diff)
		}
	}
}

// panickingHandler is a log handler that panics with each line.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("no room on the disk") }

// A logger that panics costs its lines and nothing else, wherever it is called: in a worker, at the cut and in the answer,
// after a panic in a hook.
func TestPanickingLogger(t *testing.T) {
	for _, place := range []string{"worker", "settle", "cut", "hook", "reserve"} {
		t.Run(place, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if place == "reserve" {
				var cancelDeadline context.CancelFunc
				ctx, cancelDeadline = context.WithTimeout(ctx, 1<<40)
				defer cancelDeadline()
			}
			var told trace
			report := runStages(t, ctx, newRecords("A.1 A.2 A.3 b"), &stages{
				run: func(_ context.Context, i int) error {
					switch {
					case place == "cut":
						cancel()
					case i == 0:
						return errBoom
					}
					return nil
				},
				settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
					if place == "settle" && i == 0 {
						panic("settle")
					}
					return s
				},
			}, concurrency(1), func(o *batch.Options) {
				o.Logger = slog.New(panickingHandler{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})})
				if place == "reserve" {
					o.Reserve = 1 << 40
				}
				o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) {
					told.add("%s", r.Record.ID)
					if place == "hook" {
						panic("hook")
					}
				})}
			})
			if len(report.Results) != 4 {
				t.Fatalf("report = %v, want 4 results", report)
			}
			if got := told.list(); len(got) != 4 {
				t.Errorf("hooks for %q, want one a record", got)
			}
			last := report.Results[3].Outcome
			if want := map[bool]batch.Outcome{true: batch.Skipped, false: batch.Succeeded}[place == "cut"]; last != want {
				t.Errorf("last is %v, want %v", last, want)
			}
		})
	}
}

// Middleware that is no function after all runs no handler.
func TestMiddlewareReturnsNil(t *testing.T) {
	ran := false
	report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { ran = true; return nil },
		func(o *batch.Options) {
			o.Middleware = []batch.Middleware{func(batch.Handler) batch.Handler { return nil }}
		})
	if ran || report.Count(batch.Failed) != 1 {
		t.Errorf("ran = %v, report = %v, want one failed record that did not run", ran, report)
	}
}
