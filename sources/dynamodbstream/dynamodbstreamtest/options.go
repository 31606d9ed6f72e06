package dynamodbstreamtest

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/shardtest"
)

// Options configures a table and its stream, the function that reads it and the event source mapping between them. The
// defaults are those of AWS, without faults and with ReportBatchItemFailures set: one shard, new and old images, batches
// of up to 100 records, retries for ever.
type Options struct {
	// Options are those of the function and the mapping: FunctionTimeout, BatchSize, BatchingWindow,
	// ParallelizationFactor, TumblingWindow, WithoutReportBatchItemFailures, BisectOnError, MaximumRetryAttempts,
	// ResetRetriesOnProgress, MaximumRecordAge, Seed, DuplicateProbability, Crash and StoreFault.
	shardtest.Options

	// Shards is how many shards the stream begins with, at most 1,000. The default is 1.
	Shards int

	// StreamViewType is which images of an item a record has. The default is NEW_AND_OLD_IMAGES.
	StreamViewType events.DynamoDBStreamViewType

	// Observe is called once for every invocation that has ended, after its records are dealt with and before Drain, Run
	// or Close return. It is called concurrently, and must not call Close, which would wait for it.
	Observe func(Delivery)
}

// Infinite is the MaximumRetryAttempts and the MaximumRecordAge under which nothing is ever discarded. It is the
// default of both.
const Infinite = shardtest.Infinite

// resolve fills in the defaults and checks the result, except for the shared options.
func (o *Options) resolve() error {
	if o.Shards == 0 {
		o.Shards = 1
	}
	if o.StreamViewType == "" {
		o.StreamViewType = events.DynamoDBStreamViewTypeNewAndOldImages
	}
	if o.Shards < 1 || o.Shards > 1000 {
		return fmt.Errorf("dynamodbstreamtest: Shards is %d, but must be 1 to 1000", o.Shards)
	}
	switch o.StreamViewType {
	case events.DynamoDBStreamViewTypeNewAndOldImages, events.DynamoDBStreamViewTypeNewImage,
		events.DynamoDBStreamViewTypeOldImage, events.DynamoDBStreamViewTypeKeysOnly:
		return nil
	}
	return fmt.Errorf("dynamodbstreamtest: StreamViewType is %q, but must be NEW_AND_OLD_IMAGES, NEW_IMAGE, OLD_IMAGE or "+
		"KEYS_ONLY", o.StreamViewType)
}
