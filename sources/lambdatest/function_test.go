package lambdatest_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestDeadline(t *testing.T) {
	for _, test := range []struct{ timeout, want time.Duration }{{0, 30 * time.Second}, {7 * time.Second, 7 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFunction(t, lambdatest.FunctionOptions{Timeout: test.timeout})
			type key struct{}
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
			defer cancel()
			results := make(chan lambdatest.Result)
			var after context.Context
			f.Start(ctx, lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				after = ctx
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != test.want {
					t.Errorf("deadline is %v from now, want %v", time.Until(deadline), test.want)
				}
				if ctx.Value(key{}) != "value" {
					t.Error("the values of Start's context are missing")
				}
				time.Sleep(2 * time.Second)
				if ctx.Err() != nil {
					t.Errorf("Start's context has ended the invocation's: %v", ctx.Err())
				}
				return nil, nil
			}), nothing, func(r lambdatest.Result) { results <- r })
			<-results
			synctest.Wait()
			if after.Err() == nil {
				t.Error("the context lives after Invoke has returned, want it cancelled")
			}
		})
	}
}

func TestPayloadIsOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var kept [][]byte
		for _, event := range []string{"a first event", "a second", "a third, which is longer"} {
			invoke(t, f, lambdatest.Event{Payload: []byte(event)}, func(ctx context.Context, payload []byte) ([]byte, error) {
				if string(payload) != event {
					t.Errorf("payload is %q, want %q", payload, event)
				}
				kept = append(kept, payload)
				return nil, nil
			})
		}
		if &kept[0][0] != &kept[1][0] {
			t.Error("the second event is in memory of its own, want that of the first")
		}
		for _, payload := range kept {
			if got := bytes.Trim(payload, "?"); len(got) > 0 {
				t.Errorf("a payload after Invoke is %q, want question marks", payload)
			}
		}
	})
}

// Invocations that overlap don't share memory, nor does one that died give its own back: its goroutines may still read.
func TestPayloadIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{Crash: func(p lambdatest.Point) bool {
			return p.Moment == lambdatest.AfterInvoke && p.RecordIDs[0] == "crashes"
		}})
		var dead log[[]byte]
		h := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			event := string(payload)
			time.Sleep(time.Second)
			if string(payload) != event {
				t.Errorf("payload has become %q, want %q", payload, event)
			}
			if event == "crashes" {
				dead.add(payload)
			}
			return nil, nil
		})
		for range 3 {
			for _, event := range []string{"one", "crashes", "two"} {
				f.Start(t.Context(), h, lambdatest.Event{Payload: []byte(event), RecordIDs: []string{event}}, func(lambdatest.Result) {})
			}
			time.Sleep(2 * time.Second)
		}
		if diff := cmp.Diff([]string{"crashes", "crashes", "crashes"}, texts(dead.all())); diff != "" {
			t.Errorf("payloads of dead invocations (-want +got):\n%s", diff)
		}
	})
}

func texts(payloads [][]byte) (all []string) {
	for _, payload := range payloads {
		all = append(all, string(payload))
	}
	return all
}

