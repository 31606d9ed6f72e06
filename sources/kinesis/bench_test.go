package kinesis_test

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

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/kinesis"
)

type benchClick struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	Page    string `json:"page"`
	At      int64  `json:"at"`
	Buttons []int  `json:"buttons"`
}

func (c benchClick) encode(b *testing.B) []byte {
	b.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func newBenchClick(i int) benchClick {
	return benchClick{
		ID: fmt.Sprintf("click-%06d", i), User: fmt.Sprintf("user-%d", i%97), Page: "/catalogue/items/" + strconv.Itoa(i),
		At: 1545084650987 + int64(i), Buttons: []int{1, 2, 3},
	}
}

// benchEvent is a Kinesis event with every member that AWS sends, and data made by each.
func benchEvent(b *testing.B, n int, data func(i int) []byte) []byte {
	b.Helper()
	var event events.KinesisEvent
	for i := range n {
		sequence := fmt.Sprintf("4959033827149025660855969253836157109592157598913%07d", i)
		event.Records = append(event.Records, events.KinesisEventRecord{
			AwsRegion: "us-east-2", EventID: "shardId-000000000006:" + sequence, EventName: "aws:kinesis:record",
			EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:us-east-2:123456789012:stream/clicks",
			EventVersion: "1.0", InvokeIdentityArn: "arn:aws:iam::123456789012:role/clicks",
			Kinesis: events.KinesisRecord{
				ApproximateArrivalTimestamp: events.SecondsEpochTime{Time: time.Now()}, Data: data(i),
				PartitionKey: fmt.Sprintf("user-%d", i%97), SequenceNumber: sequence, KinesisSchemaVersion: "1.0",
			},
		})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

var benchSink int64

func handleClick(_ context.Context, c *benchClick, partitionKey string) error {
	benchSink += c.At + int64(len(partitionKey))
	return nil
}

// loop is the handler that people write: decode the event and each record's data, call the function, stop at the first
// failure and report its sequence number.
func loop(ctx context.Context, event events.KinesisEvent) (events.KinesisEventResponse, error) {
	var response events.KinesisEventResponse
	for _, r := range event.Records {
		var click benchClick
		err := json.Unmarshal(r.Kinesis.Data, &click)
		if err == nil {
			err = handleClick(ctx, &click, r.Kinesis.PartitionKey)
		}
		if err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures,
				events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber})
			break
		}
	}
	return response, nil
}

func quiet(o *kinesis.Options) { o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newBenchHandler(b *testing.B, options ...func(*kinesis.Options)) *kinesis.Handler[benchClick] {
	b.Helper()
	h, err := kinesis.NewHandler(func(ctx context.Context, r *kinesis.Record[benchClick]) error {
		return handleClick(ctx, &r.Data, r.PartitionKey())
	}, append(options, quiet)...)
	if err != nil {
		b.Fatal(err)
	}
	return h
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

// What a batch costs, beside the loop that decodes everything first and one record after the other. Without a guard a
// shard is serial; lanes are by partition key.
func BenchmarkInvoke(b *testing.B) {
	for _, n := range []int{10, 1000} {
		payload := benchEvent(b, n, func(i int) []byte { return newBenchClick(i).encode(b) })
		b.Run(fmt.Sprintf("records=%d/by=loop", n), func(b *testing.B) {
			benchInvoke(b, lambda.NewHandler(loop), payload)
		})
		b.Run(fmt.Sprintf("records=%d/by=oncekit", n), func(b *testing.B) {
			benchInvoke(b, newBenchHandler(b), payload)
		})
		b.Run(fmt.Sprintf("records=%d/by=oncekit-lanes", n), func(b *testing.B) {
			benchInvoke(b, newBenchHandler(b, func(o *kinesis.Options) { o.Concurrency = 10 }), payload)
		})
	}
}

// What the guard costs with the store in memory: first runs, and replays of a segment that is delivered again.
func BenchmarkInvokeGuarded(b *testing.B) {
	const n = 1000
	payload := benchEvent(b, n, func(i int) []byte { return newBenchClick(i).encode(b) })
	b.Run("by=plain", func(b *testing.B) { benchInvoke(b, newBenchHandler(b), payload) })
	b.Run("by=replay", func(b *testing.B) {
		guard, err := idempotency.New("clicks", idempotency.NewMemoryStore())
		if err != nil {
			b.Fatal(err)
		}
		benchInvoke(b, newBenchHandler(b, func(o *kinesis.Options) { o.Idempotency = guard }), payload)
	})
}

// What taking aggregates apart costs: the same records, one by one and in aggregates of a hundred.
func BenchmarkAggregates(b *testing.B) {
	const n, each = 1000, 100
	var aggregates [][]byte
	for i := range n / each {
		var clicks []kpl.UserRecord
		for k := range each {
			c := newBenchClick(i*each + k)
			clicks = append(clicks, kpl.UserRecord{PartitionKey: c.User, Data: c.encode(b)})
		}
		aggregates = append(aggregates, kpl.Append(nil, clicks))
	}
	b.Run("in=records", func(b *testing.B) {
		benchInvoke(b, newBenchHandler(b), benchEvent(b, n, func(i int) []byte { return newBenchClick(i).encode(b) }))
	})
	b.Run("in=aggregates", func(b *testing.B) {
		benchInvoke(b, newBenchHandler(b), benchEvent(b, n/each, func(i int) []byte { return aggregates[i] }))
	})
}
