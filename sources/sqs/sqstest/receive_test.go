package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

var errNo = errors.New("no")

// receipt is what one delivery of one message looked like.
type receipt struct {
	At    float64 // seconds since the start
	Body  string
	Count string
}

// receipts returns a handler that notes what it receives and fails as often as told, and what it has noted.
func receipts(failures int) (lambdatest.Handler, *log[receipt]) {
	noted := new(log[receipt])
	now := since()
	times := make(map[string]int)
	return each(func(ctx context.Context, m events.SQSMessage) error {
		noted.add(receipt{now(), m.Body, m.Attributes["ApproximateReceiveCount"]})
		if times[m.Body]++; times[m.Body] <= failures {
			return errNo
		}
		return nil
	}), noted
}

func TestVisibilityTimeout(t *testing.T) {
	for _, test := range []struct {
		name   string
		option func(*sqstest.Options)
		want   float64 // when the message comes back
	}{
		{"default", func(*sqstest.Options) {}, 180},
		{"six times the function timeout", func(o *sqstest.Options) { o.FunctionTimeout = 10 * time.Second }, 60},
		{"as set", func(o *sqstest.Options) { o.VisibilityTimeout = 31 * time.Second }, 31},
		{"longest function timeout", func(o *sqstest.Options) { o.FunctionTimeout = 90 * time.Minute }, 9 * 3600},
		{"with a window", func(o *sqstest.Options) { o.BatchingWindow, o.VisibilityTimeout = 5*time.Second, 35*time.Second }, 45},
		{"shorter than window and timeout", func(o *sqstest.Options) {
			o.BatchingWindow, o.VisibilityTimeout = 5*time.Second, 34*time.Second
		}, 5 + 65 + 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, "orders", test.option)
				send(t, q, sqstest.Message{Body: "a"})
				h, noted := receipts(1)
				drain(t, q, h)
				got := noted.all()
				if len(got) != 2 || got[1].At != test.want {
					t.Errorf("received %v, want the second time at %v s", got, test.want)
				}
			})
		})
	}
}

func TestReceiveAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		send(t, q, sqstest.Message{Body: "a", Delay: time.Second})
		var handles []string
		var got []map[string]string
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			handles = append(handles, m.ReceiptHandle)
			got = append(got, m.Attributes)
			if len(got) < 3 {
				return errNo
			}
			return nil
		}))
		want := []map[string]string{}
		for i := range 3 {
			want = append(want, map[string]string{
				"SenderId": "AIDAIENQZJOLO23YVJ4VO", "SentTimestamp": "946684800000",
				"ApproximateFirstReceiveTimestamp": "946684801000", "ApproximateReceiveCount": fmt.Sprint(i + 1),
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attributes of three receives (-want +got):\n%s", diff)
		}
		if handles[0] == handles[1] || handles[1] == handles[2] || handles[0] == handles[2] {
			t.Errorf("receipt handles are %q, want three different ones", handles)
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		send(t, q, sqstest.Message{Body: "a", Delay: 15 * time.Minute}, sqstest.Message{Body: "b"})
		if got := q.Stats(); got.Visible != 1 || got.Delayed != 1 {
			t.Errorf("stats are %+v, want one visible and one delayed", got)
		}
		h, noted := receipts(0)
		drain(t, q, h)
		if diff := cmp.Diff([]receipt{{0, "b", "1"}, {900, "a", "1"}}, noted.all()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// sizes returns a handler that notes when it was invoked with how many records.
func sizes() (lambdatest.Handler, *log[[2]float64]) {
	noted := new(log[[2]float64])
	now := since()
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		noted.add([2]float64{now(), float64(len(event.Records))})
		return nil, nil
	}), noted
}

func TestBatchSize(t *testing.T) {
	large := strings.Repeat("x", 1<<20-100)
	for _, test := range []struct {
		name     string
		messages int
		body     string
		option   func(*sqstest.Options)
		want     [][2]float64
	}{
		{"default", 25, "x", func(*sqstest.Options) {}, [][2]float64{{0, 10}, {0, 10}, {0, 5}}},
		{"one", 2, "x", func(o *sqstest.Options) { o.BatchSize = 1 }, [][2]float64{{0, 1}, {0, 1}}},
		{"window", 25, "x", func(o *sqstest.Options) { o.BatchingWindow = 20 * time.Second }, [][2]float64{{0, 10}, {0, 10}, {20, 5}}},
		{"thousands", 10001, "x", func(o *sqstest.Options) { o.BatchSize, o.BatchingWindow = 10000, time.Second },
			[][2]float64{{0, 10000}, {1, 1}}},
		{"6 MB", 7, large, func(*sqstest.Options) {}, [][2]float64{{0, 5}, {0, 2}}},
		{"6 MB with a window", 7, large, func(o *sqstest.Options) { o.BatchingWindow = time.Second }, [][2]float64{{0, 5}, {1, 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, "orders", test.option)
				for range test.messages {
					send(t, q, sqstest.Message{Body: test.body})
				}
				h, noted := sizes()
				drain(t, q, h)
				if diff := cmp.Diff(test.want, noted.all()); diff != "" {
					t.Errorf("seconds and batch sizes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What comes within the window joins the batch, a batch that is full goes at once, and what it leaves behind has a window
// of its own.
func TestBatchingWindowFills(t *testing.T) {
	for _, test := range []struct {
		delays []time.Duration
		want   [][2]float64
	}{
		{[]time.Duration{1, 4, 6, 7, 16, 18}, [][2]float64{{6, 3}, {17, 2}, {28, 1}}},
		{[]time.Duration{1, 4, 4, 4}, [][2]float64{{4, 3}, {14, 1}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders", func(o *sqstest.Options) { o.BatchingWindow, o.BatchSize = 10*time.Second, 3 })
			for _, delay := range test.delays {
				send(t, q, sqstest.Message{Body: "x", Delay: delay * time.Second})
			}
			h, noted := sizes()
			drain(t, q, h)
			if diff := cmp.Diff(test.want, noted.all()); diff != "" {
				t.Errorf("delays %v: seconds and batch sizes (-want +got):\n%s", test.delays, diff)
			}
		})
	}
}

func TestConcurrency(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, "orders", func(o *sqstest.Options) { o.BatchSize, o.Concurrency = 1, concurrency })
				for range 6 {
					send(t, q, sqstest.Message{Body: "x"})
				}
				var running log[int]
				now := since()
				drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
					running.add(1)
					time.Sleep(time.Second)
					running.add(-1)
					return nil
				}))
				if got, want := now(), 6/float64(concurrency); got != want {
					t.Errorf("six messages of a second each took %v s, want %v", got, want)
				}
				most, sum := 0, 0
				for _, step := range running.all() {
					sum += step
					most = max(most, sum)
				}
				if most != concurrency {
					t.Errorf("at most %d invocations overlapped, want %d", most, concurrency)
				}
			})
		})
	}
}

func TestChangeVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		ctx := t.Context()
		send(t, q, sqstest.Message{Body: "a"})
		var handles []string
		now := since()
		var at []float64
		drain(t, q, each(func(_ context.Context, m events.SQSMessage) error {
			handles, at = append(handles, m.ReceiptHandle), append(at, now())
			timeouts := []time.Duration{0, 90 * time.Second, 12 * time.Hour}
			if len(handles) > len(timeouts) {
				return nil
			}
			if err := q.ChangeVisibility(ctx, m.ReceiptHandle, timeouts[len(handles)-1]); err != nil {
				t.Error(err)
			}
			if len(handles) > 1 {
				if err := q.ChangeVisibility(ctx, handles[0], 0); !errors.Is(err, sqstest.ErrNotInFlight) {
					t.Errorf("an old receipt handle gives %v, want ErrNotInFlight", err)
				}
			}
			return errNo
		}))
		if diff := cmp.Diff([]float64{0, 0, 90, 90 + 12*3600}, at); diff != "" {
			t.Errorf("received at (-want +got):\n%s", diff)
		}
		for _, handle := range append(handles, "", "nonsense") {
			if err := q.ChangeVisibility(ctx, handle, 0); !errors.Is(err, sqstest.ErrNotInFlight) {
				t.Errorf("ChangeVisibility after the delete returned %v, want ErrNotInFlight", err)
			}
		}
		for _, timeout := range []time.Duration{-1, 12*time.Hour + 1, math.MaxInt64} {
			if err := q.ChangeVisibility(ctx, handles[0], timeout); err == nil || !strings.Contains(err.Error(), "must be 0 to 12h") {
				t.Errorf("a timeout of %v gives %v, want an error that says 0 to 12h", timeout, err)
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := q.ChangeVisibility(cancelled, handles[0], 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled context gives %v, want context.Canceled", err)
		}
	})
}

