package sqstest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// guarded makes its store calls around an effect, as a guard does, and reports what it gets to, deferred calls too.
func guarded(store idempotency.Store, effects *log[string]) sqstest.HandlerFunc {
	return each(func(ctx context.Context, m events.SQSMessage) error {
		detached := context.WithoutCancel(ctx)
		defer effects.add("deferred " + m.Body)
		if _, err := store.Claim(ctx, idempotency.ClaimRequest{Key: m.Body}); err != nil {
			effects.add(err.Error())
			return err
		}
		effects.add("claimed " + m.Body)
		sqstest.Checkpoint(ctx, "before "+m.Body)
		effects.add("effect " + m.Body)
		sqstest.Checkpoint(detached, "after "+m.Body)
		err := store.Complete(detached, idempotency.CompleteRequest{Key: m.Body})
		effects.add(fmt.Sprintf("completed %s: %v", m.Body, err))
		return err
	})
}

func TestCrashPoints(t *testing.T) {
	whole := []string{"claimed a", "effect a", "completed a: <nil>", "deferred a"}
	wholeCalls := []string{"Claim a", "Complete a"}
	for _, test := range []struct {
		moment sqstest.Moment
		name   string
		// What the first attempt gets to, what reaches the store, and what is let go at Close.
		effects, calls, close []string
	}{
		{moment: sqstest.BeforeInvoke},
		{moment: sqstest.StoreCall, name: "Claim", close: []string{"sqstest: queue is closed", "deferred a"}},
		{moment: sqstest.StoreReply, name: "Claim", calls: wholeCalls[:1], close: []string{"sqstest: queue is closed", "deferred a"}},
		{moment: sqstest.AtCheckpoint, name: "before a", effects: whole[:1], calls: wholeCalls[:1], close: []string{"deferred a"}},
		{moment: sqstest.AtCheckpoint, name: "after a", effects: whole[:2], calls: wholeCalls[:1], close: []string{"deferred a"}},
		{moment: sqstest.StoreCall, name: "Complete", effects: whole[:2], calls: wholeCalls[:1],
			close: []string{"completed a: sqstest: queue is closed", "deferred a"}},
		{moment: sqstest.StoreReply, name: "Complete", effects: whole[:2], calls: wholeCalls,
			close: []string{"completed a: sqstest: queue is closed", "deferred a"}},
		{moment: sqstest.AfterInvoke, effects: whole, calls: wholeCalls},
	} {
		t.Run(fmt.Sprint(test.moment, " ", test.name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var points log[sqstest.Point]
				q := newQueue(t, "orders", func(o *sqstest.Options) {
					o.Crash = func(p sqstest.Point) bool {
						points.add(p)
						return p.ReceiveCount == 1 && p.Moment == test.moment && p.Name == test.name
					}
				})
				var store calls
				var effects log[string]
				ids := send(t, q, sqstest.Message{Body: "a"})
				drain(t, q, guarded(q.Store(&store), &effects))

				// The second attempt goes through.
				if diff := cmp.Diff(append(test.effects, whole...), effects.all(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("effects of both attempts (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(append(test.calls, wholeCalls...), store.all()); diff != "" {
					t.Errorf("store calls of both attempts (-want +got):\n%s", diff)
				}
				if got := q.Stats(); got.Crashes != 1 || got.Invocations != 2 || got.Deleted != 1 {
					t.Errorf("stats are %+v, want 1 crash in 2 invocations and the message deleted", got)
				}
				last := points.all()[len(points.all())-1]
				want := sqstest.Point{Moment: sqstest.AfterInvoke, Invocation: 2, MessageIDs: ids, ReceiveCount: 2}
				if diff := cmp.Diff(want, last); diff != "" {
					t.Errorf("last point (-want +got):\n%s", diff)
				}

				before := len(effects.all())
				if err := q.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if diff := cmp.Diff(test.close, effects.all()[before:], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("let go at Close (-want +got):\n%s", diff)
				}
				if got := len(store.all()); got != len(test.calls)+2 {
					t.Errorf("%d calls reached the store after Close, want none", got-len(test.calls)-2)
				}
			})
		})
	}
}

