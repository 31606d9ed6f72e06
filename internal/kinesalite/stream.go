package kinesalite

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// streamTimeout is how long a stream may take to become active.
const streamTimeout = 2 * time.Minute

// Stream creates a stream with this many shards, and returns its name. It is deleted when the test ends.
func Stream(t testing.TB, client *kinesis.Client, shards int32) string {
	t.Helper()
	name := "oncekit-test-" + rand.Text()
	ctx, cancel := context.WithTimeout(context.Background(), streamTimeout)
	defer cancel()
	_, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: aws.String(name), ShardCount: aws.Int32(shards)})
	if err != nil {
		t.Fatalf("kinesalite: create stream: %v", err)
	}
	t.Cleanup(func() {
		// t.Context is done when cleanups run.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.DeleteStream(ctx, &kinesis.DeleteStreamInput{StreamName: aws.String(name)}); err != nil {
			t.Errorf("kinesalite: delete stream: %v", err)
		}
	})
	active := kinesis.NewStreamExistsWaiter(client, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, time.Second
	})
	if err := active.Wait(ctx, &kinesis.DescribeStreamInput{StreamName: aws.String(name)}, streamTimeout); err != nil {
		t.Fatalf("kinesalite: stream %s: %v", name, err)
	}
	return name
}

// Put puts the records into a stream, in this order. The test fails if one is refused.
func Put(t testing.TB, client *kinesis.Client, stream string, records ...types.PutRecordsRequestEntry) {
	t.Helper()
	const limit = 500 // of one request; see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html
	for chunk := range slices.Chunk(records, limit) {
		out, err := client.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: aws.String(stream), Records: chunk})
		if err != nil {
			t.Fatalf("kinesalite: put records: %v", err)
		}
		if failed := aws.ToInt32(out.FailedRecordCount); failed > 0 {
			t.Fatalf("kinesalite: %d of %d records were refused", failed, len(chunk))
		}
	}
}
