package sqs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// A handler that ignores its context does not take its batch down: the answer goes out in time and names its message,
// and those that never started.
func TestDeadlineOfAHungHandler(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			var logged logs
			release := make(chan struct{})
			w := &worker{work: func(ctx context.Context, m *sqs.Message[string]) error {
				if m.ID() == "a1" {
					<-release
				}
				return nil
			}}
			h := newHandler(t, w.handle, options, logged.option)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begin := time.Now()
			response, err := h.Invoke(ctx, event(grouped("a1", "a2", "b1")...))
			if err != nil {
				t.Fatal(err)
			}
			// With one worker nothing else starts.
			if got := strings.Join(answer(t, response), " "); got != "a1 a2" && got != "a1 a2 b1" {
				t.Errorf("messages reported as failed: %s, want a1, a2, and b1 if there was no worker for it", got)
			}
			if took := time.Since(begin); took != 19500*time.Millisecond {
				t.Errorf("the answer took %v, want half a reserve less than 20s", took)
			}
			if line := logged.Failure(t, "a1"); line.Outcome != "abandoned" || line.Error != batch.ErrAbandoned.Error() {
				t.Errorf("line is %+v, want an abandoned message", line)
			}
			close(release)
		})
	})
}

// What a straggler finishes after the answer is finished: its message is not run again.
func TestDeadlineOfALateFinisher(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for _, after := range []time.Duration{time.Millisecond, 2 * time.Second} { // before the deadline, and after it
			synctest.Test(t, func(t *testing.T) {
				store := idempotency.NewMemoryStore()
				release := make(chan struct{})
				w := &worker{}
				w.work = func(_ context.Context, m *sqs.Message[string]) error {
					if m.ReceiveCount() > 1 {
						return nil
					}
					<-release
					if fails {
						return errors.New("no")
					}
					return nil
				}
				h := newHandler(t, w.handle, withStore(t, store, func(o *idempotency.Options) { o.Lease = time.Hour }))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				wantFailures(t, ctx, h, event(message{ID: "m1"}), "m1")
				w.want(t, "m1")

				wantFailures(t, t.Context(), h, event(message{ID: "m1", Receives: 2}), "m1") // still in progress
				time.Sleep(after)
				close(release)
				synctest.Wait()
				wantFailures(t, t.Context(), h, event(message{ID: "m1", Receives: 3}))
				if fails {
					w.want(t, "m1")
				} else {
					w.want(t)
				}
				wantEntry(t, store, "m1", idempotency.Completed)
			})
		}
	}
}

// A straggler whose lease was taken over settles nothing of the next owner's.
func TestDeadlineOfALostClaim(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := idempotency.NewMemoryStore()
			first, second := make(chan struct{}), make(chan struct{})
			w := &worker{}
			w.work = func(_ context.Context, m *sqs.Message[string]) error {
				if m.ReceiveCount() > 1 {
					<-second
					return nil
				}
				<-first
				if fails {
					return errors.New("no")
				}
				return nil
			}
			h := newHandler(t, w.handle, withStore(t, store))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			wantFailures(t, ctx, h, event(message{ID: "m1"}), "m1")
			time.Sleep(10 * time.Second) // its lease ends with the invocation

			var next sync.WaitGroup
			next.Go(func() { wantFailures(t, t.Context(), h, event(message{ID: "m1", Receives: 2})) })
			synctest.Wait()
			held, _ := store.Get("orders#m1")
			close(first)
			synctest.Wait()
			if entry, _ := store.Get("orders#m1"); entry.Owner != held.Owner || entry.Status != idempotency.InProgress {
				t.Errorf("entry is %+v, want it as the next owner left it: %+v", entry, held)
			}
			close(second)
			next.Wait()
			wantEntry(t, store, "m1", idempotency.Completed)
			w.want(t, "m1", "m1")
		})
	}
}

// Timeout ends the context of one message. Its siblings go on.
func TestDeadlineTimeout(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{work: func(ctx context.Context, m *sqs.Message[string]) error {
				if m.ID() == "m1" {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				time.Sleep(time.Second)
				return ctx.Err()
			}}
			var logged logs
			h := newHandler(t, w.handle, options, logged.option, func(o *sqs.Options) { o.Timeout = 2 * time.Second })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			wantFailures(t, ctx, h, event(numbered(3)...), "m1")
			w.want(t, "m1", "m2", "m3")
			if took := time.Since(begin); took < 2*time.Second || took > 4*time.Second {
				t.Errorf("the answer took %v, want 2s to 4s", took)
			}
			if line := logged.Failure(t, "m1"); line.Error != batch.ErrTimeout.Error() {
				t.Errorf("error is %q, want %q", line.Error, batch.ErrTimeout)
			}
		})
	})
}

// A handler that returns the error of its context is a failure like any other, reported in time.
func TestDeadlineCutsHandlersOff(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			var logged logs
			w := &worker{work: func(ctx context.Context, _ *sqs.Message[string]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}}
			h := newHandler(t, w.handle, options, logged.option)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begin := time.Now()
			wantFailures(t, ctx, h, event(grouped("a1", "a2")...), "a1", "a2")
			w.want(t, "a1")
			if took := time.Since(begin); took != 19*time.Second {
				t.Errorf("the answer took %v, want 19s", took)
			}
			if line := logged.Failure(t, "a1"); line.Error != batch.ErrDeadlineNear.Error() || line.Outcome != "failed" {
				t.Errorf("line is %+v, want a failure with %q", line, batch.ErrDeadlineNear)
			}
		})
	})
}

// Without time nothing starts, and all is reported.
func TestDeadlineIsPast(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{}
		h := newHandler(t, w.handle, options)
		past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		wantFailures(t, past, h, event(grouped("a1", "b1", "a2")...), "a1", "b1", "a2")
		cancelled, cancelNow := context.WithCancel(t.Context())
		cancelNow()
		wantFailures(t, cancelled, h, event(grouped("a1", "b1", "a2")...), "a1", "b1", "a2")
		w.want(t)
		wantFailures(t, t.Context(), h, event(grouped("a1", "b1", "a2")...)) // and nothing is held
		w.want(t, "a1", "b1", "a2")
	})
}

// By option an invocation that has to abandon a handler panics, which under aws-lambda-go ends the process.
func TestDeadlinePanicOnAbandoned(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			w := &worker{work: func(context.Context, *sqs.Message[string]) error { <-release; return nil }}
			h := newHandler(t, w.handle, options, func(o *sqs.Options) { o.PanicOnAbandoned = true })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			defer close(release)
			defer func() {
				err, _ := recover().(error)
				var failed *batch.FailedError
				if !errors.As(err, &failed) || !errors.Is(err, batch.ErrAbandoned) || failed.ID != "m1" {
					t.Errorf("panic is %v, want a *batch.FailedError of m1", err)
				}
			}()
			response, err := h.Invoke(ctx, event(numbered(1)...))
			t.Errorf("answer is %q, error is %v, want a panic", response, err)
		})
	})
}

// Case 32: a failure cancels no sibling.
func TestDeadlineIsNotMovedByFailures(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{work: func(ctx context.Context, m *sqs.Message[string]) error {
				if m.ID() == "m1" {
					time.Sleep(10 * time.Millisecond)
					return errors.New("no")
				}
				time.Sleep(100 * time.Millisecond)
				return ctx.Err()
			}}
			wantFailures(t, t.Context(), newHandler(t, w.handle, options), event(numbered(3)...), "m1")
			w.want(t, "m1", "m2", "m3")
		})
	})
}
