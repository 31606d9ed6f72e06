package lambdatest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestStoreForwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var store calls
		wrapped := f.Store(&store)
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			result, err := wrapped.Claim(ctx, idempotency.ClaimRequest{Key: "k", Owner: "me"})
			if !result.Claimed || result.Entry.Owner != "me" {
				t.Errorf("result is %+v, want the inner store's", result)
			}
			return nil, errors.Join(err,
				wrapped.Renew(ctx, idempotency.RenewRequest{Key: "k"}),
				wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"}),
				wrapped.Complete(ctx, idempotency.CompleteRequest{Key: "k"}))
		})
		if r.Err != nil {
			t.Error(r.Err)
		}
		if diff := cmp.Diff([]string{"Claim k", "Renew k", "Release k", "Complete k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}

type invalid struct{ calls }

func (*invalid) Validate() error { return errNo }

func TestStoreValidates(t *testing.T) {
	f := newFunction(t, lambdatest.FunctionOptions{})
	for want, inner := range map[error]idempotency.Store{nil: new(calls), errNo: new(invalid)} {
		if got := f.Store(inner).(idempotency.Validator).Validate(); got != want {
			t.Errorf("Validate of %T wrapped is %v, want %v", inner, got, want)
		}
	}
}

func TestStoreFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault lambdatest.Fault
		want  []string // what the handler saw, then the calls that arrived
	}{
		{"none", lambdatest.Fault{}, []string{"0s true <nil>", "Claim k"}},
		{"throttled", lambdatest.Fault{Err: errThrottled}, []string{"0s false throttled"}},
		{"reply lost", lambdatest.Fault{Err: errThrottled, ReplyLost: true}, []string{"0s false throttled", "Claim k"}},
		{"slow", lambdatest.Fault{Latency: time.Second}, []string{"1s true <nil>", "Claim k"}},
		{"slow and throttled", lambdatest.Fault{Latency: time.Second, Err: errThrottled}, []string{"1s false throttled"}},
		{"slower than the caller waits", lambdatest.Fault{Latency: time.Minute}, []string{"3s false context deadline exceeded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var points log[lambdatest.Point]
				f := newFunction(t, lambdatest.FunctionOptions{
					StoreFault: func(p lambdatest.Point) lambdatest.Fault { points.add(p); return test.fault },
				})
				var store calls
				wrapped := f.Store(&store)
				var got []string
				start := time.Now()
				e := lambdatest.Event{RecordIDs: []string{"r"}, Attempt: 2}
				invoke(t, f, e, func(ctx context.Context, payload []byte) ([]byte, error) {
					ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
					result, err := wrapped.Claim(ctx, idempotency.ClaimRequest{Key: "k"})
					got = append(got, fmt.Sprintf("%v %t %v", time.Since(start), result.Claimed, err))
					return nil, nil
				})
				if diff := cmp.Diff(test.want, append(got, store.all()...)); diff != "" {
					t.Errorf("call and its arrival (-want +got):\n%s", diff)
				}
				want := []lambdatest.Point{{
					Moment: lambdatest.StoreCall, Name: "Claim", Key: "k", Invocation: 1, RecordIDs: []string{"r"}, Attempt: 2,
				}}
				if diff := cmp.Diff(want, points.all()); diff != "" {
					t.Errorf("points (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The invocation dies while a slow call is on its way: the call does not arrive.
func TestCrashDuringLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{
			StoreFault: func(p lambdatest.Point) lambdatest.Fault { return lambdatest.Fault{Latency: 2 * time.Second} },
		})
		var store calls
		wrapped := f.Store(&store)
		invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			go wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
			time.Sleep(time.Second)
			lambdatest.Crash(ctx)
			return nil, nil
		})
		time.Sleep(time.Minute)
		if got := store.all(); len(got) > 0 {
			t.Errorf("store calls are %q, want none", got)
		}
	})
}

// A call that is under way when its invocation times out does not return to the handler, whose process is dead.
func TestCallsThatOutlastTheTimeout(t *testing.T) {
	slow := func(p lambdatest.Point) bool {
		if p.Name == "Release" {
			time.Sleep(2 * time.Second)
		}
		return false
	}
	for name, options := range map[string]lambdatest.FunctionOptions{
		"latency": {StoreFault: func(lambdatest.Point) lambdatest.Fault { return lambdatest.Fault{Latency: 2 * time.Second} }},
		"slow hook of faults": {StoreFault: func(p lambdatest.Point) lambdatest.Fault {
			slow(p)
			return lambdatest.Fault{}
		}},
		"slow hook of faults that throttles": {StoreFault: func(p lambdatest.Point) lambdatest.Fault {
			slow(p)
			return lambdatest.Fault{Err: errThrottled}
		}},
		"slow hook of crashes": {Crash: slow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options.Timeout = time.Second
				f := newFunction(t, options)
				var store calls
				wrapped := f.Store(&store)
				var returned log[error]
				r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
					returned.add(wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"}))
					return nil, nil
				})
				time.Sleep(time.Minute)
				if got := returned.all(); r.Ending != lambdatest.TimedOut || len(got) > 0 || len(store.all()) > 0 {
					t.Errorf("the invocation %v, calls %q arrived and returned %v; want timed out and none", r.Ending, store.all(), got)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				if got := returned.all(); len(got) != 1 || !errors.Is(got[0], lambdatest.ErrClosed) {
					t.Errorf("after Close the call returned %v, want ErrClosed", got)
				}
			})
		})
	}
}

// One store can serve several functions, each through a wrapper of its own. An invocation passes its own function's
// only.
func TestStoreOfAnotherFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points log[string]
		named := func(name string) *lambdatest.Function {
			return newFunction(t, lambdatest.FunctionOptions{
				StoreFault: func(p lambdatest.Point) lambdatest.Fault { points.add(name); return lambdatest.Fault{} },
			})
		}
		other, f := named("other"), named("own")
		var store calls
		wrapped := other.Store(f.Store(&store))
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			return nil, wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
		})
		if r.Err != nil {
			t.Error(r.Err)
		}
		if diff := cmp.Diff([]string{"own"}, points.all()); diff != "" {
			t.Errorf("asked for faults (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Release k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}

// What is no store takes part in crashes and faults through Call.
func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points log[string]
		f := newFunction(t, lambdatest.FunctionOptions{Crash: func(p lambdatest.Point) bool {
			points.add(fmt.Sprint(p.Moment, " ", p.Name, " ", p.Key))
			return p.Moment == lambdatest.StoreReply && p.Name == "Advance" && p.Key == "second"
		}})
		var applied, returned log[string]
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			for _, key := range []string{"first", "second", "third"} {
				err := f.Call(ctx, "Advance", key, func() error { applied.add(key); return errNo })
				returned.add(key + ": " + err.Error())
			}
			return nil, nil
		})
		if r.Ending != lambdatest.Crashed {
			t.Errorf("the invocation %v, want crashed", r.Ending)
		}
		if diff := cmp.Diff([]string{"first", "second"}, applied.all()); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"first: no"}, returned.all()); diff != "" {
			t.Errorf("returned (-want +got):\n%s", diff)
		}
		want := []string{"BeforeInvoke  ", "StoreCall Advance first", "StoreReply Advance first",
			"StoreCall Advance second", "StoreReply Advance second"}
		if diff := cmp.Diff(want, points.all()); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
	})
}