func TestEndings(t *testing.T) {
	type result struct {
		Ending   lambdatest.Ending
		Response string
		Err      string // what the error contains
		Took     time.Duration
	}
	for _, test := range []struct {
		name    string
		handler lambdatest.HandlerFunc
		timeout time.Duration
		want    result
	}{
		{name: "answer", want: result{Ending: lambdatest.Answered, Response: "answer"},
			handler: func(context.Context, []byte) ([]byte, error) { return []byte("answer"), nil }},
		{name: "answer in the payload", want: result{Ending: lambdatest.Answered, Response: "payload"},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { return payload, nil }},
		{name: "error", want: result{Ending: lambdatest.FunctionError, Err: "no"},
			handler: func(context.Context, []byte) ([]byte, error) { return []byte("answer"), errNo }},
		{name: "answer over 6 MB", want: result{Ending: lambdatest.FunctionError, Err: "answer has 6291457 bytes, but must have at most 6291456"},
			handler: func(context.Context, []byte) ([]byte, error) { return make([]byte, lambdatest.MaxPayload+1), nil }},
		{name: "answer of 6 MB", want: result{Ending: lambdatest.Answered, Response: strings.Repeat("\x00", lambdatest.MaxPayload)},
			handler: func(context.Context, []byte) ([]byte, error) { return make([]byte, lambdatest.MaxPayload), nil }},
		{name: "panic", want: result{Ending: lambdatest.Panicked, Err: "lambdatest: handler panicked: boom\ngoroutine"},
			handler: func(context.Context, []byte) ([]byte, error) { panic("boom") }},
		{name: "nil panic", want: result{Ending: lambdatest.Panicked, Err: "panic called with nil argument"},
			handler: func(context.Context, []byte) ([]byte, error) { panic(nil) }},
		{name: "nil handler", want: result{Ending: lambdatest.Panicked, Err: "nil pointer"}},
		{name: "Goexit", want: result{Ending: lambdatest.Panicked, Err: "lambdatest: handler called runtime.Goexit"},
			handler: func(context.Context, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil }},
		{name: "timeout", want: result{Ending: lambdatest.TimedOut, Took: 30 * time.Second},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { <-ctx.Done(); return payload, errNo }},
		{name: "answer at the deadline", want: result{Ending: lambdatest.TimedOut, Took: 30 * time.Second},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) {
				time.Sleep(30 * time.Second)
				return payload, nil
			}},
		{name: "answer just before the deadline",
			want: result{Ending: lambdatest.Answered, Response: "payload", Took: 30*time.Second - 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) {
				time.Sleep(30*time.Second - 1)
				return payload, nil
			}},
		{name: "deaf to the deadline", want: result{Ending: lambdatest.TimedOut, Took: 30 * time.Second},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) {
				time.Sleep(time.Minute)
				return payload, nil
			}},
		{name: "no time", timeout: -1, want: result{Ending: lambdatest.TimedOut},
			handler: func(context.Context, []byte) ([]byte, error) { panic("the handler was invoked") }},
		{name: "crash", want: result{Ending: lambdatest.Crashed},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { lambdatest.Crash(ctx); return payload, nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFunction(t, lambdatest.FunctionOptions{Timeout: test.timeout})
				var results log[lambdatest.Result]
				f.Start(t.Context(), handlerOrNil(test.handler), lambdatest.Event{Payload: []byte("payload")}, results.add)
				time.Sleep(time.Hour)
				if n := len(results.all()); n != 1 {
					t.Fatalf("ended was called %d times, want once", n)
				}
				r := results.all()[0]
				got := result{Ending: r.Ending, Response: string(r.Response), Took: r.Ended.Sub(r.Started)}
				if r.Err != nil {
					got.Err = r.Err.Error()
					if test.want.Err != "" && strings.Contains(got.Err, test.want.Err) {
						got.Err = test.want.Err
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// handlerOrNil returns f as a handler, and nil for nil: a Handler that holds a nil HandlerFunc is not nil.
func handlerOrNil(f lambdatest.HandlerFunc) lambdatest.Handler {
	if f == nil {
		return nil
	}
	return f
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var store calls
		wrapped := f.Store(&store)
		var effects log[string]
		ended := func(lambdatest.Result) { effects.add("ended") }
		f.Start(t.Context(), lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			<-ctx.Done()
			err := wrapped.Complete(context.WithoutCancel(ctx), idempotency.CompleteRequest{Key: "late"})
			effects.add(fmt.Sprint(context.Cause(ctx), ", ", err))
			return nil, nil
		}), nothing, ended)
		time.Sleep(time.Second)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		f.Start(t.Context(), lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) {
			effects.add("invoked")
			return nil, nil
		}), nothing, ended)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"context canceled, lambdatest: function is closed"}, effects.all()); diff != "" {
			t.Errorf("at Close and after it (-want +got):\n%s", diff)
		}
		if len(store.all()) > 0 {
			t.Errorf("store calls are %q, want none", store.all())
		}
		if err := f.Close(); err != nil {
			t.Errorf("the second Close returned %v, want nil", err)
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := lambdatest.NewFunction(lambdatest.FunctionOptions{})
		// All are deaf to their contexts.
		for i, slept := range []time.Duration{time.Hour, 4 * time.Second, time.Hour, time.Hour, 2 * time.Hour} {
			f.Start(t.Context(), lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) {
				time.Sleep(slept)
				return nil, nil
			}), lambdatest.Event{RecordIDs: []string{fmt.Sprint("r", i)}}, func(lambdatest.Result) {})
		}
		synctest.Wait() // they are invoked
		start := time.Now()
		want := `lambdatest: handler or observer has not returned 5s after Close: 4 invocations with records ["r0" "r2" "r3" "r4"]`
		if err := f.Close(); err == nil || err.Error() != want {
			t.Errorf("Close returned %v, want %s", err, want)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("Close took %v, want 5s", took)
		}
		time.Sleep(2 * time.Hour)
		if err := f.Close(); err != nil {
			t.Errorf("Close after the handler has returned is %v, want nil", err)
		}
	})
}

// What is told of an end may be a test's code, which ends its goroutine with t.Fatal.
func TestGoexitWhenTold(t *testing.T) {
	for _, slept := range []time.Duration{0, time.Minute} { // the handler's goroutine tells of its end, or a timer's
		synctest.Test(t, func(t *testing.T) {
			f := newFunction(t, lambdatest.FunctionOptions{})
			f.Start(t.Context(), lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) {
				time.Sleep(slept)
				return nil, nil
			}), nothing, func(lambdatest.Result) { runtime.Goexit() })
			time.Sleep(time.Hour)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Close waits for what is told, in whichever goroutine.
func TestCloseWaitsUntilTold(t *testing.T) {
	for _, slept := range []time.Duration{29 * time.Second, 30500 * time.Millisecond} { // answers, or times out
		synctest.Test(t, func(t *testing.T) {
			f := newFunction(t, lambdatest.FunctionOptions{})
			var effects log[string]
			f.Start(t.Context(), lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) {
				time.Sleep(slept)
				return nil, nil
			}), nothing, func(lambdatest.Result) {
				time.Sleep(3 * time.Second)
				effects.add("told")
			})
			time.Sleep(31 * time.Second)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			effects.add("closed")
			time.Sleep(time.Minute)
			if diff := cmp.Diff([]string{"told", "closed"}, effects.all()); diff != "" {
				t.Errorf("in this order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloseWhenTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var errs log[error]
		invoked := lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) { return nil, nil })
		f.Start(t.Context(), invoked, lambdatest.Event{RecordIDs: []string{"r"}}, func(lambdatest.Result) { errs.add(f.Close()) })
		time.Sleep(time.Minute)
		const want = `lambdatest: handler or observer has not returned 5s after Close: 1 invocations with records ["r"]`
		if got := errs.all(); len(got) != 1 || got[0] == nil || got[0].Error() != want {
			t.Errorf("Close returned %v, want %s", got, want)
		}
	})
}
