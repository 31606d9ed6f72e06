package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The defaults and limits of Options.
const (
	DefaultConcurrency = 10
	MaxConcurrency     = 10_000
	DefaultReserve     = time.Second
)

// ErrorOn says when an invocation answers with an error, so that the whole batch comes back, instead of naming the
// records that failed.
type ErrorOn uint8

const (
	// ErrorOnNothing: failed records are always named one by one. This is the default.
	ErrorOnNothing ErrorOn = iota
	// ErrorOnTotalFailure: an error if every record failed, so that Lambda's error metric shows it.
	ErrorOnTotalFailure
	// ErrorOnAnyFailure: an error if any record failed. This is for event source mappings without
	// ReportBatchItemFailures, which take any answer that is not an error for success of the whole batch
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html).
	ErrorOnAnyFailure
)

// Options are the options of the engine. The zero value is a good default. The options of every source embed them.
type Options struct {
	// Concurrency is how many records are handled at once. 0 means DefaultConcurrency. 1 means strictly one at a time,
	// in input order. The limit is MaxConcurrency.
	Concurrency int

	// Reserve is how long before the deadline of its context a batch begins to end: no record is started any more, and
	// the contexts of running handlers are cancelled. At half of it the answer goes out. 0 means DefaultReserve or a
	// tenth of the time left at the start, whichever is less.
	//
	// More than half of the time left is cut down to that, which is logged. Negative means none: records start and run
	// until the deadline, and have a second after it to return, if anyone still waits. A context that is cancelled before
	// its deadline, or that has none, also ends the batch with a second of grace.
	Reserve time.Duration

	// Timeout is how long the handler of one record may run before its context is cancelled. A handler that ignores that
	// goes on, and holds its worker, until it returns or is abandoned when the answer goes. 0 means as long as the batch
	// may. With an idempotency guard it also shortens the record's lease, to two seconds more than Timeout, or six
	// where DeadLetter is set, so that another worker can take over sooner after a crash.
	Timeout time.Duration

	// MaxAttempts is the attempt, counted from 1, with which a failing record is given up and handed to DeadLetter. 0
	// means never. It has no effect on records whose Attempt is unknown, and none without DeadLetter: they stay Failed.
	// Records that could not be claimed are given up only if that is Permanent, such as a key that was used with another
	// payload: what else stands in their way is not their own fault.
	MaxAttempts int

	// DeadLetter takes records that are given up: those whose error is Permanent, and those that failed at MaxAttempts.
	// If it returns nil the record is DeadLettered, and its source is told that it is done; otherwise the record is
	// Failed, with both errors. It is called at least once for such a record, so it tolerates duplicates. Its context
	// has the values of the handler's and ends with the record's claim. A twin of the record, with the same key but
	// another ID, is not given up with it: it comes back. A nil DeadLetter means that all such records are Failed and
	// come back.
	DeadLetter func(ctx context.Context, r *Record, err error) error

	// StopOnFailure makes one failed record stop all that are not started yet, not only those of its lane. With
	// Concurrency 1 nothing behind a failure runs.
	StopOnFailure bool

	// ErrorOn says when an invocation answers with an error instead of a list of failed records.
	ErrorOn ErrorOn

	// PanicOnAbandoned makes Process panic, with a *FailedError, after a batch that had to abandon a running handler.
	// Under aws-lambda-go the invocation then fails and the process exits (lambda.Start reports the panic of a handler
	// and calls log.Fatal), which is the only way to stop such a handler for good.
	PanicOnAbandoned bool

	// Middleware is put around the handler, the first outermost.
	Middleware []Middleware

	// Hooks are called as a batch goes on. Each implements at least one of the OnXxx interfaces.
	Hooks []Hook

	// Logger gets a line for each failed record, at Error, and for each that is in progress elsewhere, dead-lettered or
	// unrecorded, at Warn; and a summary of each batch in which something failed, at Info. Skipped records, and the
	// summaries of batches in which all went well, are at Debug: what is logged costs money. Nil means slog.Default().
	Logger *slog.Logger
}

// Validate returns an error that names each option that is out of its limits, what it is and what it may be.
func (o *Options) Validate() error {
	var errs []error
	check := func(ok bool, name string, got any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("batch: Options.%s is %v, want %s", name, got, want))
		}
	}
	check(o.Concurrency >= 0 && o.Concurrency <= MaxConcurrency, "Concurrency", o.Concurrency,
		fmt.Sprintf("0 (for %d) to %d", DefaultConcurrency, MaxConcurrency))
	check(o.Timeout >= 0, "Timeout", o.Timeout, "0 (for none) or more")
	check(o.MaxAttempts >= 0, "MaxAttempts", o.MaxAttempts, "0 (for no limit) or more")
	check(o.ErrorOn <= ErrorOnAnyFailure, "ErrorOn", o.ErrorOn, "one of the ErrorOn constants")
	for i, m := range o.Middleware {
		check(m != nil, fmt.Sprintf("Middleware[%d]", i), "nil", "a function")
	}
	for i, h := range o.Hooks {
		check(isHook(h), fmt.Sprintf("Hooks[%d]", i), fmt.Sprintf("of type %T", h),
			"one with at least one of OnBatchStarted, OnRecordFinished, OnBatchFinished")
	}
	return errors.Join(errs...)
}

func (o *Options) concurrency() int {
	if o.Concurrency == 0 {
		return DefaultConcurrency
	}
	return o.Concurrency
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}
