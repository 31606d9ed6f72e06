package kinesistest

import (
	"fmt"

	"github.com/oncekit/oncekit/sources/shardtest"
)

// Options configures a stream, the function that reads it and the event source mapping between them. The defaults are
// those of AWS, without faults and with ReportBatchItemFailures set: one shard, batches of up to 100 records, retries
// for ever.
type Options struct {
	// Options are those of the function and the mapping: FunctionTimeout, BatchSize, BatchingWindow,
	// ParallelizationFactor, TumblingWindow, WithoutReportBatchItemFailures, BisectOnError, MaximumRetryAttempts,
	// ResetRetriesOnProgress, MaximumRecordAge, Seed, DuplicateProbability, Crash and StoreFault.
	shardtest.Options

	// Shards is how many shards the stream begins with, at most 1,000. The default is 1.
	Shards int

	// MaxRecordSize is the most bytes of a record, its data and its partition key together. The default is 1 MiB, the
	// limit 10 MiB (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_UpdateMaxRecordSize.html). A record whose
	// event exceeds 6 MB can be put and is discarded when its turn comes.
	MaxRecordSize int

	// Consumer, unless it is empty, is the name of the enhanced fan-out consumer that the function reads through, which
	// the eventSourceARN then ends in.
	Consumer string

	// SameSequenceNumbers gives every shard the same sequence numbers. Kinesis promises that they are unique within
	// their shard, and no more.
	SameSequenceNumbers bool

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
	if o.MaxRecordSize == 0 {
		o.MaxRecordSize = 1 << 20
	}
	switch {
	case o.Shards < 1 || o.Shards > 1000:
		return fmt.Errorf("kinesistest: Shards is %d, but must be 1 to 1000", o.Shards)
	case o.MaxRecordSize < 1 || o.MaxRecordSize > 10<<20:
		return fmt.Errorf("kinesistest: MaxRecordSize is %d, but must be 1 to 10485760", o.MaxRecordSize)
	case o.Consumer != "" && !validName(o.Consumer):
		return fmt.Errorf("kinesistest: Consumer is %q, but must be 1 to 128 letters, digits, underscores, dots and hyphens",
			o.Consumer)
	}
	return nil
}
