package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

var errThrottled = errors.New("throttled")

func TestStoreForwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		var store calls
		wrapped := q.Store(&store)
		send(t, q, sqstest.Message{Body: "a"})
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			result, err := wrapped.Claim(ctx, idempotency.ClaimRequest{Key: "k", Owner: "me"})
			if !result.Claimed || result.Entry.Owner != "me" {
				t.Errorf("result is %+v, want the inner store's", result)
			}
			return errors.Join(err,
				wrapped.Renew(ctx, idempotency.RenewRequest{Key: "k"}),
				wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"}),
				wrapped.Complete(ctx, idempotency.CompleteRequest{Key: "k"}))
		}))
		if diff := cmp.Diff([]string{"Claim k", "Renew k", "Release k", "Complete k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}

type invalid struct{ calls }

func (*invalid) Validate() error { return errNo }

func TestStoreValidates(t *testing.T) {
	q := newQueue(t, "orders")
	for want, inner := range map[error]idempotency.Store{nil: new(calls), errNo: new(invalid)} {
		if got := q.Store(inner).(idempotency.Validator).Validate(); got != want {
			t.Errorf("Validate of %T wrapped is %v, want %v", inner, got, want)
		}
	}
}

func TestStoreFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault sqstest.Fault
		want  []string // what the handler saw, then the calls that arrived
	}{
		{"none", sqstest.Fault{}, []string{"0 true <nil>", "Claim k"}},
		{"throttled", sqstest.Fault{Err: errThrottled}, []string{"0 false throttled"}},
		{"reply lost", sqstest.Fault{Err: errThrottled, ReplyLost: true}, []string{"0 false throttled", "Claim k"}},
		{"slow", sqstest.Fault{Latency: time.Second}, []string{"1 true <nil>", "Claim k"}},
		{"slow and throttled", sqstest.Fault{Latency: time.Second, Err: errThrottled}, []string{"1 false throttled"}},
		{"slower than the caller waits", sqstest.Fault{Latency: time.Minute}, []string{"3 false context deadline exceeded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var points log[sqstest.Point]
				q := newQueue(t, "orders", func(o *sqstest.Options) {
					o.StoreFault = func(p sqstest.Point) sqstest.Fault { points.add(p); return test.fault }
				})
				var store calls
				wrapped := q.Store(&store)
				ids := send(t, q, sqstest.Message{Body: "a"})
				var got []string
				now := since()
				drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
					ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
					result, err := wrapped.Claim(ctx, idempotency.ClaimRequest{Key: "k"})
					got = append(got, fmt.Sprintf("%v %t %v", now(), result.Claimed, err))
					return nil
				}))
				if diff := cmp.Diff(test.want, append(got, store.all()...)); diff != "" {
					t.Errorf("call and its arrival (-want +got):\n%s", diff)
				}
				want := []sqstest.Point{{Moment: sqstest.StoreCall, Name: "Claim", Key: "k", Invocation: 1, MessageIDs: ids, ReceiveCount: 1}}
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
		q := newQueue(t, "orders", func(o *sqstest.Options) {
			o.StoreFault = func(p sqstest.Point) sqstest.Fault { return sqstest.Fault{Latency: 2 * time.Second} }
		})
		var store calls
		wrapped := q.Store(&store)
		send(t, q, sqstest.Message{Body: "a"})
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			if m.Attributes["ApproximateReceiveCount"] == "1" {
				go wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
				time.Sleep(time.Second)
				sqstest.Crash(ctx)
			}
			return nil
		}))
		if got := store.all(); len(got) > 0 {
			t.Errorf("store calls are %q, want none", got)
		}
	})
}

// One store can serve the functions of several queues, each through a wrapper of its own. An invocation passes its own
// queue's only.
func TestStoreOfAnotherQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points log[string]
		hooks := func(name string) func(*sqstest.Options) {
			return func(o *sqstest.Options) {
				o.StoreFault = func(p sqstest.Point) sqstest.Fault { points.add(name); return sqstest.Fault{} }
			}
		}
		other, q := newQueue(t, "other", hooks("other")), newQueue(t, "orders", hooks("orders"))
		var store calls
		wrapped := other.Store(q.Store(&store))
		send(t, q, sqstest.Message{Body: "a"})
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			return wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
		}))
		if diff := cmp.Diff([]string{"orders"}, points.all()); diff != "" {
			t.Errorf("asked for faults (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Release k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}
