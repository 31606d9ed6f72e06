package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// What lambda.Start takes.
var _ lambda.Handler = (*sqs.Handler[order])(nil)

// Case 33: concurrency 1 is strictly one at a time, in input order.
func TestHandlerConcurrencyOne(t *testing.T) {
	for _, options := range []func(*sqs.Options){func(*sqs.Options) {}, guarded(t)} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			running := 0
			w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
				mu.Lock()
				if running++; running != 1 {
					t.Errorf("%s runs beside another", m.ID())
				}
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			}}
			wantFailures(t, t.Context(), newHandler(t, w.handle, options, concurrency(1)), event(numbered(12)...))
			w.wantOrder(t, "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12")
		})
	}
}

// As many run at once as Concurrency says, 10 by default, and no more.
func TestHandlerConcurrency(t *testing.T) {
	for n, want := range map[int]int{0: 10, 2: 2, 25: 25, 100: 30} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			running, most := 0, 0
			w := &worker{work: func(context.Context, *sqs.Message[string]) error {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return nil
			}}
			wantFailures(t, t.Context(), newHandler(t, w.handle, concurrency(n)), event(numbered(30)...))
			if most != want {
				t.Errorf("concurrency %d: %d messages ran at once, want %d", n, most, want)
			}
		})
	}
}

// Lambda may run several invocations in one process at once. They share the handler, and none of its batches.
func TestHandlerOverlappingInvocations(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, func(ctx context.Context, m *sqs.Message[string]) error {
				time.Sleep(time.Second) // all invocations are in the middle of their batches
				invocation, _ := ctx.Value(contextKey{}).(string)
				if !strings.HasPrefix(m.Body, invocation) || m.ID() != m.Body {
					t.Errorf("invocation %s got message %q with body %q", invocation, m.ID(), m.Body)
				}
				if strings.HasSuffix(m.ID(), "-2") {
					return fmt.Errorf("%s fails", m.ID())
				}
				return nil
			}, options)
			var invocations sync.WaitGroup
			for i := range 5 {
				invocations.Go(func() {
					name := fmt.Sprint("invocation", i)
					var messages []message
					for k := range 4 {
						id := fmt.Sprint(name, "-", k)
						messages = append(messages, message{ID: id, Body: id})
					}
					ctx := context.WithValue(t.Context(), contextKey{}, name)
					wantFailures(t, ctx, h, event(messages...), name+"-2")
				})
			}
			invocations.Wait()
		})
	})
}

// The options are those at the construction. Nobody changes a handler that runs.
func TestHandlerCopiesOptions(t *testing.T) {
	var kept *sqs.Options
	w := &worker{errs: failing("m1")}
	h := newHandler(t, w.handle, func(o *sqs.Options) { kept = o })
	kept.ErrorOn = batch.ErrorOnAnyFailure
	wantFailures(t, t.Context(), h, event(numbered(2)...), "m1")
}

// Middleware is around the handler, and sees the message as the value of its record.
func TestHandlerMiddleware(t *testing.T) {
	var calls []string
	middleware := func(name string) batch.Middleware {
		return func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				m := r.Value.(*sqs.Message[string])
				calls = append(calls, fmt.Sprint(name, " ", r.ID, " ", m.Body, " ", r.Attempt, " ", r.Source == m.QueueARN()))
				if m.Body == "stop" {
					return fmt.Errorf("stopped")
				}
				return next(ctx, r)
			}
		}
	}
	w := &worker{}
	h := newHandler(t, w.handle, concurrency(1), func(o *sqs.Options) {
		o.Middleware = []batch.Middleware{middleware("outer"), middleware("inner")}
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: "go", Receives: 3}, message{ID: "m2", Body: "stop"}), "m2")
	w.want(t, "m1")
	want := []string{"outer m1 go 3 true", "inner m1 go 3 true", "outer m2 stop 1 true"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// hooks notes what it is told of.
type hooks struct {
	mu    sync.Mutex
	calls []string
}

func (h *hooks) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
}

func (h *hooks) OnBatchStarted(_ context.Context, records []batch.Record) {
	h.note("started %d", len(records))
}
func (h *hooks) OnRecordFinished(_ context.Context, r *batch.Result) {
	h.note("%s %v", r.Record.ID, r.Outcome)
}
func (h *hooks) OnBatchFinished(_ context.Context, r *batch.Report) {
	h.note("finished %d, %d failed", len(r.Results), r.Failed())
}

// Hooks are told of every message, those that no handler ran for too.
func TestHandlerHooks(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var told hooks
		w := &worker{errs: failing("a1")}
		h := newHandler(t, w.handle, options, func(o *sqs.Options) { o.Hooks = []batch.Hook{&told} })
		messages := append(grouped("a1", "a2", "b1"), message{ID: "b1", Group: "b", ARN: fifoARN})
		wantFailures(t, t.Context(), h, event(messages...), "a1", "a2")
		if first, last := told.calls[0], told.calls[len(told.calls)-1]; first != "started 4" || last != "finished 4, 2 failed" {
			t.Errorf("first call is %q, last is %q", first, last)
		}
		records := told.calls[1 : len(told.calls)-1]
		slices.Sort(records)
		want := []string{"a1 failed", "a2 skipped", "b1 replayed", "b1 succeeded"}
		if diff := cmp.Diff(want, records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

// An option function that is nil, as where an option depends on a condition, is skipped.
func TestNilOptionFunction(t *testing.T) {
	w := &worker{}
	wantFailures(t, t.Context(), newHandler(t, w.handle, nil, concurrency(1), nil), event(numbered(2)...))
	w.wantOrder(t, "m1", "m2")
}
