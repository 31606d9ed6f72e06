package eventbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

type benchOrder struct {
	ID       string   `json:"id"`
	Customer string   `json:"customer"`
	Amount   int      `json:"amount"`
	Items    []string `json:"items"`
}

func benchEvent(b *testing.B, i int) events.EventBridgeEvent {
	b.Helper()
	detail, err := json.Marshal(benchOrder{ID: fmt.Sprintf("order-%06d", i), Customer: fmt.Sprintf("customer-%d", i%97), Amount: i,
		Items: []string{"a4 paper, 500 sheets", "pencils", "a blue folder"}})
	if err != nil {
		b.Fatal(err)
	}
	return events.EventBridgeEvent{Version: "0", ID: uuid(i), DetailType: "Order Placed", Source: "com.example.orders", AccountID: "123456789012",
		Time: published, Region: "eu-central-1", Resources: []string{}, Detail: detail}
}

func benchPayload(b *testing.B, v any) []byte {
	b.Helper()
	payload, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

var benchSink int

func handleOrder(_ context.Context, o *benchOrder, id string) error {
	benchSink += o.Amount + len(id)
	return nil
}

// byHand is what people write.
func byHand(ctx context.Context, e events.EventBridgeEvent) error {
	var o benchOrder
	if err := json.Unmarshal(e.Detail, &o); err != nil {
		return err
	}
	return handleOrder(ctx, &o, e.ID)
}

func benchInvoke(b *testing.B, h lambda.Handler, payload []byte) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for b.Loop() {
		if _, err := h.Invoke(ctx, payload); err != nil {
			b.Fatal(err)
		}
	}
}

func benchHandler(b *testing.B, options ...func(*eventbridge.Options)) lambda.Handler {
	b.Helper()
	return newHandler(b, func(ctx context.Context, e *eventbridge.Event[benchOrder]) error {
		return handleOrder(ctx, &e.Detail, e.ID())
	}, options...)
}

// What an event costs, beside the function that people write for events.EventBridgeEvent. Guarded is a replay, in memory.
func BenchmarkEvent(b *testing.B) {
	payload := benchPayload(b, benchEvent(b, 1))
	b.Run("by hand", func(b *testing.B) { benchInvoke(b, lambda.NewHandler(byHand), payload) })
	b.Run("handler", func(b *testing.B) { benchInvoke(b, benchHandler(b), payload) })
	b.Run("guarded", func(b *testing.B) { benchInvoke(b, benchHandler(b, benchGuard(b)), payload) })
}

// The same for an array as long as they get, by hand in a loop.
func BenchmarkArray(b *testing.B) {
	var array []events.EventBridgeEvent
	for i := range 500 {
		array = append(array, benchEvent(b, i))
	}
	payload := benchPayload(b, array)
	b.Run("by hand", func(b *testing.B) {
		benchInvoke(b, lambda.NewHandler(func(ctx context.Context, events []events.EventBridgeEvent) error {
			for _, e := range events {
				if err := byHand(ctx, e); err != nil {
					return err
				}
			}
			return nil
		}), payload)
	})
	b.Run("handler", func(b *testing.B) { benchInvoke(b, benchHandler(b), payload) })
	b.Run("serial", func(b *testing.B) { benchInvoke(b, benchHandler(b, concurrency(1)), payload) })
	b.Run("guarded", func(b *testing.B) { benchInvoke(b, benchHandler(b, benchGuard(b)), payload) })
}

// benchGuard is the option of a guard whose store has room for all that a benchmark does.
func benchGuard(b *testing.B) func(*eventbridge.Options) {
	b.Helper()
	guard := newGuard(b, idempotency.NewMemoryStore())
	return func(o *eventbridge.Options) { o.Idempotency = guard }
}
