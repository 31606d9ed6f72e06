package dynamodbstream

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/oncekit/oncekit/idempotency"
)

var benchSink int64

func handleOrder(_ context.Context, keys, before, after *benchOrder) error {
	benchSink += after.Amount - before.Amount + int64(len(keys.ID))
	return nil
}

// loop is the handler that people write: encoding/json into aws-lambda-go's event, a conversion to the SDK's attribute
// values, the SDK's UnmarshalMap, and one change after the other up to the first failure.
func loop(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	var response events.DynamoDBEventResponse
	for i := range event.Records {
		change := &event.Records[i].Change
		if err := loopOne(ctx, change); err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: change.SequenceNumber})
			break
		}
	}
	return response, nil
}

func loopOne(ctx context.Context, change *events.DynamoDBStreamRecord) error {
	var keys, before, after benchOrder
	if err := attributevalue.UnmarshalMap(byHand(change.Keys), &keys); err != nil {
		return err
	}
	if err := attributevalue.UnmarshalMap(byHand(change.OldImage), &before); err != nil {
		return err
	}
	if err := attributevalue.UnmarshalMap(byHand(change.NewImage), &after); err != nil {
		return err
	}
	return handleOrder(ctx, &keys, &before, &after)
}

func newBenchHandler(b *testing.B, optFns ...func(*Options)) *Handler[benchOrder] {
	b.Helper()
	quiet := func(o *Options) { o.Logger = slog.New(slog.DiscardHandler) }
	h, err := NewHandler(func(ctx context.Context, c *Change[benchOrder]) error {
		return handleOrder(ctx, &c.Keys, c.Old, c.New)
	}, append(optFns, quiet)...)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// benchInvoke returns how long an invocation takes.
func benchInvoke(b *testing.B, h lambda.Handler, payload []byte, n int) float64 {
	b.Helper()
	b.ReportAllocs()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for b.Loop() {
		if _, err := h.Invoke(ctx, payload); err != nil {
			b.Fatal(err)
		}
	}
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(each/float64(n), "ns/record")
	return each
}

// BenchmarkInvoke is an event from bytes to bytes with a handler that does nothing to speak of, beside the loop that people
// write by hand. What it costs of that is reported as x/loop.
func BenchmarkInvoke(b *testing.B) {
	for _, n := range []int{10, 1000} {
		payload := benchEvent(b, n)
		var byLoop float64
		b.Run(fmt.Sprintf("records=%d/by=loop", n), func(b *testing.B) {
			byLoop = benchInvoke(b, lambda.NewHandler(loop), payload, n)
		})
		b.Run(fmt.Sprintf("records=%d/by=oncekit", n), func(b *testing.B) {
			each := benchInvoke(b, newBenchHandler(b), payload, n)
			if byLoop > 0 {
				b.ReportMetric(each/byLoop, "x/loop")
			}
		})
	}
}

// BenchmarkInvokeGuarded is what a guard with the store in memory adds: to changes that run, each batch of which comes when the
// keys of the one before have expired, and to the replay of a segment that is delivered again.
func BenchmarkInvokeGuarded(b *testing.B) {
	const n = 1000
	payload := benchEvent(b, n)
	now := time.Now()
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.Clock = func() time.Time { return now }
	})
	if err != nil {
		b.Fatal(err)
	}
	h := newBenchHandler(b, func(o *Options) { o.Idempotency, o.Serial = guard, true })
	b.Run("by=plain", func(b *testing.B) { benchInvoke(b, newBenchHandler(b), payload, n) })
	b.Run("by=run", func(b *testing.B) { benchInvoke(b, advancing{h, &now}, payload, n) })
	b.Run("by=replay", func(b *testing.B) { benchInvoke(b, h, payload, n) })
}

// advancing lets all keys expire between invocations.
type advancing struct {
	lambda.Handler
	now *time.Time
}

func (a advancing) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	*a.now = a.now.Add(2 * keyLife)
	return a.Handler.Invoke(ctx, payload)
}
