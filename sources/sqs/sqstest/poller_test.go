package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestDrainOfAnEmptyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, noted := receipts(0)
		drain(t, newQueue(t, "orders"), h)
		if got := noted.all(); len(got) > 0 {
			t.Errorf("received %v from an empty queue", got)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.BatchSize = 1 })
		send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		now := since()
		err := q.Drain(ctx, each(func(context.Context, events.SQSMessage) error { time.Sleep(3 * time.Second); return nil }))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `1 messages are left in "orders"`) {
			t.Errorf("Drain returned %v, want context.DeadlineExceeded and one message left", err)
		}
		if now() != 3 {
			t.Errorf("Drain returned after %v s, want 3: when the invocation under way has ended", now())
		}
		if got := q.Stats(); got.Deleted != 1 || got.Visible != 1 {
			t.Errorf("stats are %+v, want one message deleted, one visible", got)
		}
	})
}

func TestDrainGivesUpOnPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		ids := send(t, q, sqstest.Message{Body: "a"})
		err := q.Drain(t.Context(), each(func(context.Context, events.SQSMessage) error { return errNo }))
		want := fmt.Sprintf(`sqstest: message %s was received more than 1000 times and is not deleted; 1 messages are left in "orders"`, ids[0])
		if err == nil || err.Error() != want {
			t.Errorf("Drain returned %v, want %s", err, want)
		}
	})
}

func TestNilHandler(t *testing.T) {
	q := newQueue(t, "orders")
	for _, err := range []error{q.Drain(t.Context(), nil), q.Run(t.Context(), nil)} {
		if err == nil {
			t.Error("a nil handler gave no error")
		}
	}
}

// What is sent by another goroutine, or by the handler itself, is drained too.
func TestDrainTakesWhatIsSentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.Concurrency = 2 })
		send(t, q, sqstest.Message{Body: "1"})
		go func() {
			time.Sleep(500 * time.Millisecond)
			send(t, q, sqstest.Message{Body: "other"})
		}()
		var noted log[string]
		now := since()
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			noted.add(fmt.Sprint(now(), " ", m.Body))
			time.Sleep(time.Second)
			if m.Body == "1" {
				send(t, q, sqstest.Message{Body: "2"})
			}
			return nil
		}))
		if diff := cmp.Diff([]string{"0 1", "0.5 other", "1 2"}, noted.all()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		ctx, cancel := context.WithCancel(t.Context())
		h, noted := receipts(1)
		ended := make(chan error)
		go func() { ended <- q.Run(ctx, h) }()
		time.Sleep(time.Hour)
		send(t, q, sqstest.Message{Body: "a"})
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]receipt{{3600, "a", "1"}, {3780, "a", "2"}}, noted.all()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	})
}

