package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// maxVisibility is the longest timeout that is asked for, less the time that the batch took. SQS allows 12 hours, but
// counts them from the receive and refuses what would end later
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html). Between
// receive and batch lies the batching window, of up to five minutes.
const maxVisibility = 12*time.Hour - 10*time.Minute

// Visibility changes when a message is delivered again. See VisibilityFunc for an adapter to the AWS SDK.
type Visibility interface {
	ChangeVisibility(ctx context.Context, c VisibilityChange) error
}

// VisibilityChange asks for a message to be invisible for Timeout from now.
type VisibilityChange struct {
	QueueARN      string
	ReceiptHandle string
	Timeout       time.Duration // in whole seconds, at most 11 h 50 min: SQS allows 12 hours, which began with the receive
}

// VisibilityFunc makes a Visibility of a function. With the AWS SDK, where client is its *sqs.Client and queue the URL
// of the queue:
//
//	o.Visibility = sqs.VisibilityFunc(func(ctx context.Context, c sqs.VisibilityChange) error {
//		_, err := client.ChangeMessageVisibility(ctx, &awssqs.ChangeMessageVisibilityInput{
//			QueueUrl: &queue, ReceiptHandle: &c.ReceiptHandle, VisibilityTimeout: int32(c.Timeout / time.Second)})
//		return err
//	})
//
//snippet:go import awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
//snippet:go var o sqs.Options
//snippet:go var client *awssqs.Client
//snippet:go var queue string
type VisibilityFunc func(ctx context.Context, c VisibilityChange) error

// ChangeVisibility calls f.
func (f VisibilityFunc) ChangeVisibility(ctx context.Context, c VisibilityChange) error {
	return f(ctx, c)
}

// changeVisibility postpones the failed messages that should not come back when the queue's visibility timeout ends.
// Whatever goes wrong with that, be it in a method of a handler's error, changes no outcome: they come back then.
func changeVisibility(ctx context.Context, v Visibility, logger *slog.Logger, report *batch.Report, records []record) {
	defer func() {
		if value := recover(); value != nil {
			pipeline.Warn(logger, "visibility of failed messages was not changed", "panic", value)
		}
	}()
	changes := visibilityChanges(report, records)
	if len(changes) == 0 {
		return
	}
	limited, cancel := visibilityContext(ctx)
	defer cancel()
	c := changer{ctx: limited, visibility: v, todo: make(chan VisibilityChange, len(changes)), errs: make(chan error, len(changes))}
	for _, change := range changes {
		c.todo <- change
	}
	close(c.todo)
	for range min(len(changes), maxChangers) {
		go c.work()
	}
	failed, first := c.wait(len(changes))
	if failed > 0 {
		pipeline.Warn(logger, "visibility of failed messages was not changed", "messages", failed, "error", first)
	}
}

// maxChangers is how many changes are made at once.
const maxChangers = 10

// changer makes changes, on goroutines that it does not wait for if they ignore their context: both channels have room
// for all, so no goroutine lives longer than its call of ChangeVisibility.
type changer struct {
	ctx        context.Context
	visibility Visibility
	todo       chan VisibilityChange
	errs       chan error
}

// work makes changes until none is left. After runtime.Goexit another goroutine goes on.
func (c *changer) work() {
	finished := false
	defer func() {
		if !finished {
			c.errs <- errors.New("sqs: ChangeVisibility called runtime.Goexit")
			go c.work()
		}
	}()
	for change := range c.todo {
		c.errs <- c.change(change)
	}
	finished = true
}

func (c *changer) change(change VisibilityChange) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("sqs: ChangeVisibility panicked: %v", value)
		}
	}()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.visibility.ChangeVisibility(c.ctx, change)
}

// wait returns how many of n changes were not made in time, and the first error.
func (c *changer) wait(n int) (failed int, first error) {
	for made := range n {
		select {
		case err := <-c.errs:
			if err == nil {
				continue
			}
			if failed++; first == nil {
				first = err
			}
		case <-c.ctx.Done():
			if first == nil {
				first = c.ctx.Err()
			}
			return failed + n - made, first
		}
	}
	return failed, first
}

// visibilityContext returns a context that ends early enough for the answer to go out.
func visibilityContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// visibilityChanges returns what to ask for, once a message. On a FIFO queue a group is delivered again when the last of
// its messages is visible, so all that are reported get the longest timeout that one of them asks for. So do the records of
// an S3 event, which are one message.
func visibilityChanges(report *batch.Report, records []record) []VisibilityChange {
	if report.Failed() == 0 {
		return nil
	}
	type unit struct{ lane, receiptHandle string } // what is delivered together
	unitOf := func(i int) unit {
		if lane := report.Results[i].Record.Lane; lane != "" {
			return unit{lane: lane}
		}
		return unit{receiptHandle: View{&records[i]}.ReceiptHandle()}
	}
	timeouts := map[unit]time.Duration{}
	limit := max(maxVisibility-report.Duration.Truncate(time.Second), 0)
	for i := range report.Results {
		if timeout, ok := visibilityTimeout(&report.Results[i], limit); ok {
			u := unitOf(i)
			timeouts[u] = max(timeouts[u], timeout)
		}
	}
	var changes []VisibilityChange
	asked := map[string]bool{"": true} // by receipt handle
	for i := range report.Results {
		if report.Results[i].Outcome.Done() {
			continue
		}
		timeout, ok := timeouts[unitOf(i)]
		handle := View{&records[i]}.ReceiptHandle()
		if !ok || asked[handle] {
			continue
		}
		asked[handle] = true
		changes = append(changes, VisibilityChange{QueueARN: records[i].arn, ReceiptHandle: handle, Timeout: timeout})
	}
	return changes
}

// visibilityTimeout returns the timeout that a failed message itself asks for, in whole seconds, up to limit.
func visibilityTimeout(r *batch.Result, limit time.Duration) (timeout time.Duration, ok bool) {
	if r.Outcome.Done() {
		return 0, false
	}
	if delay, ok := batch.RetryDelay(r.Err); ok {
		timeout = delay
	} else if held, ok := errors.AsType[*idempotency.InProgressError](r.Err); ok {
		// A little later than the moment the key is free, and not all at that moment.
		left := max(min(time.Until(held.Free), limit), 0)
		timeout = left + time.Second + rand.N(min(left/10, 10*time.Second)+time.Second)
	} else {
		return 0, false
	}
	return (min(timeout, limit) + time.Second - 1).Truncate(time.Second), true
}
