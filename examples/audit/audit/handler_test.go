package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
)

// rows is a log in memory that refuses the rows of some orders.
type rows struct {
	refused string

	mu      sync.Mutex
	entries []audit.Entry
}

func (r *rows) Append(_ context.Context, e audit.Entry) error {
	if e.OrderID == r.refused {
		return errors.New("log is full")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
	return nil
}

// story is what happens to the orders of a table.
func story(t *testing.T, table *dynamodbstreamtest.Table) {
	t.Helper()
	key := func(id string) dynamodbstreamtest.Item {
		return dynamodbstreamtest.Item{"id": events.NewStringAttribute(id)}
	}
	for _, change := range []func() (dynamodbstreamtest.Change, error){
		func() (dynamodbstreamtest.Change, error) { return table.Put(item("a", "1", "placed")) },
		func() (dynamodbstreamtest.Change, error) { return table.Put(item("b", "1", "held")) },
		func() (dynamodbstreamtest.Change, error) { return table.Put(item("a", "2", "paid")) },
		func() (dynamodbstreamtest.Change, error) { return table.Expire(key("b")) },
		func() (dynamodbstreamtest.Change, error) { return table.Delete(key("a")) },
	} {
		if _, err := change(); err != nil {
			t.Fatal(err)
		}
	}
}

func item(id, version, status string) dynamodbstreamtest.Item {
	return dynamodbstreamtest.Item{
		"id": events.NewStringAttribute(id), "version": events.NewNumberAttribute(version),
		"customer": events.NewStringAttribute("ada"), "status": events.NewStringAttribute(status),
		"total": events.NewNumberAttribute("8900"),
	}
}

// drain hands the changes of a table to the handler, and returns which it has dead-lettered.
func drain(t *testing.T, log audit.Log, view events.DynamoDBStreamViewType) (deadLettered []string) {
	t.Helper()
	table, err := dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id"},
		func(o *dynamodbstreamtest.Options) {
			o.StreamViewType = view
			// An order of the story has up to three changes. If none can be logged, each uses that many retries of the batch.
			o.MaximumRetryAttempts = 3 * (audit.MaxAttempts - 1)
		})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New("audit", table.Store(idempotency.NewMemoryStore()),
		func(o *idempotency.Options) { o.CountAttempts = true })
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	sink := func(_ context.Context, r *batch.Record, _ error) error {
		mu.Lock()
		defer mu.Unlock()
		c := r.Value.(*dynamodbstream.Change[audit.Order])
		deadLettered = append(deadLettered, c.Keys.ID+" "+string(c.Operation()))
		return nil
	}
	handler, err := audit.NewHandler(log, guard, sink, func(o *dynamodbstream.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	story(t, table)
	if err := table.Drain(t.Context(), handler); err != nil {
		t.Error(err)
	}
	if got := table.Discarded(); len(got) > 0 {
		t.Errorf("discarded: %+v, want nothing", got)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
	return deadLettered
}

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rows
		if deadLettered := drain(t, &log, events.DynamoDBStreamViewTypeNewAndOldImages); len(deadLettered) > 0 {
			t.Errorf("dead-lettered: %q, want none", deadLettered)
		}
		placed := func(status string) []audit.Difference {
			return []audit.Difference{
				{Attribute: "customer", To: "ada"}, {Attribute: "status", To: status}, {Attribute: "total", To: "8900"},
			}
		}
		deleted := func(status string) []audit.Difference {
			return []audit.Difference{
				{Attribute: "customer", From: "ada"}, {Attribute: "status", From: status}, {Attribute: "total", From: "8900"},
			}
		}
		want := map[string][]audit.Entry{
			"a": {
				{OrderID: "a", Version: 1, Operation: dynamodbstream.Insert, Differences: placed("placed")},
				{OrderID: "a", Version: 2, Operation: dynamodbstream.Modify,
					Differences: []audit.Difference{{Attribute: "status", From: "placed", To: "paid"}}},
				{OrderID: "a", Version: 2, Operation: dynamodbstream.Remove, Differences: deleted("paid")},
			},
			"b": {
				{OrderID: "b", Version: 1, Operation: dynamodbstream.Insert, Differences: placed("held")},
				{OrderID: "b", Version: 1, Operation: dynamodbstream.Remove, ByTTL: true, Differences: deleted("held")},
			},
		}
		if diff := cmp.Diff(want, byOrder(log.entries),
			cmpopts.IgnoreFields(audit.Entry{}, "EventID", "SequenceNumber", "At")); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		for _, e := range log.entries {
			if e.EventID == "" || e.SequenceNumber == "" || e.At.IsZero() {
				t.Errorf("row %+v does not say which change it is", e)
			}
		}
	})
}

func byOrder(entries []audit.Entry) map[string][]audit.Entry {
	orders := make(map[string][]audit.Entry)
	for _, e := range entries {
		orders[e.OrderID] = append(orders[e.OrderID], e)
	}
	return orders
}

// TestGivesUp has a log that refuses one order. Its changes go to the dead-letter queue, in their order, and the other's
// are logged.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := rows{refused: "a"}
		deadLettered := drain(t, &log, events.DynamoDBStreamViewTypeNewAndOldImages)
		if diff := cmp.Diff([]string{"a INSERT", "a MODIFY", "a REMOVE"}, deadLettered); diff != "" {
			t.Errorf("dead-lettered (-want +got):\n%s", diff)
		}
		if got := byOrder(log.entries); len(got["b"]) != 2 || len(got) != 1 {
			t.Errorf("log is %+v, want both changes of b", got)
		}
	})
}

// TestImagesAreMissing has streams that lack an image. A row that took a missing image for an order that was not there
// would be false, so that there is none.
func TestImagesAreMissing(t *testing.T) {
	for view, want := range map[events.DynamoDBStreamViewType]map[dynamodbstream.Operation]int{
		events.DynamoDBStreamViewTypeNewImage: {dynamodbstream.Insert: 2},
		events.DynamoDBStreamViewTypeOldImage: {dynamodbstream.Remove: 2},
		events.DynamoDBStreamViewTypeKeysOnly: {},
	} {
		t.Run(string(view), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log rows
				deadLettered := drain(t, &log, view)
				got := make(map[dynamodbstream.Operation]int)
				for _, e := range log.entries {
					got[e.Operation]++
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("logged (-want +got):\n%s", diff)
				}
				if len(deadLettered)+len(log.entries) != 5 {
					t.Errorf("of 5 changes %d are logged, and %q are in the dead-letter queue", len(log.entries), deadLettered)
				}
			})
		})
	}
}
