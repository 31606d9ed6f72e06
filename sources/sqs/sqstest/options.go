package sqstest

import (
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Options configures a queue, the function that reads it and the event source mapping between them. The zero value is
// a queue without a dead-letter queue and without faults, read by one invocation at a time, with
// ReportBatchItemFailures set.
//
// All durations may be fractions of a second, which AWS does not take, so that a run in real time can be short.
type Options struct {
	// VisibilityTimeout is how long a received message is in flight before it can be received again. The default is
	// six times FunctionTimeout plus BatchingWindow, as AWS recommends, and the limit 12 hours. It must not be shorter
	// than FunctionTimeout: AWS refuses to create such a mapping. If it is shorter than BatchingWindow plus
	// FunctionTimeout, messages are received with that sum plus 30 seconds instead, as the mapping does.
	VisibilityTimeout time.Duration

	// DeadLetter receives a message that was received MaxReceiveCount times from this queue and would be received
	// again. It must be of the same type, standard or FIFO. The default is none: a message that is never deleted is
	// delivered again and again.
	DeadLetter *Queue

	// MaxReceiveCount goes with DeadLetter; NewQueue returns an error if it is set without. The default is 5, the limits
	// are 1 and 1,000.
	MaxReceiveCount int

	// FunctionTimeout ends an invocation that has not answered by then. The default is 30 seconds, the limit the 90
	// minutes of Lambda Managed Instances.
	FunctionTimeout time.Duration

	// BatchSize is the most messages of one invocation. The default is 10; the limit is 10,000 for a standard queue and
	// 10 for a FIFO queue. A batch can be smaller because its payload would exceed 6 MB.
	BatchSize int

	// BatchingWindow is how long the mapping waits for a batch to fill. The default is 0 and the limit 5 minutes. A
	// standard queue with a BatchSize above 10 needs at least 1 second, a FIFO queue has no window.
	BatchingWindow time.Duration

	// Concurrency is the most invocations that overlap, all in this process. The default is 1.
	Concurrency int

	// WithoutReportBatchItemFailures stands for a mapping whose FunctionResponseTypes lacks ReportBatchItemFailures:
	// the answer is not read, and an invocation that returns no error has all its messages deleted.
	WithoutReportBatchItemFailures bool

	// Seed, unless it is 0, makes message IDs, receipt handles and the choice of duplicates the same in every run.
	Seed uint64

	// DuplicateProbability is how likely a receive of a message leaves a second copy of it behind, which is delivered
	// as well: a third of the copies in the same batch, a third in the next one, which may overlap, and a third within
	// the visibility timeout, when the message is probably deleted. It is at least 0 and less than 1, and must be 0
	// for a FIFO queue. See Queue.Redeliver for one duplicate at a chosen moment.
	DuplicateProbability float64

	// Crash is asked at every point that a running invocation passes, and ends the invocation there by returning true.
	// It is called concurrently. The default is never; lambdatest.Randomly makes a seeded one. In a point, RecordIDs are
	// message IDs, and Attempt is the highest ApproximateReceiveCount in the batch.
	Crash func(lambdatest.Point) bool

	// StoreFault is asked for every call of a store that Queue.Store returned, and says what is to go wrong with it.
	// It is called concurrently. The default is nothing.
	StoreFault func(lambdatest.Point) lambdatest.Fault

	// Observe is called once for every invocation that has ended, after its messages are deleted and before Drain, Run or
	// Close return. It is called concurrently, and must not call Close, which would wait for it.
	Observe func(Delivery)
}

const (
	maxVisibilityTimeout = 12 * time.Hour
	maxBatchSizeFIFO     = 10
	// maxReceivesInDrain stops a Drain that would never end. A message that fails for ever is received every
	// visibility timeout, which takes no time at all under testing/synctest.
	maxReceivesInDrain = 1000
)

// resolve fills in the defaults and checks the result against the limits of AWS.
func (o *Options) resolve(fifo bool) error {
	setDefault(&o.FunctionTimeout, 30*time.Second)
	setDefault(&o.BatchSize, 10)
	setDefault(&o.Concurrency, 1)
	setDefault(&o.VisibilityTimeout, 6*o.FunctionTimeout+o.BatchingWindow)
	if o.DeadLetter != nil {
		setDefault(&o.MaxReceiveCount, 5)
	}

	maxBatchSize := 10000
	if fifo {
		maxBatchSize = maxBatchSizeFIFO
	}
	for _, limit := range []struct {
		option    string
		value     any
		kept      bool
		condition string
	}{
		{"FunctionTimeout", o.FunctionTimeout, within(o.FunctionTimeout, 1, 90*time.Minute), "be positive and at most 1h30m"},
		{"BatchSize", o.BatchSize, within(o.BatchSize, 1, maxBatchSize), fmt.Sprintf("be 1 to %d", maxBatchSize)},
		{"BatchingWindow", o.BatchingWindow, within(o.BatchingWindow, 0, 5*time.Minute), "be 0 to 5m"},
		{"BatchingWindow", o.BatchingWindow, !fifo || o.BatchingWindow == 0, "be 0 for a FIFO queue"},
		{"BatchingWindow", o.BatchingWindow, o.BatchSize <= 10 || o.BatchingWindow >= time.Second,
			"be at least 1s for a BatchSize above 10"},
		{"Concurrency", o.Concurrency, o.Concurrency >= 1, "be at least 1"},
		{"VisibilityTimeout", o.VisibilityTimeout, within(o.VisibilityTimeout, 1, maxVisibilityTimeout),
			"be positive and at most 12h"},
		{"VisibilityTimeout", o.VisibilityTimeout, o.VisibilityTimeout >= o.FunctionTimeout,
			fmt.Sprintf("be at least FunctionTimeout (%v)", o.FunctionTimeout)},
		{"MaxReceiveCount", o.MaxReceiveCount, o.DeadLetter != nil || o.MaxReceiveCount == 0, "be 0 without DeadLetter"},
		{"MaxReceiveCount", o.MaxReceiveCount, o.DeadLetter == nil || within(o.MaxReceiveCount, 1, 1000), "be 1 to 1000"},
		{"DuplicateProbability", o.DuplicateProbability, o.DuplicateProbability >= 0 && o.DuplicateProbability < 1,
			"be at least 0 and less than 1"},
		{"DuplicateProbability", o.DuplicateProbability, !fifo || o.DuplicateProbability == 0, "be 0 for a FIFO queue"},
	} {
		if !limit.kept {
			return fmt.Errorf("sqstest: %s is %v, but must %s", limit.option, limit.value, limit.condition)
		}
	}
	if o.DeadLetter != nil && o.DeadLetter.fifo != fifo {
		return fmt.Errorf("sqstest: DeadLetter is %q, but must be of the queue's own type, standard or FIFO",
			o.DeadLetter.name)
	}
	return nil
}

// visibility returns the visibility timeout that the mapping receives with.
func (o *Options) visibility() time.Duration {
	if longest := o.BatchingWindow + o.FunctionTimeout; longest > o.VisibilityTimeout {
		return longest + 30*time.Second
	}
	return o.VisibilityTimeout
}

func setDefault[T int | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}

func within[T int | time.Duration](value, low, high T) bool { return low <= value && value <= high }

// checkName checks a queue's name as CreateQueue does: up to 80 letters, digits, hyphens and underscores, the suffix
// .fifo included.
func checkName(name string) error {
	base := strings.TrimSuffix(name, fifoSuffix)
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	if base == "" || len(name) > 80 || strings.ContainsFunc(base, bad) {
		return fmt.Errorf("sqstest: queue name is %q, but must be 1 to 80 letters, digits, hyphens and underscores, "+
			"ending in %s for a FIFO queue", name, fifoSuffix)
	}
	return nil
}
