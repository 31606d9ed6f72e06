package orders_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/orders/orders"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// ledger takes down the IDs of the orders it charges.
type ledger []string

func (l *ledger) Charge(ctx context.Context, o shop.Order) error {
	if err := (shop.FakeProvider{Logger: slog.New(slog.DiscardHandler)}).Charge(ctx, o); err != nil {
		return err
	}
	*l = append(*l, o.ID)
	return nil
}

// TestHandler has a message of the shop for each thing that can become of it. Of the last two one is the other again,
// under another messageId.
func TestHandler(t *testing.T) {
	var charged ledger
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	handler, err := orders.NewHandler(&charged, guard, func(o *sqs.Options) {
		o.Concurrency = 1
		o.Logger = slog.New(slog.DiscardHandler)
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
			given = append(given, r.Key)
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var messages []sqstest.Message
	for _, o := range []shop.Order{
		{ID: "free", Amount: 0},
		{ID: "declined", Amount: 100, Card: shop.CardDeclined},
		{ID: "", Amount: 100},
		{ID: "order-1", Amount: 100},
		{ID: "order-1", Amount: 100},
	} {
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, sqstest.Message{Body: string(body)})
	}
	event := sqstest.NewEvent("orders", messages...)
	response, err := handler.Handle(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	if diff := cmp.Diff([]string{event.Records[2].MessageId}, failed); diff != "" {
		t.Errorf("failed, want the message without an order ID alone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"free", "declined"}, given); diff != "" {
		t.Errorf("dead-lettered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ledger{"order-1"}, charged); diff != "" {
		t.Errorf("charged (-want +got):\n%s", diff)
	}
}
