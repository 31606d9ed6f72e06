package batch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

func TestMiddlewareOrder(t *testing.T) {
	var tr trace
	named := func(name string) batch.Middleware {
		tr.add("%s wraps", name)
		return func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				tr.add("%s before %s", name, r.ID)
				err := next(context.WithValue(ctx, middlewareKey(name), name), r)
				tr.add("%s after %s: %v", name, r.ID, err)
				return err
			}
		}
	}
	process(t, t.Context(), newRecords("a b"), func(ctx context.Context, r *batch.Record) error {
		tr.add("handler %s: %v %v", r.ID, ctx.Value(middlewareKey("outer")), ctx.Value(middlewareKey("inner")))
		return errBoom
	}, concurrency(1), func(o *batch.Options) { o.Middleware = []batch.Middleware{named("outer"), named("inner")} })
	want := []string{
		"outer wraps", "inner wraps",
		"outer before a", "inner before a", "handler a: outer inner", "inner after a: boom", "outer after a: boom",
		"outer before b", "inner before b", "handler b: outer inner", "inner after b: boom", "outer after b: boom",
	}
	if diff := cmp.Diff(want, tr.list()); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

type middlewareKey string

func TestMiddlewareDecides(t *testing.T) {
	own := func(change func(*batch.Record) *batch.Record) batch.Middleware {
		return func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error { return next(ctx, change(r)) }
		}
	}
	const refused = "a failed: batch: middleware handed on a record of its own making, want the one it was given"
	for _, test := range []struct {
		name       string
		middleware batch.Middleware
		runs       int
		want       string
	}{
		{"does without the handler", func(batch.Handler) batch.Handler {
			return func(context.Context, *batch.Record) error { return nil }
		}, 0, "a succeeded"},
		{"refuses", func(batch.Handler) batch.Handler {
			return func(context.Context, *batch.Record) error { return errBoom }
		}, 0, "a failed: boom"},
		{"hides an error", func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error { _ = next(ctx, r); return nil }
		}, 1, "a succeeded"},
		{"makes an error final", func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error { return batch.Permanent(next(ctx, r)) }
		}, 1, "a dead-lettered: useless"},
		{"tries twice", func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error { return errors.Join(next(ctx, r), next(ctx, r)) }
		}, 2, "a failed: useless; useless"},
		{"recovers", func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) (err error) {
				defer func() { err = recover().(error) }()
				panic(next(ctx, r))
			}
		}, 1, "a failed: useless"},
		{"hands on nothing", own(func(*batch.Record) *batch.Record { return nil }), 0, refused},
		{"hands on its own record", own(func(r *batch.Record) *batch.Record { return &batch.Record{ID: r.ID} }), 0, refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs := 0
			report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error {
				runs++
				return errors.New("useless")
			}, func(o *batch.Options) {
				o.Middleware = []batch.Middleware{test.middleware}
				o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
			})
			if diff := cmp.Diff([]string{test.want}, summary(report)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if runs != test.runs {
				t.Errorf("handler ran %d times, want %d", runs, test.runs)
			}
		})
	}
}

// Middleware is around the handler and around nothing else: what is not run does not reach it. It sees the record's key.
func TestMiddlewareSeesWhatRuns(t *testing.T) {
	var seen trace
	runStages(t, t.Context(), newRecords("undecodable replayed A.fails A.skipped twin runs"), &stages{
		prepare: func(_ context.Context, i int) (string, error) {
			switch i {
			case 0:
				return "", errBoom
			case 2, 4:
				return "twins", nil
			}
			return "", nil
		},
		admit: func(_ context.Context, i int) (a batch.Admission) {
			if i == 1 {
				a.Outcome = batch.Replayed
			}
			return a
		},
		run: func(_ context.Context, i int) error {
			if i == 2 {
				return errBoom
			}
			return nil
		},
	}, concurrency(1), func(o *batch.Options) {
		o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				err := next(ctx, r)
				seen.add("%s %q: %v", r.ID, r.Key, err)
				return err
			}
		}}
	})
	if diff := cmp.Diff([]string{`A.fails "twins": boom`, `runs "": <nil>`}, seen.list()); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
}

