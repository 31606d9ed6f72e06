package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

type benchOrder struct {
	ID       string      `json:"id"`
	Customer string      `json:"customer"`
	Amount   int64       `json:"amount"`
	Currency string      `json:"currency"`
	Lines    []benchLine `json:"lines"`
}

type benchLine struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"`
}

// benchEvent is an SQS event with every member that AWS sends, and orders of some 150 bytes as bodies.
func benchEvent(b *testing.B, n int) []byte {
	b.Helper()
	var event events.SQSEvent
	for i := range n {
		body, err := json.Marshal(benchOrder{
			ID: fmt.Sprintf("order-%06d", i), Customer: fmt.Sprintf("customer-%d", i%97), Amount: int64(i) * 100, Currency: "EUR",
			Lines: []benchLine{{SKU: "sku-1", Quantity: 1, Price: 100}, {SKU: "sku-2", Quantity: 2, Price: 250}},
		})
		if err != nil {
			b.Fatal(err)
		}
		event.Records = append(event.Records, events.SQSMessage{
			MessageId:     fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012d", i),
			ReceiptHandle: fmt.Sprintf("AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a%06d", i),
			Body:          string(body),
			Md5OfBody:     "e4e68fb7bd0e697a0ae8f1bb342846b3",
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183",
				"SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1545082649185",
			},
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-2:123456789012:orders", AWSRegion: "us-east-2",
		})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// loop is what people write by hand.
func loop(handle func(context.Context, *benchOrder, *events.SQSMessage) error) lambda.Handler {
	return lambda.NewHandler(func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		var response events.SQSEventResponse
		for i := range event.Records {
			m := &event.Records[i]
			var order benchOrder
			err := json.Unmarshal([]byte(m.Body), &order)
			if err == nil {
				err = handle(ctx, &order, m)
			}
			if err != nil {
				response.BatchItemFailures = append(response.BatchItemFailures,
					events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return response, nil
	})
}

func benchInvoke(b *testing.B, h lambda.Handler, payload []byte, n int) {
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := h.Invoke(ctx, payload); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
}

// BenchmarkInvoke is an SQS event from bytes to bytes with a handler that does nothing, beside the loop people write by
// hand. In the second pair the handler reads the receive count and an attribute.
func BenchmarkInvoke(b *testing.B) {
	options := func(o *sqs.Options) {
		o.Concurrency = 1
		o.Logger = discard()
	}
	for _, n := range []int{10, 1000} {
		payload := benchEvent(b, n)
		b.Run(fmt.Sprintf("records=%d/loop", n), func(b *testing.B) {
			benchInvoke(b, loop(func(context.Context, *benchOrder, *events.SQSMessage) error { return nil }), payload, n)
		})
		b.Run(fmt.Sprintf("records=%d/oncekit", n), func(b *testing.B) {
			h, err := sqs.NewHandler(func(context.Context, *sqs.Message[benchOrder]) error { return nil }, options)
			if err != nil {
				b.Fatal(err)
			}
			benchInvoke(b, h, payload, n)
		})
		b.Run(fmt.Sprintf("attributes/records=%d/loop", n), func(b *testing.B) {
			benchInvoke(b, loop(func(_ context.Context, _ *benchOrder, m *events.SQSMessage) error {
				count, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
				if err != nil || count != 1 || m.Attributes["SenderId"] == "" {
					return fmt.Errorf("count %d, error %w", count, err)
				}
				return nil
			}), payload, n)
		})
		b.Run(fmt.Sprintf("attributes/records=%d/oncekit", n), func(b *testing.B) {
			h, err := sqs.NewHandler(func(_ context.Context, m *sqs.Message[benchOrder]) error {
				if m.ReceiveCount() != 1 || m.Attribute("SenderId") == "" {
					return fmt.Errorf("count %d", m.ReceiveCount())
				}
				return nil
			}, options)
			if err != nil {
				b.Fatal(err)
			}
			benchInvoke(b, h, payload, n)
		})
	}
}

// BenchmarkInvokeMemory is what a guard with the in-memory store adds to a record that runs. Each batch comes when the
// keys of the one before have expired, so that all of its records run, in a store that is neither empty nor growing.
func BenchmarkInvokeMemory(b *testing.B) {
	const n = 1000
	payload := benchEvent(b, n)
	options := func(o *sqs.Options) { o.Options = batch.Options{Concurrency: 1, Logger: discard()} }
	runs := 0
	handle := func(context.Context, *sqs.Message[benchOrder]) error {
		runs++
		return nil
	}
	b.Run("unguarded", func(b *testing.B) {
		h, err := sqs.NewHandler(handle, options)
		if err != nil {
			b.Fatal(err)
		}
		benchInvoke(b, h, payload, n)
	})
	b.Run("guarded", func(b *testing.B) {
		now := time.Now()
		guard, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
			o.Expiry = time.Hour
			o.Clock = func() time.Time { return now }
		})
		if err != nil {
			b.Fatal(err)
		}
		h, err := sqs.NewHandler(handle, options, func(o *sqs.Options) { o.Idempotency = guard })
		if err != nil {
			b.Fatal(err)
		}
		runs = 0
		benchInvoke(b, advancing{h, &now}, payload, n)
		if runs%n != 0 || runs < b.N*n {
			b.Fatalf("the handler ran %d times in %d batches of %d", runs, b.N, n)
		}
	})
}

// advancing lets all keys expire between invocations.
type advancing struct {
	lambda.Handler
	now *time.Time
}

func (a advancing) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	*a.now = a.now.Add(2 * time.Hour)
	return a.Handler.Invoke(ctx, payload)
}
