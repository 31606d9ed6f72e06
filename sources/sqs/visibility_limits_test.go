package sqs_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// SQS counts its 12 hours from the receive, so what the batch took is not left to be asked for.
func TestVisibilityOfALongBatch(t *testing.T) {
	const took = 5*time.Minute + 900*time.Millisecond
	for _, test := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"longer than can be", retryAfter(24 * time.Hour), longest - 5*time.Minute},
		{"just as long", retryAfter(longest - 5*time.Minute), longest - 5*time.Minute},
		{"shorter", retryAfter(time.Hour), time.Hour},
		{"held for long", &idempotency.InProgressError{Key: "k", Free: time.Now().Add(50 * 365 * 24 * time.Hour)}, longest - 5*time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c changer
				w := &worker{work: func(context.Context, *sqs.Message[string]) error { time.Sleep(took); return test.err }}
				wantFailures(t, t.Context(), newHandler(t, w.handle, c.option), event(numbered(1)...), "m1")
				c.want(t, change(standardARN, "m1", test.want))
			})
		})
	}
}

// The whole of it, with a queue that refuses what SQS refuses: the longest batching window, the longest function.
func TestVisibilityIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue("orders", func(o *sqstest.Options) {
			o.FunctionTimeout, o.BatchSize, o.BatchingWindow = 15*time.Minute, 100, 5*time.Minute
		})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := q.Send(sqstest.Message{Body: "m"}); err != nil {
			t.Fatal(err)
		}
		var logged logs
		var at []time.Time
		h := newHandler(t, func(context.Context, *sqs.Message[string]) error {
			if at = append(at, time.Now()); len(at) > 1 {
				return nil
			}
			time.Sleep(14 * time.Minute)
			return retryAfter(24 * time.Hour)
		}, logged.option, func(o *sqs.Options) {
			o.Visibility = sqs.VisibilityFunc(func(ctx context.Context, c sqs.VisibilityChange) error {
				return q.ChangeVisibility(ctx, c.ReceiptHandle, c.Timeout)
			})
		})
		if err := q.Drain(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if lines := logged.About(t, "visibility of failed messages was not changed"); len(lines) > 0 {
			t.Errorf("lines: %+v, want none", lines)
		}
		if len(at) != 2 || at[1].Sub(at[0]) < longest {
			t.Errorf("handled at %v, want twice, %v apart", at, longest)
		}
	})
}

// A VisibilityFunc that is nil is a Visibility all the same, and would panic in the first batch that fails.
func TestVisibilityFuncNil(t *testing.T) {
	_, err := sqs.NewHandler((&worker{}).handle, func(o *sqs.Options) { o.Visibility = sqs.VisibilityFunc(nil) })
	wantError(t, err, "sqs: Options.Visibility is a nil VisibilityFunc, want a function or nil")
}

// choosyError panics if it is asked whether it is one of the errors that visibility depends on.
type choosyError struct{}

func (choosyError) Error() string { return "choosy" }
func (choosyError) As(target any) bool {
	if _, ok := target.(**idempotency.InProgressError); ok {
		panic("not that one")
	}
	return false
}

// A handler's error that panics when it is looked at costs the change of visibility, and no answer.
func TestVisibilityOfAnErrorThatPanics(t *testing.T) {
	var logged logs
	var c changer
	w := &worker{errs: map[string]error{"m1": choosyError{}, "m2": retryAfter(time.Minute)}}
	wantFailures(t, t.Context(), newHandler(t, w.handle, c.option, logged.option), event(numbered(3)...), "m1", "m2")
	c.want(t)
	lines := logged.About(t, "visibility of failed messages was not changed")
	if len(lines) != 1 || !strings.Contains(logged.Text(), "not that one") {
		t.Errorf("lines: %+v, want one that says why", lines)
	}
}
