package eventbridgetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Lambda tries an event again about one and three minutes after it came, counted from the end of each invocation, and then
// gives it up. All that is no answer is an error of the function.
func TestFunctionRetries(t *testing.T) {
	type options = eventbridgetest.Options
	fails := func(context.Context, []string) error { return errNo }
	retries := func(n int) func(*options) {
		return func(o *options) { o.FunctionRetry.MaximumRetryAttempts = n }
	}
	for _, test := range []struct {
		name   string
		fn     func(ctx context.Context, orders []string) error
		option func(*options)
		want   []float64 // invoked at
		letter string    // queue, reason, retries, seconds
		stats  string
	}{
		{name: "success", fn: func(context.Context, []string) error { return nil }, want: []float64{0},
			stats: "1 put, 1 invocation, 1 done"},
		{name: "error", fn: fails, want: []float64{0, 60, 180}, letter: "FunctionQueue RetriesExhausted 2 180",
			stats: "1 put, 3 invocations, 1 dead-lettered, 3 errors"},
		{name: "panic", fn: func(context.Context, []string) error { panic("boom") }, want: []float64{0, 60, 180},
			letter: "FunctionQueue RetriesExhausted 2 180", stats: "1 put, 3 invocations, 1 dead-lettered, 3 errors"},
		{name: "Goexit", fn: func(context.Context, []string) error { runtime.Goexit(); return nil }, want: []float64{0, 60, 180},
			letter: "FunctionQueue RetriesExhausted 2 180", stats: "1 put, 3 invocations, 1 dead-lettered, 3 errors"},
		{name: "crash", fn: func(ctx context.Context, _ []string) error {
			time.Sleep(2 * time.Second)
			lambdatest.Crash(ctx)
			return nil
		}, want: []float64{0, 62, 184}, letter: "FunctionQueue RetriesExhausted 2 186",
			stats: "1 put, 3 invocations, 1 dead-lettered, 3 crashes"},
		{name: "timeout", fn: func(ctx context.Context, _ []string) error { <-ctx.Done(); return nil },
			option: func(o *options) { o.FunctionTimeout = 10 * time.Second }, want: []float64{0, 70, 200},
			letter: "FunctionQueue RetriesExhausted 2 210", stats: "1 put, 3 invocations, 1 dead-lettered, 3 timeouts"},
		{name: "one retry", fn: fails, option: retries(1), want: []float64{0, 60}, letter: "FunctionQueue RetriesExhausted 1 60",
			stats: "1 put, 2 invocations, 1 dead-lettered, 2 errors"},
		{name: "no retry", fn: fails, option: retries(eventbridgetest.NoRetries), want: []float64{0},
			letter: "FunctionQueue RetriesExhausted 0 0", stats: "1 put, 1 invocation, 1 dead-lettered, 1 error"},
		{name: "another delay", fn: fails, option: func(o *options) { o.RetryDelay = time.Second }, want: []float64{0, 1, 3},
			letter: "FunctionQueue RetriesExhausted 2 3", stats: "1 put, 3 invocations, 1 dead-lettered, 3 errors"},
		{name: "age before the first retry", fn: fails, option: func(o *options) { o.FunctionRetry.MaximumEventAge = time.Minute },
			want: []float64{0}, letter: "FunctionQueue EventAgeExceeded 0 60", stats: "1 put, 1 invocation, 1 dead-lettered, 1 error"},
		{name: "age before the second retry", fn: fails, option: func(o *options) { o.FunctionRetry.MaximumEventAge = 2 * time.Minute },
			want: []float64{0, 60}, letter: "FunctionQueue EventAgeExceeded 1 120", stats: "1 put, 2 invocations, 1 dead-lettered, 2 errors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.option == nil {
					test.option = func(*options) {}
				}
				b := newBus(t, "orders", test.option)
				id := put(t, b, "o1")[0]
				start := time.Now()
				drain(t, b, handler(test.fn))
				h := b.Histories()[0]
				if diff := cmp.Diff(test.want, at(start, h.Delivered...)); diff != "" {
					t.Errorf("invoked at (-want +got):\n%s", diff)
				}
				got := ""
				for _, l := range b.DeadLetters() {
					got += fmt.Sprint(l.Queue, " ", l.Reason, " ", l.Retries, " ", l.At.Sub(start).Seconds())
					if l.IDs[0] != id || l.Err == nil || l.Invocations != len(test.want) || l.At != h.DeadLettered {
						t.Errorf("dead letter is %+v, want one of %s with an error", l, id)
					}
				}
				if got != test.letter {
					t.Errorf("dead letters are %q, want %q", got, test.letter)
				}
				if got := b.Stats().String(); got != test.stats {
					t.Errorf("stats are %q, want %q", got, test.stats)
				}
			})
		})
	}
}

