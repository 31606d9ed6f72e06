package sqstest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestDeadLetter(t *testing.T) {
	for _, test := range []struct {
		suffix string
		want   map[string]string // what the dead-letter queue says
	}{
		{"", map[string]string{"SentTimestamp": "946684800000"}},
		{".fifo", map[string]string{"SentTimestamp": "946685160000", "MessageGroupId": "g"}},
	} {
		t.Run("orders"+test.suffix, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dead := newQueue(t, "dead"+test.suffix)
				q := newQueue(t, "orders"+test.suffix, func(o *sqstest.Options) { o.DeadLetter, o.MaxReceiveCount = dead, 2 })
				poison := sqstest.Message{Body: "poison"}
				good := sqstest.Message{Body: "good"}
				if test.suffix != "" {
					poison.GroupID, good.GroupID = "g", "g"
				}
				ids := send(t, q, poison, good)
				h, noted := batches(func(body string, _ int) bool { return body == "poison" })
				drain(t, q, h)
				if diff := cmp.Diff([]string{"0 [poison good]", "180 [poison]"}, noted.all()); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
				if got := q.Stats(); got.DeadLettered != 1 || got.Deleted != 1 || got.Receives != 3 || got.Errors != 0 {
					t.Errorf("stats are %+v, want 3 receives, one message deleted, one dead-lettered", got)
				}
				history, _ := q.History(ids[0])
				if !history.Deleted.IsZero() || history.DeadLettered.Sub(history.Sent) != 6*time.Minute || len(history.Received) != 2 {
					t.Errorf("history is %+v, want it dead-lettered after 6 minutes and 2 receives, and not deleted", history)
				}

				now := time.Now()
				var got events.SQSMessage
				drain(t, dead, each(func(_ context.Context, m events.SQSMessage) error { got = m; return nil }))
				want := map[string]string{
					"ApproximateReceiveCount": "3", "SenderId": "AIDAIENQZJOLO23YVJ4VO",
					"ApproximateFirstReceiveTimestamp": "946684800000", "DeadLetterQueueSourceArn": q.ARN(),
				}
				for name, value := range test.want {
					want[name] = value
				}
				if test.suffix != "" {
					want["MessageDeduplicationId"], want["SequenceNumber"] = ids[0], got.Attributes["SequenceNumber"]
				}
				if diff := cmp.Diff(want, got.Attributes); diff != "" {
					t.Errorf("attributes in the dead-letter queue (-want +got):\n%s", diff)
				}
				if got.MessageId != ids[0] || got.Body != "poison" || got.EventSourceARN != dead.ARN() {
					t.Errorf("dead-lettered message is %+v, want it with its ID and body, from the dead-letter queue", got)
				}
				if now.Sub(history.DeadLettered) != 0 {
					t.Errorf("dead-lettered %v before the drain ended, want at the end", now.Sub(history.DeadLettered))
				}
			})
		})
	}
}

func TestDeadLetterDefaultCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newQueue(t, "dead")
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.DeadLetter = dead })
		send(t, q, sqstest.Message{Body: "poison"})
		h, noted := receipts(1000)
		drain(t, q, h)
		if got := len(noted.all()); got != 5 {
			t.Errorf("received %d times, want 5", got)
		}
	})
}

func TestRedrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newQueue(t, "dead")
		q := newQueue(t, "orders", func(o *sqstest.Options) { o.DeadLetter, o.MaxReceiveCount = dead, 1 })
		send(t, q, sqstest.Message{Body: "a"}, sqstest.Message{Body: "b"})
		send(t, dead, sqstest.Message{Body: "direct"}) // belongs to no source, so it stays
		h, noted := receipts(1)
		drain(t, q, h)
		if got := dead.Stats(); got.Visible != 3 {
			t.Errorf("dead-letter queue is %+v, want 3 visible messages", got)
		}
		if got := dead.Redrive(); got != 2 {
			t.Errorf("Redrive moved %d messages, want 2", got)
		}
		drain(t, q, h)
		want := []receipt{{0, "a", "1"}, {0, "b", "1"}, {180, "a", "1"}, {180, "b", "1"}}
		if diff := cmp.Diff(want, noted.all()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		ids := make(map[string]bool)
		var sent []float64
		for _, h := range q.Histories() {
			ids[h.ID] = true
			sent = append(sent, h.Sent.Sub(q.Histories()[0].Sent).Seconds())
		}
		if len(ids) != 4 {
			t.Errorf("message IDs are %v, want four different ones", ids)
		}
		if diff := cmp.Diff([]float64{0, 0, 180, 180}, sent); diff != "" {
			t.Errorf("sent at (-want +got):\n%s", diff)
		}
		if got := dead.Stats(); got.Visible != 1 || got.Deleted != 2 {
			t.Errorf("dead-letter queue is %+v, want one visible message and two deleted", got)
		}
	})
}