// A crash takes every goroutine of its invocation along, at their next store call or checkpoint, and none of
// another's.
func TestCrashKillsOneInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.Concurrency, o.BatchSize = 2, 1 })
		var store calls
		wrapped := q.Store(&store)
		send(t, q, sqstest.Message{Body: "crashes"}, sqstest.Message{Body: "lives"})
		var effects log[string]
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			if m.Body == "crashes" && m.Attributes["ApproximateReceiveCount"] == "1" {
				go func() { // a sibling record
					defer effects.add("sibling's deferred call")
					time.Sleep(2 * time.Second)
					wrapped.Release(context.WithoutCancel(ctx), idempotency.ReleaseRequest{Key: "sibling"})
				}()
				go func() {
					defer effects.add("other sibling's deferred call")
					time.Sleep(2 * time.Second)
					sqstest.Checkpoint(ctx, "anything")
				}()
				defer effects.add("own deferred call")
				time.Sleep(time.Second)
				sqstest.Crash(ctx)
			}
			time.Sleep(5 * time.Second)
			return wrapped.Complete(ctx, idempotency.CompleteRequest{Key: m.Body})
		}))
		if diff := cmp.Diff([]string{"Complete lives", "Complete crashes"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
		if got := effects.all(); len(got) > 0 {
			t.Errorf("ran before Close: %q, want nothing", got)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := effects.all(); len(got) != 3 {
			t.Errorf("ran after Close: %q, want all three deferred calls", got)
		}
		if got := len(store.all()); got != 2 {
			t.Errorf("%d store calls, want no third one after Close", got)
		}
	})
}

// A timed out invocation is dead: what it does later does not arrive, its answer least of all.
func TestTimeoutKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.FunctionTimeout = 5 * time.Second })
		timeout := time.After(5 * time.Second) // older than the queue's own timer, and so perhaps before it
		var store calls
		wrapped := q.Store(&store)
		send(t, q, sqstest.Message{Body: "a"})
		var effects log[string]
		var started log[float64]
		now := since()
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			started.add(now())
			if len(started.all()) > 1 {
				return nil
			}
			defer effects.add("deferred")
			<-timeout
			return wrapped.Complete(context.WithoutCancel(ctx), idempotency.CompleteRequest{Key: "late"})
		}))
		if diff := cmp.Diff([]float64{0, 30}, started.all()); diff != "" {
			t.Errorf("invoked at (-want +got):\n%s", diff)
		}
		if got := append(effects.all(), store.all()...); len(got) > 0 {
			t.Errorf("the dead invocation did %q, want nothing", got)
		}
		if got := q.Stats(); got.Timeouts != 1 || got.Crashes != 0 {
			t.Errorf("stats are %+v, want one timeout", got)
		}
	})
}

// A panic ends the process, so other goroutines of the invocation are dead too. A returned error does not: what is
// still running goes on when the environment thaws.
func TestStragglers(t *testing.T) {
	for name, want := range map[string][]string{"panic": nil, "error": {"Release straggler"}, "answer": {"Release straggler"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, "orders", func(o *sqstest.Options) {
					o.FunctionTimeout = 5 * time.Second
					o.Crash = func(p sqstest.Point) bool {
						if p.Key == "straggler" {
							t.Errorf("asked at %+v of an invocation that has ended", p)
						}
						return false
					}
				})
				var store calls
				wrapped := q.Store(&store)
				send(t, q, sqstest.Message{Body: "a"})
				first := true
				drain(t, q, sqstest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
					if !first {
						return nil, nil
					}
					first = false
					go func() {
						time.Sleep(20 * time.Second) // the deadline of an invocation that has answered means nothing
						wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "straggler"})
						sqstest.Checkpoint(ctx, "straggler")
					}()
					switch name {
					case "panic":
						panic("boom")
					case "error":
						return nil, errNo
					}
					return nil, nil
				}))
				time.Sleep(time.Minute)
				if diff := cmp.Diff(want, store.all()); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestOutsideAnInvocation(t *testing.T) {
	q := newQueue(t, "orders", func(o *sqstest.Options) { o.Crash = func(sqstest.Point) bool { return true } })
	sqstest.Checkpoint(t.Context(), "anything")
	var store calls
	if err := q.Store(&store).Release(t.Context(), idempotency.ReleaseRequest{Key: "k"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"Release k"}, store.all()); diff != "" {
		t.Errorf("store calls (-want +got):\n%s", diff)
	}
	defer func() {
		if recover() == nil {
			t.Error("Crash outside an invocation did not panic")
		}
	}()
	sqstest.Crash(t.Context())
}

func TestCrashAfterTheAnswerEndsItsGoroutineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		send(t, q, sqstest.Message{Body: "a"})
		var effects log[string]
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			go func() {
				defer effects.add("deferred")
				time.Sleep(time.Second)
				sqstest.Crash(ctx)
				effects.add("went on")
			}()
			return nil
		}))
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff([]string{"deferred"}, effects.all()); diff != "" {
			t.Errorf("effects (-want +got):\n%s", diff)
		}
		if got := q.Stats(); got.Crashes != 0 || got.Deleted != 1 {
			t.Errorf("stats are %+v, want no crash", got)
		}
	})
}