// A retry that succeeds is the end of it.
func TestRetrySucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders")
		put(t, b, "o1", "o2")
		result, times := failFirst(1), newTimetable()
		drain(t, b, handler(func(_ context.Context, orders []string) error {
			times.note(orders...)
			return result()
		}))
		if diff := cmp.Diff([]string{"0s o1", "0s o2", "1m0s o1"}, times.all()); diff != "" {
			t.Errorf("invocations (-want +got):\n%s", diff)
		}
		if got, want := b.Stats().String(), "2 put, 3 invocations, 2 done, 1 error"; got != want {
			t.Errorf("stats are %q, want %q", got, want)
		}
	})
}

// A throttle is no attempt: it is tried again after 1 second, 2, 4, up to 5 minutes, as long as the event is not too old.
func TestThrottles(t *testing.T) {
	type options = eventbridgetest.Options
	for _, test := range []struct {
		name   string
		n      int // throttles
		option func(*options)
		asked  []float64
		want   []float64
		letter string
	}{
		{name: "three", n: 3, asked: []float64{0, 1, 3, 7}, want: []float64{7}},
		{name: "eleven", n: 11, asked: []float64{0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111}, want: []float64{1111}},
		{name: "too old", n: 9, option: func(o *options) { o.FunctionRetry.MaximumEventAge = time.Minute },
			asked: []float64{0, 1, 3, 7, 15, 31}, letter: "FunctionQueue EventAgeExceeded 0 60 function was throttled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var points log[lambdatest.Point]
				var asked log[float64]
				b := newBus(t, "orders", func(o *options) {
					o.Throttle = func(p lambdatest.Point) bool {
						points.add(p)
						asked.add(time.Since(start).Seconds())
						return len(points.all()) <= test.n
					}
					if test.option != nil {
						test.option(o)
					}
				})
				id := put(t, b, "o1")[0]
				drain(t, b, handler(func(context.Context, []string) error { return nil }))
				if diff := cmp.Diff(test.asked, asked.all()); diff != "" {
					t.Errorf("asked at (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.want, at(start, b.Histories()[0].Delivered...)); diff != "" {
					t.Errorf("invoked at (-want +got):\n%s", diff)
				}
				want := lambdatest.Point{Moment: lambdatest.BeforeInvoke, Name: "Throttle", Key: id, RecordIDs: []string{id}, Attempt: 1}
				if diff := cmp.Diff(want, points.all()[0]); diff != "" {
					t.Errorf("point (-want +got):\n%s", diff)
				}
				got := ""
				for _, l := range b.DeadLetters() {
					got = fmt.Sprint(l.Queue, " ", l.Reason, " ", l.Retries, " ", l.At.Sub(start).Seconds(), " ", l.Err)
				}
				if got != test.letter {
					t.Errorf("dead letter is %q, want %q", got, test.letter)
				}
				if s := b.Stats(); s.Throttles != min(test.n, len(asked.all())) {
					t.Errorf("stats are %v, want %d throttles", s, test.n)
				}
			})
		})
	}
}

// Throttled for ever, an event is given up after six hours. Retries are only used up by errors, so all are left after throttles.
func TestThrottledForSixHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.Throttle = func(lambdatest.Point) bool { return true }
		})
		start := time.Now()
		put(t, b, "o1")
		drain(t, b, handler(func(context.Context, []string) error { return nil }))
		if l := b.DeadLetters()[0]; l.At.Sub(start) != 6*time.Hour || l.Reason != eventbridgetest.EventAgeExceeded || l.Invocations != 0 {
			t.Errorf("dead letter is %+v, want one after 6h", l)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.Throttle = func(lambdatest.Point) bool { n++; return n%2 == 1 }
		})
		start := time.Now()
		put(t, b, "o1")
		drain(t, b, handler(func(context.Context, []string) error { return errNo }))
		if diff := cmp.Diff([]float64{1, 62, 183}, at(start, b.Histories()[0].Delivered...)); diff != "" {
			t.Errorf("invoked at (-want +got):\n%s", diff)
		}
	})
}

