package eventbridgetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Options configures a bus, the function that it delivers to, and the rule or subscriber between them. The zero value is
// a rule, whose target is a function that Lambda invokes asynchronously, with the defaults of AWS and without faults.
//
// All durations may be fractions of a second, and shorter than the shortest that AWS takes, so that a run in real time
// can be short.
type Options struct {
	// FunctionTimeout ends an invocation that has not answered by then. The default is 30 seconds, the limit the 90
	// minutes of Lambda Managed Instances.
	FunctionTimeout time.Duration

	// FunctionRetry is what Lambda does with an event that was handed to it for an asynchronous invocation: retries are for
	// errors of the function, and the age counts from the hand-off. The default is 2 retries and 6 hours, which are also the
	// limits (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). What is given up goes to
	// FunctionQueue.
	FunctionRetry RetryPolicy

	// RetryDelay is how long Lambda waits before it retries a function error for the first time; before the second it waits
	// twice as long. The default is AWS's, 1 minute, and the limit an hour.
	RetryDelay time.Duration

	// TargetRetry is what EventBridge does with an event that the target has not taken. The age counts from when the event
	// was put or replayed. The limits are 185 retries and 24 hours, and they are the default of a rule
	// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html); that of a subscriber is 5 retries
	// and 5 minutes (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html). What is given up
	// goes to TargetQueue.
	TargetRetry RetryPolicy

	// Subscriber makes the bus a custom event bus, with this subscriber in place of the rule.
	Subscriber *Subscriber

	// Concurrency is the most invocations that overlap, all in this process, but for those that a subscriber has given up
	// and that still run. The default is 1, with which a run is the same every time; Lambda invokes a function up to a
	// thousand times at once.
	Concurrency int

	// Seed, unless it is 0, makes ids, delays and the choice of duplicates the same in every run.
	Seed uint64

	// DuplicateProbability is how likely an event, or a batch of a subscriber, is delivered a second time although nothing
	// went wrong: half of the copies at once, half within a minute, and those of a FIFO subscriber before what comes next. It
	// is at least 0 and less than 1. See Bus.Redeliver for one duplicate at a chosen moment.
	DuplicateProbability float64

	// Throttle is asked before each invocation, and keeps it from happening by returning true, as Lambda does for want of
	// concurrency. In an asynchronous invocation the event stays in Lambda's queue, uses up no retry, and is tried again
	// after 1 second, 2, 4, and so on up to 5 minutes. To a subscriber that waits for the answer it is a failed call. The
	// point is of the moment BeforeInvoke and is named "Throttle"; its Key is the id of the first event. Throttle is called
	// concurrently. The default is never; lambdatest.Randomly makes a seeded one.
	Throttle func(lambdatest.Point) bool

	// TargetFault is asked before EventBridge hands events to Lambda, or calls the function of a subscriber that waits for
	// the answer. An error means that the target was not reached: EventBridge tries again, unless the error is
	// ErrNotRetriable. The point is of the moment BeforeInvoke and is named "Target"; its Key is the id of the first event.
	// TargetFault is called concurrently. The default is nothing.
	TargetFault func(lambdatest.Point) error

	// Crash is asked at every lambdatest.Point that a running invocation passes, and ends the invocation there by returning
	// true. It is called concurrently. The default is never; lambdatest.Randomly makes a seeded one. In a point, RecordIDs
	// are the ids of the events, and Attempt counts how often the function was invoked with this event or batch: first 1,
	// whether it is a copy or not.
	Crash func(lambdatest.Point) bool

	// StoreFault is asked for every call of a store that Bus.Store returned, and says what is to go wrong with it. It is
	// called concurrently. The default is nothing.
	StoreFault func(lambdatest.Point) lambdatest.Fault

	// Observe is called once for every invocation that has ended, after its events are dealt with and before Drain, Run or
	// Close return. It is called concurrently, and must not call Close, which would wait for it.
	Observe func(Delivery)
}

// ErrNotRetriable is for Options.TargetFault: a missing permission, for example, or a function that does not exist.
// EventBridge does not try again then.
var ErrNotRetriable = errors.New("eventbridgetest: target fault is not retriable")

// RetryPolicy says when something is given up.
type RetryPolicy struct {
	// MaximumRetryAttempts is how often it is tried again. 0 means the default, unlike on AWS, and NoRetries none.
	MaximumRetryAttempts int
	// MaximumEventAge is how old an event may be when it is tried. One that waits for a retry is given up at this age, one
	// that is behind others when its turn comes. 0 means the default.
	MaximumEventAge time.Duration
}

// NoRetries is the MaximumRetryAttempts of a policy that gives up at the first failure.
const NoRetries = -1

