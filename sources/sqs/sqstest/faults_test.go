package sqstest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

var errThrottled = errors.New("throttled")

// What an invocation had received comes back when it crashes, and the points of each say which messages those are and
// how often they were received.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points log[lambdatest.Point]
		q := newQueue(t, "orders", func(o *sqstest.Options) {
			o.Crash = func(p lambdatest.Point) bool {
				points.add(p)
				return p.Attempt == 1 && p.Moment == lambdatest.StoreReply
			}
		})
		var store calls
		wrapped := q.Store(&store)
		ids := send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"})
		var started log[float64]
		now := since()
		drain(t, q, lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			started.add(now())
			return nil, wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
		}))
		if diff := cmp.Diff([]float64{0, 180}, started.all()); diff != "" {
			t.Errorf("invoked at (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Release k", "Release k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
		at := func(attempt int, moment lambdatest.Moment, name, key string) lambdatest.Point {
			return lambdatest.Point{
				Moment: moment, Name: name, Key: key, Invocation: attempt, RecordIDs: ids, Attempt: attempt,
			}
		}
		want := []lambdatest.Point{
			at(1, lambdatest.BeforeInvoke, "", ""), at(1, lambdatest.StoreCall, "Release", "k"), at(1, lambdatest.StoreReply, "Release", "k"),
			at(2, lambdatest.BeforeInvoke, "", ""), at(2, lambdatest.StoreCall, "Release", "k"), at(2, lambdatest.StoreReply, "Release", "k"),
			at(2, lambdatest.AfterInvoke, "", ""),
		}
		if diff := cmp.Diff(want, points.all()); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
		if got := q.Stats(); got.Crashes != 1 || got.Invocations != 2 || got.Deleted != 2 {
			t.Errorf("stats are %+v, want 1 crash in 2 invocations and the messages deleted", got)
		}
	})
}

// A batch of messages with different receive counts has the highest.
func TestAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts log[int]
		q := newQueue(t, "orders", func(o *sqstest.Options) {
			o.Crash = func(p lambdatest.Point) bool {
				if p.Moment == lambdatest.BeforeInvoke {
					attempts.add(p.Attempt)
				}
				return false
			}
		})
		send(t, q, sqstest.Message{Body: "again"}, sqstest.Message{Body: "new", Delay: 180 * time.Second})
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			if m.Body == "again" && m.Attributes["ApproximateReceiveCount"] == "1" {
				return errNo
			}
			return nil
		}))
		if diff := cmp.Diff([]int{1, 2}, attempts.all()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.FunctionTimeout = 5 * time.Second })
		send(t, q, sqstest.Message{Body: "a"})
		var started log[float64]
		now := since()
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			started.add(now())
			if len(started.all()) == 1 {
				<-ctx.Done()
			}
			return nil
		}))
		if diff := cmp.Diff([]float64{0, 30}, started.all()); diff != "" {
			t.Errorf("invoked at (-want +got):\n%s", diff)
		}
		if got := q.Stats(); got.Timeouts != 1 || got.Crashes != 0 {
			t.Errorf("stats are %+v, want one timeout", got)
		}
	})
}

func TestStoreFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) {
			o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
				if p.Attempt > 1 {
					return lambdatest.Fault{}
				}
				return lambdatest.Fault{Err: errThrottled}
			}
		})
		var store calls
		wrapped := q.Store(&store)
		send(t, q, sqstest.Message{Body: "a"})
		var got []error
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			err := wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
			got = append(got, err)
			return err
		}))
		if len(got) != 2 || got[0] != errThrottled || got[1] != nil {
			t.Errorf("the calls returned %v, want throttled and nil", got)
		}
		if diff := cmp.Diff([]string{"Release k"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}
