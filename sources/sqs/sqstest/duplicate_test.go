package sqstest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestRedeliver(t *testing.T) {
	t.Run("in one batch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders")
			ids := send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"})
			if err := q.Redeliver(ids[0]); err != nil {
				t.Fatal(err)
			}
			n := 0
			h, noted := batches(func(body string, receive int) bool {
				n++
				return n == 3 // the second copy of a; one identifier stands for both, and failure wins
			})
			drain(t, q, h)
			if diff := cmp.Diff([]string{"0 [a b a]", "180 [a a]"}, noted.all()); diff != "" {
				t.Errorf("batches (-want +got):\n%s", diff)
			}
			if got := q.Stats(); got.Sent != 2 || got.Duplicates != 1 || got.Receives != 5 || got.Deleted != 3 {
				t.Errorf("stats are %+v, want 2 sent, 1 duplicate, 5 receives, 3 deleted", got)
			}
		})
	})
	t.Run("in flight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders", func(o *sqstest.Options) { o.Concurrency = 2 })
			id := send(t, q, sqstest.Message{Body: "a"})[0]
			now := since()
			var noted log[receipt]
			drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
				noted.add(receipt{now(), m.Body, m.Attributes["ApproximateReceiveCount"]})
				time.Sleep(time.Second)
				if len(noted.all()) == 1 {
					if err := q.Redeliver(id); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Second)
				return nil
			}))
			if diff := cmp.Diff([]receipt{{0, "a", "1"}, {1, "a", "1"}}, noted.all()); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders")
			id := send(t, q, sqstest.Message{Body: "a"})[0]
			h, noted := receipts(1)
			drain(t, q, h)
			if err := q.Redeliver(id); err != nil {
				t.Fatal(err)
			}
			drain(t, q, h)
			if diff := cmp.Diff([]receipt{{0, "a", "1"}, {180, "a", "2"}, {180, "a", "2"}}, noted.all()); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		q, fifoQueue := newQueue(t, "orders"), newQueue(t, "orders.fifo")
		id := send(t, fifoQueue, fifo("A1")...)[0]
		for want, err := range map[string]error{
			`sqstest: message "x" was never in queue "orders"`:              q.Redeliver("x"),
			`sqstest: "orders.fifo" is a FIFO queue and does not redeliver`: fifoQueue.Redeliver(id),
		} {
			if err == nil || err.Error() != want {
				t.Errorf("error is %v, want %s", err, want)
			}
		}
	})
}

func TestDuplicateProbability(t *testing.T) {
	run := func(seed uint64) (kinds map[string]int, stats sqstest.Stats, ids []string) {
		kinds = make(map[string]int)
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders", func(o *sqstest.Options) {
				o.Seed, o.DuplicateProbability, o.Concurrency = seed, .2, 2
			})
			for i := range 200 {
				ids = append(ids, send(t, q, sqstest.Message{Body: fmt.Sprint(i)})...)
			}
			var seen log[string]
			drain(t, q, lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				batch := make(map[string]bool)
				answer, err := each(func(ctx context.Context, m events.SQSMessage) error {
					history, _ := q.History(m.MessageId)
					switch {
					case batch[m.MessageId]:
						seen.add("in one batch")
					case !history.Deleted.IsZero():
						seen.add("deleted")
					case time.Now().After(history.Received[0]):
						seen.add("in flight")
					}
					if time.Since(history.Received[0]) > time.Minute {
						seen.add("late")
					}
					batch[m.MessageId] = true
					time.Sleep(time.Millisecond)
					return nil
				}).Invoke(ctx, payload)
				return answer, err
			}))
			for _, kind := range seen.all() {
				kinds[kind]++
			}
			stats = q.Stats()
		})
		return kinds, stats, ids
	}
	kinds, one, ids := run(1)
	if one.Duplicates < 20 || one.Duplicates > 60 {
		t.Errorf("%d duplicates of 200 messages at probability 0.2, want about 40", one.Duplicates)
	}
	if one.Receives != 200+one.Duplicates || one.Deleted != one.Receives {
		t.Errorf("stats are %+v, want every message and every duplicate received and deleted once", one)
	}
	for _, kind := range []string{"in one batch", "deleted", "in flight", "late"} {
		if kinds[kind] < 3 {
			t.Errorf("%d duplicates were %q, want at least 3", kinds[kind], kind)
		}
	}
	_, again, sameIDs := run(1)
	if !cmp.Equal(ids, sameIDs) {
		t.Error("message IDs of two runs with seed 1 differ")
	}
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("stats of two runs with seed 1 (-first +second):\n%s", diff)
	}
	if _, _, otherIDs := run(2); cmp.Equal(ids, otherIDs) {
		t.Error("message IDs of seeds 1 and 2 are the same")
	}
}
