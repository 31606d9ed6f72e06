package batch_test

import (
	"context"
	"errors"
	"testing"

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
