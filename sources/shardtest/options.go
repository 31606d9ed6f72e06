package shardtest

import (
	"fmt"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Options configures the function that reads the shards and the event source mapping between them. The defaults are
// those of AWS, without faults, and with ReportBatchItemFailures set.
//
// Durations may be fractions of a second, which AWS does not take, so that a run in real time can be short.
type Options struct {
	// FunctionTimeout ends an invocation that has not answered by then. The default is 30 seconds, the limit the 90
	// minutes of Lambda Managed Instances.
	FunctionTimeout time.Duration

	// BatchSize is the most records of one invocation. The default is 100, the limit 10,000. A batch can be smaller
	// because its payload would exceed 6 MB.
	BatchSize int

	// BatchingWindow is how long the mapping waits for a batch to fill. The default is 0 and the limit 5 minutes.
	BatchingWindow time.Duration

	// ParallelizationFactor is how many invocations one shard can have at once. The default is 1, the limit 10. Above 1
	// the records of a shard go by the hash of their key to that many lanes, which are read like shards of their own:
	// order holds for each key only.
	ParallelizationFactor int

	// TumblingWindow is the length of the windows over which the function aggregates: whole seconds, at most 15 minutes.
	// The default is none. It needs a ParallelizationFactor of 1.
	TumblingWindow time.Duration

	// WithoutReportBatchItemFailures stands for a mapping whose FunctionResponseTypes lacks ReportBatchItemFailures:
	// batchItemFailures is not read, and an invocation that returns no error is done with all its records.
	WithoutReportBatchItemFailures bool

	// BisectOnError is BisectBatchOnFunctionError: a batch that fails as a whole is split in half, and one that fails in
	// part at the lowest sequence number reported. Neither uses up a retry.
	BisectOnError bool

	// MaximumRetryAttempts is how often a batch is delivered again before it is discarded, 0 to 10,000, and -1 for ever,
	// which is the default.
	MaximumRetryAttempts int

	// ResetRetriesOnProgress says that the retries of a batch are counted anew when a partial failure has moved the
	// checkpoint. AWS does not document whether they are. The default, not, is the one that discards sooner.
	ResetRetriesOnProgress bool

	// MaximumRecordAge is how old a record may be when it is delivered; an older one is discarded. It is 1 minute to 7
	// days. The default is -1, which means that records do not age.
	MaximumRecordAge time.Duration

	// Seed, unless it is 0, makes identifiers and the choice of duplicates the same in every run.
	Seed uint64

	// DuplicateProbability is how likely it is that the mapping does not learn of an answer, whether or not that reports
	// failures. The same batch is then delivered again, with the same state of its window, and without using up a retry.
	// It is at least 0 and less than 1. See Redeliver for one duplicate at a chosen moment.
	DuplicateProbability float64

	// Crash is asked at every lambdatest.Point that a running invocation passes, and ends the invocation there by
	// returning true. It is called concurrently. The default is never; lambdatest.Randomly makes a seeded one.
	Crash func(lambdatest.Point) bool

	// StoreFault is asked for every call of a store that the kit's method Store returned, and says what is to go wrong
	// with it. It is called concurrently. The default is nothing.
	StoreFault func(lambdatest.Point) lambdatest.Fault
}

// Infinite is the MaximumRetryAttempts and the MaximumRecordAge under which nothing is ever discarded.
const Infinite = -1

// Defaults returns the options to which a kit applies those of its user. The two limits that are infinite by default
// are set, since their zero means something else.
func Defaults() Options {
	return Options{MaximumRetryAttempts: Infinite, MaximumRecordAge: Infinite}
}

// resolve fills in the defaults and checks the result against the limits of AWS
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html).
func (o *Options) resolve(kit string) error {
	setDefault(&o.FunctionTimeout, 30*time.Second)
	setDefault(&o.BatchSize, 100)
	setDefault(&o.ParallelizationFactor, 1)
	setDefault(&o.MaximumRecordAge, Infinite)

	for _, limit := range []struct {
		option    string
		value     any
		kept      bool
		condition string
	}{
		{"FunctionTimeout", o.FunctionTimeout, within(o.FunctionTimeout, 1, 90*time.Minute), "be positive and at most 1h30m"},
		{"BatchSize", o.BatchSize, within(o.BatchSize, 1, 10000), "be 1 to 10000"},
		{"BatchingWindow", o.BatchingWindow, within(o.BatchingWindow, 0, 5*time.Minute), "be 0 to 5m"},
		{"ParallelizationFactor", o.ParallelizationFactor, within(o.ParallelizationFactor, 1, 10), "be 1 to 10"},
		{"TumblingWindow", o.TumblingWindow, within(o.TumblingWindow, 0, 15*time.Minute) && o.TumblingWindow%time.Second == 0,
			"be 0 to 15m in whole seconds"},
		{"ParallelizationFactor", o.ParallelizationFactor, o.TumblingWindow == 0 || o.ParallelizationFactor == 1,
			"be 1 with a TumblingWindow"},
		{"MaximumRetryAttempts", o.MaximumRetryAttempts, within(o.MaximumRetryAttempts, Infinite, 10000),
			"be -1 (for ever) or 0 to 10000"},
		{"MaximumRecordAge", o.MaximumRecordAge,
			o.MaximumRecordAge == Infinite || within(o.MaximumRecordAge, time.Minute, 7*24*time.Hour),
			"be -1 (infinite) or 1m to 168h"},
		{"DuplicateProbability", o.DuplicateProbability, o.DuplicateProbability >= 0 && o.DuplicateProbability < 1,
			"be at least 0 and less than 1"},
	} {
		if !limit.kept {
			return fmt.Errorf("%s: %s is %v, but must %s", kit, limit.option, limit.value, limit.condition)
		}
	}
	return nil
}

func setDefault[T int | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}

func within[T int | time.Duration](value, low, high T) bool { return low <= value && value <= high }
