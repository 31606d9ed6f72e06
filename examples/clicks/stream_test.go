package main

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/clicks"
	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/kinesalite"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

const serverShards = 3

// TestServer reads aggregates of clicks from the shards of a Kinesis-compatible server, which gives them sequence numbers
// of its own. Some clicks fail twice. Then all of it is delivered again.
func TestServer(t *testing.T) {
	client := kinesalite.Client(t)
	stream := kinesalite.Stream(t, client, serverShards)
	sent := make(map[string][]string) // by visitor
	var all []site.Click
	calls := 0 // once for each click, and twice more for those that fail twice
	for i := range 240 {
		c := site.Click{ID: fmt.Sprintf("click-%04d", i), Visitor: fmt.Sprintf("visitor-%02d", i*7%12), Page: "/"}
		sent[c.Visitor] = append(sent[c.Visitor], c.ID)
		calls++
		if fails(c.ID) {
			calls += 2
		}
		all = append(all, c)
	}
	entries, clicksOf := aggregates(t, all)
	kinesalite.Put(t, client, stream, entries...)

	book := &book{calls: make(map[string]int), clicks: make(map[string]bool), journeys: make(map[string][]string)}
	guard, err := idempotency.New("clicks", idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := clicks.NewHandler(book, guard, func(o *kinesis.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err != nil {
		t.Fatal(err)
	}
	reader := &reader{T: t, handler: handler, book: book, clicksOf: clicksOf}
	for _, delivery := range []string{"first", "redelivered"} {
		shards, err := kinesalite.Shards(t.Context(), client, stream)
		if err != nil {
			t.Fatal(err)
		}
		busy := 0
		for _, shard := range shards {
			invocations, err := shard.Poll(t.Context(), reader, 5)
			if err != nil {
				t.Fatal(err)
			}
			if invocations > 0 {
				busy++
			}
		}
		if busy < 2 {
			t.Errorf("%s: %d of %d shards had records, want 2 or more", delivery, busy, len(shards))
		}
		if diff := cmp.Diff(sent, book.journeys); diff != "" {
			t.Errorf("%s: journeys (-want +got):\n%s", delivery, diff)
		}
	}
	if book.called != calls {
		t.Errorf("the handler was called %d times, want %d", book.called, calls)
	}
	if reader.failures < 5 {
		t.Errorf("%d answers reported a failure, want some", reader.failures)
	}
}

// aggregates returns the clicks as the Kinesis Producer Library puts them: aggregates of up to four clicks of one shard.
// The clicks of each are found by its data.
func aggregates(t *testing.T, all []site.Click) (entries []types.PutRecordsRequestEntry, clicksOf map[string][]string) {
	t.Helper()
	stream, err := kinesistest.NewStream("clicks") // of one shard, which takes what the other one's three do
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	clicksOf = make(map[string][]string)
	gathered := make(map[int64][]site.Click)
	add := func(gathered []site.Click) {
		record := put(t, stream, gathered).Kinesis
		for _, c := range gathered {
			clicksOf[string(record.Data)] = append(clicksOf[string(record.Data)], c.ID)
		}
		entries = append(entries, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(record.PartitionKey), Data: record.Data,
			ExplicitHashKey: aws.String(hashKey(gathered[0].Visitor).String()),
		})
	}
	for _, c := range all {
		shard := new(big.Int).Mul(hashKey(c.Visitor), big.NewInt(serverShards))
		i := shard.Rsh(shard, 128).Int64()
		if gathered[i] = append(gathered[i], c); len(gathered[i]) == 4 {
			add(gathered[i])
			delete(gathered, i)
		}
	}
	for i := range int64(serverShards) {
		if len(gathered[i]) > 0 {
			add(gathered[i])
		}
	}
	return entries, clicksOf
}

// put puts clicks into a stream as one aggregate, or one click alone as it is, and returns the record.
func put(t *testing.T, stream *kinesistest.Stream, clicks []site.Click) events.KinesisEventRecord {
	t.Helper()
	var records []kinesistest.Record
	for _, c := range clicks {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, kinesistest.Record{PartitionKey: c.Visitor, Data: data})
	}
	if _, _, err := stream.PutAggregated(records...); err != nil {
		t.Fatal(err)
	}
	histories := stream.Histories()
	return histories[len(histories)-1].Record
}

// hashKey is what decides about the shard: the MD5 of the partition key.
func hashKey(partitionKey string) *big.Int {
	sum := md5.Sum([]byte(partitionKey))
	return new(big.Int).SetBytes(sum[:])
}

// fails reports whether the click is one of those that fail twice.
func fails(id string) bool { return strings.HasSuffix(id, "7") }

// book is site.Journeys in which some appends fail twice.
type book struct {
	mu       sync.Mutex
	called   int
	calls    map[string]int
	clicks   map[string]bool
	journeys map[string][]string // by visitor
}

func (b *book) Append(_ context.Context, c site.Click) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.called++
	b.calls[c.ID]++
	if fails(c.ID) && b.calls[c.ID] <= 2 {
		return errors.New("no")
	}
	b.clicks[c.ID] = true
	b.journeys[c.Visitor] = append(b.journeys[c.Visitor], c.ID)
	return nil
}

// reader is the handler, and checks each answer: it reports the first record with a click that is not in the book, and no
// other.
type reader struct {
	*testing.T
	handler  *kinesis.Handler[site.Click]
	book     *book
	clicksOf map[string][]string // by the data of their record
	failures int
}

func (r *reader) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event events.KinesisEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	answer, err := r.handler.Invoke(ctx, payload)
	want := `{"batchItemFailures":[]}`
	for _, record := range event.Records {
		if len(record.Kinesis.SequenceNumber) != 56 {
			r.Errorf("sequence number is %s, want one of 56 digits, as the server makes them", record.Kinesis.SequenceNumber)
		}
		if !r.done(record) {
			want = fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, record.Kinesis.SequenceNumber)
			r.failures++
			break
		}
	}
	if string(answer) != want || err != nil {
		r.Errorf("answer is %s, error %v; want %s", answer, err, want)
	}
	return answer, err
}

// done reports whether all clicks of a record are in the book.
func (r *reader) done(record events.KinesisEventRecord) bool {
	ids := r.clicksOf[string(record.Kinesis.Data)]
	if len(ids) == 0 {
		r.Errorf("record %s is none that was put", record.EventID)
	}
	for _, id := range ids {
		if !r.book.clicks[id] {
			return false
		}
	}
	return true
}