// EventBridge tries again to reach the target, with a policy and a queue of its own. What it has handed over is Lambda's, and
// its age begins anew.
func TestTargetFaults(t *testing.T) {
	type options = eventbridgetest.Options
	errDown := errors.New("down")
	for _, test := range []struct {
		name     string
		faults   int
		err      error
		option   func(*options)
		done     bool
		letter   string
		from, to time.Duration // in which it ends
	}{
		{name: "three", faults: 3, err: errDown, done: true, from: 3500 * time.Millisecond, to: 7 * time.Second},
		{name: "for ever", faults: 1000, err: errDown, letter: "TargetQueue RetriesExhausted 185 down", from: 12 * time.Hour, to: 24 * time.Hour},
		{name: "too old", faults: 1000, err: errDown, option: func(o *options) { o.TargetRetry.MaximumEventAge = time.Hour },
			letter: "TargetQueue EventAgeExceeded 16 down", from: time.Hour, to: time.Hour},
		{name: "two retries", faults: 1000, err: errDown, option: func(o *options) { o.TargetRetry.MaximumRetryAttempts = 2 },
			letter: "TargetQueue RetriesExhausted 2 down", from: 1500 * time.Millisecond, to: 3 * time.Second},
		{name: "no retry", faults: 1000, err: errDown, option: func(o *options) { o.TargetRetry.MaximumRetryAttempts = eventbridgetest.NoRetries },
			letter: "TargetQueue RetriesExhausted 0 down"},
		{name: "not retriable", faults: 1, err: fmt.Errorf("no permission: %w", eventbridgetest.ErrNotRetriable),
			letter: "TargetQueue NotRetriable 0 no permission: eventbridgetest: target fault is not retriable"},
		{name: "function's age", faults: 6, err: errDown, option: func(o *options) { o.FunctionRetry.MaximumEventAge = time.Second },
			done: true, from: 31500 * time.Millisecond, to: 63 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var points log[lambdatest.Point]
				b := newBus(t, "orders", func(o *options) {
					o.Seed = 3
					o.TargetFault = func(p lambdatest.Point) error {
						points.add(p)
						if len(points.all()) <= test.faults {
							return test.err
						}
						return nil
					}
					if test.option != nil {
						test.option(o)
					}
				})
				start := time.Now()
				id := put(t, b, "o1")[0]
				drain(t, b, handler(func(context.Context, []string) error { return nil }))
				h := b.Histories()[0]
				ended := h.Done
				if !test.done {
					ended = h.DeadLettered
				}
				if took := ended.Sub(start); h.Done.IsZero() == test.done || took < test.from || took > test.to {
					t.Errorf("history is %+v, want done %t after %v to %v", h, test.done, test.from, test.to)
				}
				got := ""
				for _, l := range b.DeadLetters() {
					got = fmt.Sprint(l.Queue, " ", l.Reason, " ", l.Retries, " ", l.Err)
					if orders, err := ordersOf([]byte(l.Body)); err != nil || orders[0] != "o1" || l.Invocations != 0 {
						t.Errorf("dead letter is %+v, want the event", l)
					}
				}
				if got != test.letter {
					t.Errorf("dead letter is %q, want %q", got, test.letter)
				}
				want := lambdatest.Point{Moment: lambdatest.BeforeInvoke, Name: "Target", Key: id, RecordIDs: []string{id}, Attempt: 1}
				if diff := cmp.Diff(want, points.all()[0]); diff != "" {
					t.Errorf("point (-want +got):\n%s", diff)
				}
				if s := b.Stats(); s.TargetFaults != min(test.faults, len(points.all())) {
					t.Errorf("stats are %v, want %d target faults", s, len(points.all()))
				}
			})
		})
	}
}

// The retries that EventBridge has used up do not count with Lambda.
func TestTwoPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBus(t, "orders", func(o *eventbridgetest.Options) {
			o.TargetFault = func(lambdatest.Point) error {
				if n++; n <= 5 {
					return errNo
				}
				return nil
			}
		})
		put(t, b, "o1")
		drain(t, b, handler(func(context.Context, []string) error { return errNo }))
		if l := b.DeadLetters()[0]; l.Queue != eventbridgetest.FunctionQueue || l.Invocations != 3 || l.Retries != 2 {
			t.Errorf("dead letter is %+v, want one of the function after 3 invocations", l)
		}
	})
}
