package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.FunctionTimeout = 7 * time.Second })
		send(t, q, sqstest.Message{Body: "a"})
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		err := q.Drain(ctx, each(func(ctx context.Context, m events.SQSMessage) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 7*time.Second {
				t.Errorf("deadline is %v from now, want 7s", time.Until(deadline))
			}
			if ctx.Value(key{}) != "value" {
				t.Error("the values of Drain's context are missing")
			}
			time.Sleep(2 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("Drain's context has ended the invocation's: %v", ctx.Err())
			}
			return nil
		}))
		if err != nil {
			t.Errorf("Drain returned %v, want nil: nothing is left", err)
		}
	})
}

// ended is one way in which an invocation ends, and what is then told.
type ended struct {
	Ending            lambdatest.Ending
	Err               string
	Deleted, Returned int
}

func TestEndings(t *testing.T) {
	reportFirst := func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		return []byte(`{"batchItemFailures":[{"itemIdentifier":"` + event.Records[0].MessageId + `"}]}`), nil
	}
	answer := func(s string) lambdatest.HandlerFunc {
		return func(context.Context, []byte) ([]byte, error) { return []byte(s), nil }
	}
	notReporting := func(o *sqstest.Options) { o.WithoutReportBatchItemFailures = true }
	for _, test := range []struct {
		name    string
		handler lambdatest.HandlerFunc
		option  func(*sqstest.Options)
		want    ended
		stats   sqstest.Stats
	}{
		{name: "partial", handler: reportFirst, want: ended{lambdatest.Answered, "", 2, 1}},
		{name: "empty", handler: answer(""), want: ended{lambdatest.Answered, "", 3, 0}},
		{name: "misspelt", handler: answer(`{"batchItemsFailures":[{"itemIdentifier":"x"}]}`), want: ended{lambdatest.Answered, "", 3, 0}},
		{name: "unknown", handler: answer(`{"batchItemFailures":[{"itemIdentifier":"x"}]}`),
			want: ended{lambdatest.Answered, `names "x", which is not in the batch`, 0, 3}},
		{name: "not JSON", handler: answer("{"), want: ended{lambdatest.Answered, "not JSON", 0, 3}},
		{name: "partial, not reporting", handler: reportFirst, option: notReporting, want: ended{lambdatest.Answered, "", 3, 0}},
		{name: "not JSON, not reporting", handler: answer("{"), option: notReporting, want: ended{lambdatest.Answered, "", 3, 0}},
		{name: "over 6 MB, not reporting", option: notReporting, stats: sqstest.Stats{Errors: 1},
			handler: answer(strings.Repeat("x", lambdatest.MaxPayload+1)),
			want:    ended{lambdatest.FunctionError, "answer has 6291457 bytes", 0, 3}},
		{name: "error", want: ended{lambdatest.FunctionError, "no", 0, 3}, stats: sqstest.Stats{Errors: 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) {
				return []byte(`{"batchItemFailures":[]}`), errNo
			}},
		{name: "error, not reporting", want: ended{lambdatest.FunctionError, "no", 0, 3}, stats: sqstest.Stats{Errors: 1},
			option: notReporting, handler: func(ctx context.Context, payload []byte) ([]byte, error) { return nil, errNo }},
		{name: "panic", want: ended{lambdatest.Panicked, "handler panicked: boom\ngoroutine", 0, 3}, stats: sqstest.Stats{Errors: 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { panic("boom") }},
		{name: "timeout", want: ended{lambdatest.TimedOut, "", 0, 3}, stats: sqstest.Stats{Timeouts: 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }},
		{name: "answer at the deadline", want: ended{lambdatest.TimedOut, "", 0, 3}, stats: sqstest.Stats{Timeouts: 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) {
				time.Sleep(30 * time.Second)
				return nil, nil
			}},
		{name: "crash", want: ended{lambdatest.Crashed, "", 0, 3}, stats: sqstest.Stats{Crashes: 1},
			handler: func(ctx context.Context, payload []byte) ([]byte, error) { lambdatest.Crash(ctx); return nil, nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var deliveries log[sqstest.Delivery]
				q := newQueue(t, "orders", func(o *sqstest.Options) {
					o.Observe = deliveries.add
					if test.option != nil {
						test.option(o)
					}
				})
				ids := send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"}, sqstest.Message{Body: "c"})
				first := true
				now := since()
				drain(t, q, lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
					if first {
						first = false
						return test.handler(ctx, payload)
					}
					return nil, nil
				}))
				d := deliveries.all()[0]
				got := ended{d.Ending, "", len(d.Deleted), len(d.Returned)}
				if d.Err != nil && test.want.Err != "" && strings.Contains(d.Err.Error(), test.want.Err) {
					got.Err = test.want.Err
				} else if d.Err != nil {
					got.Err = d.Err.Error()
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("delivery (-want +got):\n%s", diff)
				}
				if d.Ending != lambdatest.Answered && d.Response != nil {
					t.Errorf("response of an invocation that %v is %q, want nil", d.Ending, d.Response)
				}
				if got, want := now(), 180.0; test.want.Returned > 0 && got != want {
					t.Errorf("what failed was done with after %v s, want %v", got, want)
				}
				counters := q.Stats()
				got2 := sqstest.Stats{Crashes: counters.Crashes, Timeouts: counters.Timeouts, Errors: counters.Errors}
				if diff := cmp.Diff(test.stats, got2); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				for _, id := range ids {
					if h, _ := q.History(id); h.Deleted.IsZero() {
						t.Errorf("message %s is not deleted in the end", id)
					}
				}
			})
		})
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deliveries []sqstest.Delivery
		q := newQueue(t, "orders", func(o *sqstest.Options) {
			o.Observe = func(d sqstest.Delivery) {
				time.Sleep(time.Second) // Drain waits for the observer
				deliveries = append(deliveries, d)
			}
		})
		ids := send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"})
		failing := true
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			time.Sleep(time.Second)
			if m.Body == "a" && failing {
				failing = false
				return errors.New("a fails once")
			}
			return nil
		}))
		start := time.Unix(946684800, 0)
		want := []sqstest.Delivery{
			{Invocation: 1, Started: start, Ended: start.Add(2 * time.Second), Ending: lambdatest.Answered,
				Response: []byte(`{"batchItemFailures":[{"itemIdentifier":"` + ids[0] + `"}]}`),
				Deleted:  ids[1:], Returned: ids[:1]},
			{Invocation: 2, Started: start.Add(180 * time.Second), Ended: start.Add(181 * time.Second), Ending: lambdatest.Answered,
				Response: []byte(`{"batchItemFailures":[]}`), Deleted: ids[:1]},
		}
		if diff := cmp.Diff(want, deliveries, cmpopts.IgnoreFields(sqstest.Delivery{}, "Messages")); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		for i, want := range [][]string{{"a", "b"}, {"a"}} {
			if diff := cmp.Diff(want, bodies(deliveries[i].Messages)); diff != "" {
				t.Errorf("messages of delivery %d (-want +got):\n%s", i+1, diff)
			}
		}
	})
}

// Observe may be a test's code, which ends its goroutine with t.Fatal.
func TestGoexitInObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.Observe = func(sqstest.Delivery) { runtime.Goexit() } })
		send(t, q, sqstest.Message{Body: "a"})
		now := since()
		drain(t, q, each(func(context.Context, events.SQSMessage) error { return nil }))
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if took := now(); took > 0 || q.Stats().Deleted != 1 {
			t.Errorf("Drain and Close took %v s with the stats %v, want no time and the message deleted", took, q.Stats())
		}
	})
}