// Subscriber is a subscriber of a custom event bus, with a Lambda function as its target
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html).
type Subscriber struct {
	// MaxBatchSize is the most events of one call, 1 to 500. The default is 10. With 1 the function gets an object, with any
	// other an array, even for one event.
	MaxBatchSize int

	// MaxBatchWindow is how long a batch waits to fill, up to 5 minutes. The default is 0.
	MaxBatchWindow time.Duration

	// WithMetadata stands for the transformer WITH_METADATA: each event is an object with its Data and SystemMetadata. The
	// default is the event itself.
	WithMetadata bool

	// FIFO keeps the events of each group in the order in which they were put. It does so with one call at a time: one that
	// failed holds up all later events, of every group, until it is done with or given up.
	FIFO bool

	// RequestResponse is the InvocationType: the subscriber waits for the function's answer, and calls it again after an
	// error. The default is EVENT: Lambda invokes the function asynchronously, with the whole batch, in no order.
	RequestResponse bool

	// InvocationTimeout is how long EventBridge waits for the answer, up to 30 seconds, which is also the default. After that
	// it calls again, while the function may still run. It goes with RequestResponse.
	InvocationTimeout time.Duration
}

const (
	maxTargetRetries = 185
	maxTargetAge     = 24 * time.Hour
	maxFunctionAge   = 6 * time.Hour
)

// resolve fills in the defaults and checks the result against the limits of AWS.
func (o *Options) resolve() error {
	setDefault(&o.FunctionTimeout, 30*time.Second)
	setDefault(&o.RetryDelay, time.Minute)
	setDefault(&o.Concurrency, 1)
	o.FunctionRetry.setDefaults(2, maxFunctionAge)
	s := Subscriber{MaxBatchSize: 1}
	if o.Subscriber == nil {
		o.TargetRetry.setDefaults(maxTargetRetries, maxTargetAge)
	} else {
		o.TargetRetry.setDefaults(5, 5*time.Minute)
		s = *o.Subscriber
		setDefault(&s.MaxBatchSize, 10)
		if s.RequestResponse {
			setDefault(&s.InvocationTimeout, 30*time.Second)
		}
		o.Subscriber = &s // a copy, since the user's may serve several buses
	}

	for _, limit := range []struct {
		option    string
		value     any
		kept      bool
		condition string
	}{
		{"FunctionTimeout", o.FunctionTimeout, within(o.FunctionTimeout, 1, 90*time.Minute), "be positive and at most 1h30m"},
		{"FunctionRetry.MaximumRetryAttempts", o.FunctionRetry.MaximumRetryAttempts,
			within(o.FunctionRetry.MaximumRetryAttempts, NoRetries, 2), "be 1 or 2, -1 (none) or 0 (the default)"},
		{"FunctionRetry.MaximumEventAge", o.FunctionRetry.MaximumEventAge,
			within(o.FunctionRetry.MaximumEventAge, 1, maxFunctionAge), "be positive and at most 6h"},
		{"RetryDelay", o.RetryDelay, within(o.RetryDelay, 1, time.Hour), "be positive and at most 1h"},
		{"TargetRetry.MaximumRetryAttempts", o.TargetRetry.MaximumRetryAttempts,
			within(o.TargetRetry.MaximumRetryAttempts, NoRetries, maxTargetRetries), "be 1 to 185, -1 (none) or 0 (the default)"},
		{"TargetRetry.MaximumEventAge", o.TargetRetry.MaximumEventAge,
			within(o.TargetRetry.MaximumEventAge, 1, maxTargetAge), "be positive and at most 24h"},
		{"Concurrency", o.Concurrency, o.Concurrency >= 1, "be at least 1"},
		{"DuplicateProbability", o.DuplicateProbability, o.DuplicateProbability >= 0 && o.DuplicateProbability < 1,
			"be at least 0 and less than 1"},
		{"Subscriber.MaxBatchSize", s.MaxBatchSize, within(s.MaxBatchSize, 1, 500), "be 1 to 500"},
		{"Subscriber.MaxBatchWindow", s.MaxBatchWindow, within(s.MaxBatchWindow, 0, 5*time.Minute), "be 0 to 5m"},
		{"Subscriber.InvocationTimeout", s.InvocationTimeout, s.RequestResponse || s.InvocationTimeout == 0,
			"be 0 without RequestResponse"},
		{"Subscriber.InvocationTimeout", s.InvocationTimeout, !s.RequestResponse || within(s.InvocationTimeout, 1, 30*time.Second),
			"be positive and at most 30s"},
	} {
		if !limit.kept {
			return fmt.Errorf("eventbridgetest: %s is %v, but must %s", limit.option, limit.value, limit.condition)
		}
	}
	return nil
}

func (p *RetryPolicy) setDefaults(attempts int, age time.Duration) {
	setDefault(&p.MaximumRetryAttempts, attempts)
	setDefault(&p.MaximumEventAge, age)
}

func setDefault[T int | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}

func within[T int | time.Duration](value, low, high T) bool { return low <= value && value <= high }

// validName reports whether a name has at most so many letters, digits, dots, underscores, hyphens, and characters of more.
func validName(name, more string, limit int) bool {
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-' ||
			strings.ContainsRune(more, r))
	}
	return name != "" && len(name) <= limit && !strings.ContainsFunc(name, bad)
}
