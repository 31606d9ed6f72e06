package kinesistest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// delivered returns the payloads that a stream delivers.
func delivered(t *testing.T, s *kinesistest.Stream) []string {
	t.Helper()
	var payloads log[string]
	drain(t, s, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
		payloads.add(string(payload))
		return nil, nil
	}))
	return payloads.all()
}

func TestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *kinesistest.Options) { o.Consumer, o.Seed = "reader", 7 })
		time.Sleep(1500*time.Millisecond + 999*time.Microsecond)
		numbers := put(t, s, "<k>")
		if _, _, err := s.Put(kinesistest.Record{WithoutPartitionKey: true}); err != nil {
			t.Fatal(err)
		}
		second := s.Histories()[1].SequenceNumber
		record := func(number, kinesis string) string {
			return `{"kinesis":{"kinesisSchemaVersion":"1.0",` + kinesis + `,"approximateArrivalTimestamp":946684801.5},` +
				`"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":"shardId-000000000000:` + number + `",` +
				`"eventName":"aws:kinesis:record","invokeIdentityArn":"arn:aws:iam::123456789012:role/lambda-kinesis-role",` +
				`"awsRegion":"us-east-1","eventSourceARN":"arn:aws:kinesis:us-east-1:123456789012:stream/clicks/consumer/reader:1607497475"}`
		}
		want := `{"Records":[` +
			record(numbers[0], `"partitionKey":"<","sequenceNumber":"`+numbers[0]+`","data":"PGs+"`) + "," +
			record(second, `"sequenceNumber":"`+second+`","data":""`) + `]}`
		if diff := cmp.Diff([]string{want}, delivered(t, s)); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
		if got := s.ARN(); got != "arn:aws:kinesis:us-east-1:123456789012:stream/clicks" {
			t.Errorf("ARN is %q, want it without the consumer", got)
		}
	})
}

// An event that was made without a stream is what a stream delivers.
func TestNewEventIsADelivery(t *testing.T) {
	records := []kinesistest.Record{{PartitionKey: "a", Data: []byte("1")}, {WithoutPartitionKey: true, Data: []byte("2")}}
	event := kinesistest.NewEvent("clicks", records...)
	var decoded events.KinesisEvent
	if err := json.Unmarshal(kinesistest.Payload(event), &decoded); err != nil {
		t.Fatal(err)
	}
	for i, r := range decoded.Records {
		number := r.Kinesis.SequenceNumber
		if r.EventID != "shardId-000000000000:"+number || len(number) != 56 || string(r.Kinesis.Data) != fmt.Sprint(i+1) {
			t.Errorf("record %d is %+v", i, r)
		}
		if age := time.Since(r.Kinesis.ApproximateArrivalTimestamp.Time); age < -time.Second || age > time.Minute {
			t.Errorf("record %d arrived %v ago, want now", i, age)
		}
	}
	if got := string(kinesistest.Payload(kinesistest.NewEvent("clicks"))); got != `{"Records":[]}` {
		t.Errorf("event without records is %s", got)
	}
}

func TestNewEventPanics(t *testing.T) {
	for name, fn := range map[string]func(){
		"name":   func() { kinesistest.NewEvent("a/b") },
		"record": func() { kinesistest.NewEvent("clicks", kinesistest.Record{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("NewEvent did not panic")
				}
			}()
			fn()
		})
	}
}

// The caller's bytes stay the caller's.
func TestPutCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		data := []byte("abc")
		if _, _, err := s.Put(kinesistest.Record{PartitionKey: "k", Data: data}); err != nil {
			t.Fatal(err)
		}
		copy(data, "xyz")
		if got := string(s.Histories()[0].Record.Kinesis.Data); got != "abc" {
			t.Errorf("data is %q, want abc", got)
		}
		if got := delivered(t, s)[0]; !strings.Contains(got, `"YWJj"`) {
			t.Errorf("payload is %s, want the data abc", got)
		}
	})
}

