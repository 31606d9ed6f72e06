package byhand_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/examples/audit/internal/byhand"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
)

// rows is a log that refuses the rows of some orders.
type rows struct {
	refused string
	entries []audit.Entry
}

func (r *rows) Append(_ context.Context, e audit.Entry) error {
	if e.OrderID == r.refused {
		return errors.New("log is full")
	}
	r.entries = append(r.entries, e)
	return nil
}

// event has the changes of two orders, and one whose total is no number.
func event() events.DynamoDBEvent {
	put := func(id, status string, total events.DynamoDBAttributeValue) func(*dynamodbstreamtest.Table) error {
		return func(t *dynamodbstreamtest.Table) error {
			_, err := t.Put(dynamodbstreamtest.Item{
				"id": events.NewStringAttribute(id), "version": events.NewNumberAttribute("1"), "total": total,
				"customer": events.NewStringAttribute("ada"), "status": events.NewStringAttribute(status),
			})
			return err
		}
	}
	key := dynamodbstreamtest.Item{"id": events.NewStringAttribute("a")}
	return dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"},
		put("a", "placed", events.NewNumberAttribute("8900")),
		put("b", "placed", events.NewNumberAttribute("100")),
		put("broken", "placed", events.NewStringAttribute("89,00 EUR")),
		put("a", "paid", events.NewNumberAttribute("8900")),
		func(t *dynamodbstreamtest.Table) error { _, err := t.Expire(key); return err },
	)
}

// TestSameRows checks that the loop is a fair one: as long as nothing fails, it logs what the handler logs.
func TestSameRows(t *testing.T) {
	var byLoop, byHandler rows
	if _, err := (byhand.Loop{Log: &byLoop}).Invoke(t.Context(), dynamodbstreamtest.Payload(event())); err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New("audit", idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.CountAttempts = true })
	if err != nil {
		t.Fatal(err)
	}
	sink := func(context.Context, *batch.Record, error) error { return nil }
	handler, err := audit.NewHandler(&byHandler, guard, sink, func(o *dynamodbstream.Options) { o.Concurrency = 1 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handler.Handle(t.Context(), event()); err != nil {
		t.Fatal(err)
	}
	ignored := cmpopts.IgnoreFields(audit.Entry{}, "EventID", "SequenceNumber", "At") // two events
	if diff := cmp.Diff(byHandler.entries, byLoop.entries, ignored); diff != "" || len(byLoop.entries) != 4 {
		t.Errorf("log of %d rows (-handler +loop):\n%s", len(byLoop.entries), diff)
	}
}

func TestFailures(t *testing.T) {
	e := event()
	for _, test := range []struct {
		stop   bool
		failed []int // of the event's records
		logged int
	}{
		{stop: false, failed: []int{1, 2}, logged: 3},
		{stop: true, failed: []int{1}, logged: 1},
	} {
		log := rows{refused: "b"}
		answer, err := byhand.Loop{Log: &log, Stop: test.stop}.Invoke(t.Context(), dynamodbstreamtest.Payload(e))
		if err != nil {
			t.Fatal(err)
		}
		var want, got events.DynamoDBEventResponse
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatal(err)
		}
		for _, i := range test.failed {
			want.BatchItemFailures = append(want.BatchItemFailures,
				events.DynamoDBBatchItemFailure{ItemIdentifier: e.Records[i].Change.SequenceNumber})
		}
		if diff := cmp.Diff(want, got); diff != "" || len(log.entries) != test.logged {
			t.Errorf("stop %v: %d rows, want %d; answer (-want +got):\n%s", test.stop, len(log.entries), test.logged, diff)
		}
	}
}