func TestInRealTime(t *testing.T) {
	q := newQueue(t, "orders", func(o *sqstest.Options) {
		o.FunctionTimeout, o.VisibilityTimeout, o.Concurrency = time.Second, time.Second, 3
	})
	for i := range 30 {
		send(t, q, sqstest.Message{Body: fmt.Sprint(i)})
	}
	h := each(func(ctx context.Context, m events.SQSMessage) error {
		if m.Attributes["ApproximateReceiveCount"] == "1" && m.Body == "7" {
			lambdatest.Crash(ctx)
		}
		return nil
	})
	drain(t, q, h)
	if got := q.Stats(); got.Crashes != 1 || got.Deleted != 30 || got.Visible+got.InFlight+got.Delayed != 0 {
		t.Errorf("stats are %+v, want 1 crash and 30 messages deleted", got)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders")
		ids := send(t, q, sqstest.Message{Body: "a"})
		var store calls
		wrapped := q.Store(&store)
		ended := make(chan error)
		var effects log[string]
		go func() {
			ended <- q.Run(t.Context(), each(func(ctx context.Context, m events.SQSMessage) error {
				<-ctx.Done()
				err := wrapped.Complete(context.WithoutCancel(ctx), idempotency.CompleteRequest{Key: "late"})
				effects.add(fmt.Sprint(context.Cause(ctx), ", ", err))
				return nil
			}))
		}()
		time.Sleep(time.Second)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, lambdatest.ErrClosed) {
			t.Errorf("Run returned %v, want ErrClosed", err)
		}
		if diff := cmp.Diff([]string{"context canceled, lambdatest: function is closed"}, effects.all()); diff != "" {
			t.Errorf("the running invocation (-want +got):\n%s", diff)
		}
		if len(store.all()) > 0 {
			t.Errorf("store calls are %q, want none", store.all())
		}
		h, _ := q.History(ids[0])
		if !h.Deleted.IsZero() {
			t.Error("the message is deleted by an invocation that Close has ended")
		}
		_, sendErr := q.Send(sqstest.Message{Body: "b"})
		for name, err := range map[string]error{
			"Drain": q.Drain(t.Context(), each(nil)), "Run": q.Run(t.Context(), each(nil)),
			"Send": sendErr, "Redeliver": q.Redeliver(ids[0]),
		} {
			if !errors.Is(err, lambdatest.ErrClosed) {
				t.Errorf("%s after Close returned %v, want ErrClosed", name, err)
			}
		}
		if err := q.Close(); err != nil {
			t.Errorf("the second Close returned %v, want nil", err)
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue("orders")
		if err != nil {
			t.Fatal(err)
		}
		ids := send(t, q, sqstest.Message{Body: "a"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // after the invocation has timed out
		defer cancel()
		err = q.Run(ctx, each(func(ctx context.Context, m events.SQSMessage) error {
			time.Sleep(time.Hour) // deaf to its context
			return nil
		}))
		if err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if err := q.Close(); err == nil || !strings.Contains(err.Error(), ids[0]) {
			t.Errorf("Close returned %v, want an error that names %s", err, ids[0])
		}
		time.Sleep(time.Hour)
	})
}

// Anything may fail, crash, time out or come twice: in the end every message is deleted, after its work was done.
func TestNothingIsLost(t *testing.T) {
	var crashes, timeouts, duplicates int // over all seeds: a single one may be a lucky run
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			fails := lambdatest.Randomly(seed+100, .1)
			hangs := lambdatest.Randomly(seed+200, .05)
			q := newQueue(t, "orders", func(o *sqstest.Options) {
				o.Seed, o.Concurrency, o.DuplicateProbability = seed+1, 3, .1
				o.Crash = lambdatest.Randomly(seed, .02)
			})
			for i := range 100 {
				send(t, q, sqstest.Message{Body: fmt.Sprint(i)})
			}
			var done log[string]
			drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
				p := lambdatest.Point{Name: m.Body}
				if hangs(p) {
					<-ctx.Done()
				}
				lambdatest.Checkpoint(ctx, m.Body)
				if fails(p) {
					return errNo
				}
				done.add(m.Body)
				return nil
			}))
			worked := make(map[string]bool)
			for _, body := range done.all() {
				worked[body] = true
			}
			for _, h := range q.Histories() {
				if h.Deleted.IsZero() || !worked[h.Message.Body] {
					t.Errorf("seed %d: message %s is lost: %+v", seed, h.Message.Body, h)
				}
			}
			stats := q.Stats()
			if left := stats.Visible + stats.InFlight + stats.Delayed; left > 0 {
				t.Errorf("seed %d: stats are %+v, want nothing left", seed, stats)
			}
			crashes += stats.Crashes
			timeouts += stats.Timeouts
			duplicates += stats.Duplicates
		})
	}
	if crashes < 20 || timeouts < 20 || duplicates < 20 {
		t.Errorf("%d crashes, %d timeouts, %d duplicates, want at least 20 each", crashes, timeouts, duplicates)
	}
}
