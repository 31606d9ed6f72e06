package eventbridgetest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Drain with a context that ends waits for what it has invoked, and says what is left. Another one goes on from there.
func TestDrainIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders")
		put(t, b, "o1", "o2", "o3")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		times := newTimetable()
		h := handler(func(ctx context.Context, orders []string) error {
			time.Sleep(3 * time.Second)
			times.note(append(orders, errText(ctx.Err()))...)
			return nil
		})
		err := b.Drain(ctx, h)
		if want := `eventbridgetest: 2 events are left on "orders": context deadline exceeded`; err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
		if stats := b.Stats(); stats.Waiting != 2 || stats.InFlight != 0 {
			t.Errorf("stats are %v, want 2 waiting", stats)
		}
		for i, h := range b.Histories() {
			if h.Waiting != (i > 0) {
				t.Errorf("history %d is %+v, want it waiting but for the first", i, h)
			}
		}
		drain(t, b, h)
		if err := b.Drain(ctx, h); err != nil {
			t.Errorf("Drain of nothing returned %v, want nil", err)
		}
		if diff := cmp.Diff([]string{"3s o1,", "6s o2,", "9s o3,"}, times.all()); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNilHandler(t *testing.T) {
	b := newBus(t, "orders")
	for _, err := range []error{b.Drain(t.Context(), nil), b.Run(t.Context(), nil)} {
		if err == nil || err.Error() != "eventbridgetest: handler is nil" {
			t.Errorf("error is %v, want one of a nil handler", err)
		}
	}
}

// Close ends what runs, and waits for no retry and no answer.
func TestClose(t *testing.T) {
	for _, s := range []*subscriber{nil, {RequestResponse: true, InvocationTimeout: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", func(o *eventbridgetest.Options) { o.Subscriber = s })
			id := put(t, b, "o1")[0]
			drained := make(chan error)
			go func() {
				drained <- b.Drain(t.Context(), handler(func(ctx context.Context, _ []string) error { <-ctx.Done(); return ctx.Err() }))
			}()
			time.Sleep(time.Second / 2)
			if stats := b.Stats(); stats.InFlight != 1 || stats.Waiting != 0 {
				t.Errorf("stats are %v, want one in flight", stats)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := <-drained; !errors.Is(err, lambdatest.ErrClosed) {
				t.Errorf("Drain returned %v, want ErrClosed", err)
			}
			time.Sleep(time.Hour)
			if stats := b.Stats(); stats.GivenUp != 0 || stats.Invocations != 1 {
				t.Errorf("after Close stats are %v, want nothing more to happen", stats)
			}
			_, put := b.Put(order("o2"))
			_, replay := b.Replay(time.Now(), time.Now(), "late")
			for _, err := range []error{put, replay, b.Redeliver(id), b.Drain(t.Context(), handler(nil)), b.Run(t.Context(), handler(nil))} {
				if !errors.Is(err, lambdatest.ErrClosed) || !strings.Contains(err.Error(), `bus "orders"`) {
					t.Errorf("error after Close is %v, want ErrClosed of the bus", err)
				}
			}
			if err := b.Close(); err != nil {
				t.Errorf("the second Close returned %v, want nil", err)
			}
		})
	}
}

// Store calls and others within an invocation take part in its faults, and the points say which event it is.
func TestPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points log[lambdatest.Point]
		b := newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.Crash = func(p lambdatest.Point) bool {
				points.add(p)
				return p.Attempt == 1 && p.Name == "Send"
			}
			o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
				if p.Name == "Release" {
					return lambdatest.Fault{Err: errNo}
				}
				return lambdatest.Fault{}
			}
		})
		id := put(t, b, "o1")[0]
		store := b.Store(idempotency.NewMemoryStore())
		times := newTimetable()
		drain(t, b, handler(func(ctx context.Context, _ []string) error {
			times.note(errText(store.Release(ctx, idempotency.ReleaseRequest{Key: "k"})))
			return b.Call(ctx, "Send", "s", func() error { return nil })
		}))
		if diff := cmp.Diff([]string{"0s no", "1m0s no"}, times.all()); diff != "" {
			t.Errorf("invocations (-want +got):\n%s", diff)
		}
		point := func(attempt int, moment lambdatest.Moment, name, key string) lambdatest.Point {
			return lambdatest.Point{Moment: moment, Name: name, Key: key, Invocation: attempt, RecordIDs: []string{id}, Attempt: attempt}
		}
		want := []lambdatest.Point{
			point(1, lambdatest.BeforeInvoke, "", ""), point(1, lambdatest.StoreCall, "Release", "k"), point(1, lambdatest.StoreCall, "Send", "s"),
			point(2, lambdatest.BeforeInvoke, "", ""), point(2, lambdatest.StoreCall, "Release", "k"), point(2, lambdatest.StoreCall, "Send", "s"),
			point(2, lambdatest.StoreReply, "Send", "s"), point(2, lambdatest.AfterInvoke, "", ""),
		}
		if diff := cmp.Diff(want, points.all()); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
	})
}

// The hooks may ask the bus, which holds no lock when it calls them.
func TestHooksMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *eventbridgetest.Bus
		var waiting log[int]
		ask := func() { waiting.add(b.Stats().Waiting) }
		b = newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.TargetFault = func(lambdatest.Point) error { ask(); return nil }
			o.Throttle = func(lambdatest.Point) bool { ask(); return false }
			o.Crash = func(lambdatest.Point) bool { ask(); return false }
			o.Observe = func(eventbridgetest.Delivery) { ask() }
		})
		put(t, b, "o1")
		drain(t, b, handler(func(context.Context, []string) error { ask(); return nil }))
		if diff := cmp.Diff([]int{1, 1, 0, 0, 0, 0}, waiting.all()); diff != "" {
			t.Errorf("waiting when asked (-want +got):\n%s", diff)
		}
	})
}

// Observe that ends its goroutine, as t.Fatal does, does not keep Drain from ending.
func TestGoexitInObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed log[int]
		b := newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.Observe = func(d eventbridgetest.Delivery) {
				observed.add(d.Invocation)
				if d.Invocation == 1 {
					runtime.Goexit()
				}
			}
		})
		put(t, b, "o1", "o2")
		drain(t, b, handler(func(context.Context, []string) error { return nil }))
		if n := len(observed.all()); n != 2 {
			t.Errorf("%d deliveries observed, want 2", n)
		}
	})
}
