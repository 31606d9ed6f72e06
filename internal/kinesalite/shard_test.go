package kinesalite

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/streampoll"
)

func shardsOf(t *testing.T, client *kinesis.Client, stream string) []streampoll.Shard {
	t.Helper()
	shards, err := Shards(t.Context(), client, stream)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

func entry(key string, data []byte) types.PutRecordsRequestEntry {
	return types.PutRecordsRequestEntry{PartitionKey: aws.String(key), Data: data}
}

// consumer is a handler that keeps what it got, and fails the record with the data once.
type consumer struct {
	fail string
	got  []events.KinesisEventRecord
}

func (c *consumer) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var event events.KinesisEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	failures := []events.KinesisBatchItemFailure{}
	for _, r := range event.Records {
		if c.fail != "" && string(r.Kinesis.Data) == c.fail {
			c.fail = ""
			failures = append(failures, events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber})
			break
		}
		c.got = append(c.got, r)
	}
	return json.Marshal(events.KinesisEventResponse{BatchItemFailures: failures})
}

// TestPollReadsAllInOrder puts more than one request's records on three shards and reads each shard with a failure in
// the middle of a batch: what was done before it does not come again, and the rest comes once.
func TestPollReadsAllInOrder(t *testing.T) {
	client := Client(t)
	stream := Stream(t, client, 3)
	const n = 1200
	var records []types.PutRecordsRequestEntry
	want := map[string][]string{} // by partition key
	for i := range n {
		key, data := fmt.Sprint("key-", i%7), fmt.Sprint(i)
		records = append(records, entry(key, []byte(data)))
		want[key] = append(want[key], data)
	}
	Put(t, client, stream, records...)

	got := map[string][]string{}
	shards := shardsOf(t, client, stream)
	busy, failures := 0, 0
	for _, shard := range shards {
		c := &consumer{fail: "666"}
		invocations, err := shard.Poll(t.Context(), c, 100)
		if err != nil {
			t.Fatal(err)
		}
		if least := (len(c.got) + 99) / 100; invocations < least {
			t.Errorf("%s: %d invocations for %d records; want at least %d", shard.ID, invocations, len(c.got), least)
		}
		if len(c.got) > 0 {
			busy++
		}
		if c.fail == "" {
			failures++
		}
		last := new(big.Int)
		for _, r := range c.got {
			got[r.Kinesis.PartitionKey] = append(got[r.Kinesis.PartitionKey], string(r.Kinesis.Data))
			number, ok := new(big.Int).SetString(r.Kinesis.SequenceNumber, 10)
			if !ok || number.Cmp(last) <= 0 {
				t.Errorf("%s: sequence number %s after %s; want a higher one", shard.ID, r.Kinesis.SequenceNumber, last)
				break
			}
			last = number
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("data by partition key (-want +got):\n%s", diff)
	}
	if failures != 1 {
		t.Errorf("%d shards had a failure, want 1", failures)
	}
	if len(shards) != 3 || busy < 2 {
		t.Errorf("%d of %d shards had records; want at least 2 of 3", busy, len(shards))
	}
}

// kplAggregate is an aggregated record of the Kinesis Producer Library with two user records: b"one" of the key a, and
// b"two" of the key b.
func kplAggregate() []byte {
	message := []byte("\x0a\x01a\x0a\x01b\x1a\x07\x08\x00\x1a\x03one\x1a\x07\x08\x01\x1a\x03two")
	sum := md5.Sum(message)
	return append(append([]byte{0xF3, 0x89, 0x9A, 0xC2}, message...), sum[:]...)
}

// TestEvent checks a record's event, member by member, and that data comes through whatever its bytes are.
func TestEvent(t *testing.T) {
	client := Client(t)
	stream := Stream(t, client, 1)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	data := [][]byte{kplAggregate(), every, []byte("<&>\u2028"), bytes.Repeat([]byte{0xff}, 1<<20-1)}
	before := time.Now().Add(-time.Second)
	for _, d := range data {
		Put(t, client, stream, entry("k", d))
	}
	shard := shardsOf(t, client, stream)[0]
	records, err := shard.Read(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Records []map[string]any
	}
	if err := json.Unmarshal(streampoll.Event(records), &event); err != nil {
		t.Fatal(err)
	}
	if len(event.Records) != len(data) {
		t.Fatalf("read %d records, want %d", len(event.Records), len(data))
	}
	for i, got := range event.Records {
		number := records[i].SequenceNumber
		inner, _ := got["kinesis"].(map[string]any)
		arrived, _ := inner["approximateArrivalTimestamp"].(float64)
		if at := time.UnixMilli(int64(arrived * 1000)); at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("record %d arrived at %v (%v), want about now", i, at, inner["approximateArrivalTimestamp"])
		}
		want := map[string]any{
			"kinesis": map[string]any{
				"kinesisSchemaVersion": "1.0", "partitionKey": "k", "sequenceNumber": number,
				"data": base64.StdEncoding.EncodeToString(data[i]), "approximateArrivalTimestamp": arrived,
			},
			"eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": shard.ID + ":" + number,
			"eventName": "aws:kinesis:record", "invokeIdentityArn": "arn:aws:iam::000000000000:role/lambda",
			"awsRegion": "us-east-1", "eventSourceARN": "arn:aws:kinesis:us-east-1:000000000000:stream/" + stream,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
		if len(number) != 56 {
			t.Errorf("sequence number %s has %d digits, want 56", number, len(number))
		}
	}
	if shard.ID != "shardId-000000000000" {
		t.Errorf("shard id is %s, want shardId-000000000000", shard.ID)
	}
}

// TestChildrenComeAfterTheirParent splits a shard: its records stay in the parent, new ones are in the children.
func TestChildrenComeAfterTheirParent(t *testing.T) {
	client := Client(t)
	stream := Stream(t, client, 1)
	Put(t, client, stream, entry("k", []byte("before")))
	middle := new(big.Int).Lsh(big.NewInt(1), 127) // of the hash keys
	_, err := client.SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String(stream), ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: aws.String(middle.String()),
	})
	if err != nil {
		t.Fatal(err)
	}
	active := kinesis.NewStreamExistsWaiter(client, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, time.Second
	})
	if err := active.Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: aws.String(stream)}, time.Minute); err != nil {
		t.Fatal(err)
	}
	Put(t, client, stream, entry("k", []byte("after")), entry("l", []byte("after")), entry("m", []byte("after")))
	shards := shardsOf(t, client, stream)
	if len(shards) != 3 {
		t.Fatalf("%d shards after the split, want 3", len(shards))
	}
	var got []string
	for _, shard := range shards {
		c := &consumer{}
		if _, err := shard.Poll(t.Context(), c, 10); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.got {
			got = append(got, string(r.Kinesis.Data))
		}
	}
	if diff := cmp.Diff([]string{"before", "after", "after", "after"}, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// TestCheckpointIsTheServers asks for records after a sequence number that the server has not given out.
func TestCheckpointIsTheServers(t *testing.T) {
	client := Client(t)
	stream := Stream(t, client, 1)
	shard := shardsOf(t, client, stream)[0]
	if records, err := shard.Read(t.Context(), "", 10); len(records) != 0 || err != nil {
		t.Errorf("empty shard: %d records, %v; want none", len(records), err)
	}
	if _, err := shard.Read(t.Context(), strings.Repeat("9", 30), 10); err == nil {
		t.Error("a sequence number of another stream is taken for a checkpoint")
	}
	if _, err := Shards(t.Context(), client, "nothing"); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("stream that does not exist: error %v; want one that names it", err)
	}
}