// Twelve hours are the most that a receive can last, however often its timeout is changed.
func TestChangeVisibilityBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.FunctionTimeout = time.Hour })
		send(t, q, sqstest.Message{Body: "a"})
		now := since()
		var at []float64
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			if at = append(at, now()); len(at) > 2 {
				return nil
			}
			change := func(timeout time.Duration, refused bool) {
				t.Helper()
				err := q.ChangeVisibility(ctx, m.ReceiptHandle, timeout)
				const want = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
				if (err != nil) != refused || refused && !strings.Contains(err.Error(), want) {
					t.Errorf("a timeout of %v gives %v, want it refused: %v", timeout, err, refused)
				}
			}
			change(12*time.Hour, false)
			time.Sleep(time.Minute)
			change(12*time.Hour-time.Minute+1, true)
			change(12*time.Hour, true)
			change(time.Hour, false)
			time.Sleep(29 * time.Minute)
			change(11*time.Hour+30*time.Minute+1, true)
			change(11*time.Hour+30*time.Minute, false)
			return errNo
		}))
		// The limit is that of each receive.
		if diff := cmp.Diff([]float64{0, 12 * 3600, 24 * 3600}, at); diff != "" {
			t.Errorf("received at (-want +got):\n%s", diff)
		}
	})
}

// A message whose visibility timeout has run out is not in flight any more, even before it is received again.
func TestChangeVisibilityTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.VisibilityTimeout = time.Minute })
		send(t, q, sqstest.Message{Body: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		var handle string
		err := q.Drain(ctx, each(func(_ context.Context, m events.SQSMessage) error {
			handle = m.ReceiptHandle
			cancel()
			return errNo
		}))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("Drain returned %v, want context.Canceled", err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if got := q.Stats().InFlight; got != 1 {
			t.Errorf("%d messages in flight one nanosecond before the timeout, want 1", got)
		}
		time.Sleep(time.Nanosecond)
		if err := q.ChangeVisibility(t.Context(), handle, 0); !errors.Is(err, sqstest.ErrNotInFlight) {
			t.Errorf("ChangeVisibility after the visibility timeout returned %v, want ErrNotInFlight", err)
		}
	})
}

// The answer comes when the message was released and received again: the delete has a stale receipt handle, and AWS
// deletes nothing.
func TestStaleDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.Concurrency = 2 })
		ids := send(t, q, sqstest.Message{Body: "a"})
		var deleted log[time.Time]
		n := 0
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			n++
			if n == 1 { // released at 1 s, answers at 3 s
				time.Sleep(time.Second)
				if err := q.ChangeVisibility(ctx, m.ReceiptHandle, 0); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				return nil
			}
			time.Sleep(9 * time.Second) // received at 1 s, answers at 10 s
			history, _ := q.History(m.MessageId)
			deleted.add(history.Deleted)
			return nil
		}))
		if diff := cmp.Diff([]time.Time{{}}, deleted.all()); diff != "" {
			t.Errorf("deleted at 10 s (-want +got):\n%s", diff)
		}
		if history, _ := q.History(ids[0]); history.Deleted.Sub(history.Sent) != 10*time.Second {
			t.Errorf("deleted after %v, want 10s", history.Deleted.Sub(history.Sent))
		}
	})
}