// A middleware may give up on a handler. The record does not: it is settled after the handler has returned, and abandoned
// if that is too late for the answer. Its claim is nobody else's meanwhile.
func TestMiddlewareReturnsBeforeTheHandler(t *testing.T) {
	patient := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			done := make(chan error, 1)
			go func() { done <- next(ctx, r) }()
			select {
			case err := <-done:
				return err
			case <-time.After(2 * time.Second):
				return errors.New("no patience")
			}
		}
	}
	for _, test := range []struct {
		name  string
		works time.Duration
		want  string
		at    time.Duration // of the answer
		calls []string
	}{
		{"in time", time.Second, "a failed: boom", time.Second, []string{"1s returns", "1s settle failed: boom"}},
		{"before the answer", 20 * time.Second, "a failed: no patience", 20 * time.Second,
			[]string{"20s returns", "20s settle failed: no patience"}},
		{"after the answer", 2 * time.Minute, "a" + abandoned, 59500 * time.Millisecond,
			[]string{"2m0s returns", "2m0s settle failed: no patience"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var calls trace
				report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
					run: func(context.Context, int) error {
						time.Sleep(test.works)
						calls.add("%v returns", time.Since(begin))
						return errBoom
					},
					settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement {
						calls.add("%v settle %v: %v", time.Since(begin), s.Outcome, s.Err)
						return s
					},
				}, func(o *batch.Options) { o.Middleware = []batch.Middleware{patient} })
				if took := time.Since(begin); took != test.at {
					t.Errorf("took %v, want %v", took, test.at)
				}
				if diff := cmp.Diff([]string{test.want}, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				time.Sleep(time.Hour)
				if diff := cmp.Diff(test.calls, calls.list()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A handler that is called only after its middleware has returned, and its claim is given back, does not run.
func TestMiddlewareCallsTheHandlerTooLate(t *testing.T) {
	late, called := make(chan struct{}), make(chan error)
	ran := false
	report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { ran = true; return nil },
		func(o *batch.Options) {
			o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
				return func(ctx context.Context, r *batch.Record) error {
					go func() {
						<-late
						called <- next(ctx, r)
					}()
					return errBoom
				}
			}}
		})
	if diff := cmp.Diff([]string{"a failed: boom"}, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	close(late)
	const want = "batch: middleware called the handler after it had returned"
	if err := <-called; ran || err == nil || err.Error() != want {
		t.Errorf("error is %v, ran = %v, want %q and no run", err, ran, want)
	}
}

// A middleware that panics when it is put around the handler fails each record with that, and shows where.
func TestMiddlewarePanicsWhenApplied(t *testing.T) {
	var settled trace
	ran := false
	report := runStages(t, t.Context(), newRecords("a b"), &stages{
		run: func(context.Context, int) error { ran = true; return nil },
		settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
			settled.add("%d %v", i, s.Outcome)
			return s
		},
	}, concurrency(1), func(o *batch.Options) {
		o.Middleware = []batch.Middleware{
			func(next batch.Handler) batch.Handler { return next },
			func(batch.Handler) batch.Handler { panic("no settings") },
		}
	})
	if diff := cmp.Diff([]string{"a failed: batch: panic: no settings", "b failed: batch: panic: no settings"}, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 failed", "1 failed"}, settled.list()); diff != "" || ran {
		t.Errorf("ran = %v, want false; settled (-want +got):\n%s", ran, diff)
	}
	p, ok := errors.AsType[*batch.PanicError](report.Results[1].Err)
	if !ok || !strings.Contains(string(p.Stack), "TestMiddlewarePanicsWhenApplied") {
		t.Errorf("error is %#v, want a PanicError whose stack shows the middleware", report.Results[1].Err)
	}
}