// Records without a partition key go to the shards in turn.
func TestWithoutPartitionKey(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 2 })
	var shards []string
	for range 4 {
		shard, _, err := s.Put(kinesistest.Record{WithoutPartitionKey: true})
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, shard)
	}
	want := []string{"shardId-000000000000", "shardId-000000000001", "shardId-000000000000", "shardId-000000000001"}
	if diff := cmp.Diff(want, shards); diff != "" {
		t.Errorf("shards (-want +got):\n%s", diff)
	}
}

func TestPutAggregated(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 2 })
	children := []kinesistest.Record{
		{PartitionKey: "a", Data: []byte("1")}, {PartitionKey: "c", Data: []byte("2")},
		{PartitionKey: "e", ExplicitHashKey: "3", Data: []byte("3")},
	}
	shard, number, err := s.PutAggregated(children...)
	if err != nil {
		t.Fatal(err)
	}
	record := s.Histories()[0].Record
	if shard != "shardId-000000000000" || record.EventID != shard+":"+number || record.Kinesis.PartitionKey != "a" {
		t.Errorf("aggregate is %+v of %s, want it in the first shard with the partition key a", record, shard)
	}
	got, err := kpl.Split(record.Kinesis.Data)
	if err != nil {
		t.Fatal(err)
	}
	want := []kpl.UserRecord{
		{PartitionKey: "a", Data: []byte("1")}, {PartitionKey: "c", Data: []byte("2")},
		{PartitionKey: "e", ExplicitHashKey: "3", Data: []byte("3")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

// One record alone is no aggregate.
func TestPutAggregatedOfOne(t *testing.T) {
	s := newStream(t)
	if _, _, err := s.PutAggregated(kinesistest.Record{PartitionKey: "k", Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if got := s.Histories()[0].Record.Kinesis; got.PartitionKey != "k" || string(got.Data) != "1" {
		t.Errorf("record is %+v, want it as it was", got)
	}
}

func TestPutAggregatedRefuses(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 2 })
	a, b := kinesistest.Record{PartitionKey: "a"}, kinesistest.Record{PartitionKey: "b"}
	_, _, none := s.PutAggregated()
	_, _, apart := s.PutAggregated(a, b)
	_, _, bad := s.PutAggregated(a, kinesistest.Record{})
	_, _, keyless := s.PutAggregated(a, kinesistest.Record{WithoutPartitionKey: true})
	large := kinesistest.Record{PartitionKey: "a", Data: make([]byte, 600<<10)}
	_, _, tooLarge := s.PutAggregated(large, large)
	_, unknown := s.PutAggregatedAt("shardId-000000000009", a, b)
	for _, test := range []struct {
		err  error
		want string
	}{
		{none, "an aggregate must have a record"},
		{apart, `belong to shardId-000000000000 ("a") and shardId-000000000001 ("b"), but must belong to one shard`},
		{bad, "PartitionKey has 0 characters"},
		{keyless, "must have a PartitionKey"},
		{tooLarge, "but must have at most MaxRecordSize"},
		{unknown, `no open shard "shardId-000000000009"`},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("error is %v, want it to contain %q", test.err, test.want)
		}
	}
	if got := s.Stats().Put; got != 0 {
		t.Errorf("%d records were put, want none", got)
	}
	if _, err := s.PutAggregatedAt("shardId-000000000001", a, b); err != nil {
		t.Errorf("an aggregate at a shard of the caller's choice: %v", err)
	}
}

// A record of more than 6 MB can be put, and never reaches the function.
func TestRecordThatNoPayloadHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *kinesistest.Options) { o.MaxRecordSize = 10 << 20 })
		for _, size := range []int{1, 5 << 20, 2} {
			if _, _, err := s.Put(kinesistest.Record{PartitionKey: "k", Data: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(delivered(t, s)); got != 2 {
			t.Errorf("%d payloads were delivered, want 2", got)
		}
		discarded := s.Discarded()
		if len(discarded) != 1 || discarded[0].Reason != kinesistest.PayloadTooLarge {
			t.Errorf("discarded %+v, want the record of 5 MB", discarded)
		}
	})
}
