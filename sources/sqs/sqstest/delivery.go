package sqstest

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Delivery is one invocation that has ended.
type Delivery struct {
	// Invocation counts the queue's invocations, from 1.
	Invocation int
	// Messages is what the handler received.
	Messages []events.SQSMessage
	// Started and Ended are the times of both. They differ by less than FunctionTimeout unless the invocation timed out.
	Started, Ended time.Time
	// Ending is how it ended.
	Ending lambdatest.Ending
	// Response is the answer's bytes, nil unless Ending is Answered.
	Response []byte
	// Err is the handler's error or panic with its stack, or what is wrong with the answer, so that AWS takes it as the
	// failure of every message. It is nil for a good answer, a crash and a timeout.
	Err error
	// Deleted and Returned are the IDs of the messages that were done with, and of those that come back when they are
	// visible again, in the batch's order.
	Deleted, Returned []string
}

// start invokes the handler with a batch. The caller holds q.mu.
func (q *Queue) start(ctx context.Context, h lambdatest.Handler, p *poller, b *batch) {
	q.stats.Invocations++
	p.running++
	e := lambdatest.Event{Payload: appendPayload(nil, b.records), RecordIDs: b.ids()}
	for _, d := range b.deliveries {
		e.Attempt = max(e.Attempt, d.earlier+d.receives)
	}
	q.function.Start(ctx, h, e, func(r lambdatest.Result) { q.ended(p, b, r) })
}

// ended does with the messages of an invocation what AWS would.
func (q *Queue) ended(p *poller, b *batch, r lambdatest.Result) {
	q.mu.Lock()
	d := Delivery{
		Invocation: r.Invocation, Messages: b.messages, Started: r.Started, Ended: r.Ended,
		Ending: r.Ending, Response: r.Response, Err: r.Err,
	}
	var failed map[string]bool
	switch r.Ending {
	case lambdatest.Crashed:
		q.stats.Crashes++
	case lambdatest.TimedOut:
		q.stats.Timeouts++
	case lambdatest.FunctionError, lambdatest.Panicked:
		q.stats.Errors++
	case lambdatest.Answered:
		if !q.options.WithoutReportBatchItemFailures {
			failed, d.Err = lambdatest.ReadFailures(r.Response, b.ids())
		}
	}
	for _, received := range b.deliveries {
		id := received.message.id
		if r.Ending != lambdatest.Answered || d.Err != nil || failed[id] {
			d.Returned = append(d.Returned, id)
			continue
		}
		q.deleteReceived(received, r.Ended)
		d.Deleted = append(d.Deleted, id)
	}
	q.mu.Unlock()

	defer func() { // also if Observe ends the goroutine, as testing.T.Fatal does
		q.mu.Lock()
		defer q.mu.Unlock()
		p.running--
		q.broadcast()
	}()
	if q.options.Observe != nil {
		q.options.Observe(d)
	}
}
