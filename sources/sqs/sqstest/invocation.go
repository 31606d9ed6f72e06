package sqstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// An Ending is how an invocation ended.
type Ending int

const (
	// Answered: the handler returned without an error. Delivery.Err says so if the answer is not a valid one.
	Answered Ending = iota + 1
	// FunctionError: the handler returned an error.
	FunctionError
	// Panicked: the handler panicked, or called runtime.Goexit. On Lambda the process exits.
	Panicked
	// Crashed: Options.Crash said so, or Crash was called.
	Crashed
	// TimedOut: FunctionTimeout passed.
	TimedOut
)

// String returns the ending in lower case words, such as "timed out".
func (e Ending) String() string {
	switch e {
	case Answered:
		return "answered"
	case FunctionError:
		return "function error"
	case Panicked:
		return "panicked"
	case Crashed:
		return "crashed"
	case TimedOut:
		return "timed out"
	default:
		return fmt.Sprintf("Ending(%d)", int(e))
	}
}

// Delivery is one invocation that has ended.
type Delivery struct {
	// Invocation counts the queue's invocations, from 1.
	Invocation int
	// Messages is what the handler received.
	Messages []events.SQSMessage
	// Started and Ended are the times of both. They differ by less than FunctionTimeout unless the invocation timed out.
	Started, Ended time.Time
	// Ending is how it ended.
	Ending Ending
	// Response is the answer's bytes, nil unless Ending is Answered.
	Response []byte
	// Err is the handler's error or panic with its stack, or what is wrong with the answer, so that AWS takes it as the
	// failure of every message. It is nil for a good answer, a crash and a timeout.
	Err error
	// Deleted and Returned are the IDs of the messages that were done with, and of those that come back when they are
	// visible again, in the batch's order.
	Deleted, Returned []string
}

// invocation is one call of the handler. It runs until it has ended, and is dead if it ended in a way that ends the
// execution environment too.
type invocation struct {
	queue    *Queue
	poller   *poller
	point    Point // what all its points have in common
	batch    *batch
	started  time.Time
	deadline time.Time
	cancel   context.CancelFunc
	timer    *time.Timer

	// Guarded by queue.mu.
	ended, dead, returned bool
}

type invocationKey struct{}

// invocationOf returns the invocation that ctx belongs to, or nil. It is a value of the context, so contexts that are
// derived from Invoke's belong to it too, those of context.WithoutCancel included.
func invocationOf(ctx context.Context) *invocation {
	v, _ := ctx.Value(invocationKey{}).(*invocation)
	return v
}

// start invokes the handler with a batch. The caller holds q.mu.
func (q *Queue) start(ctx context.Context, h Handler, p *poller, b *batch) {
	now := time.Now()
	q.stats.Invocations++
	q.calls++
	p.running++
	v := &invocation{
		queue: q, poller: p, batch: b, started: now, deadline: now.Add(q.options.FunctionTimeout),
		point: Point{Invocation: q.stats.Invocations},
	}
	for i, d := range b.deliveries {
		v.point.MessageIDs = append(v.point.MessageIDs, b.messages[i].MessageId)
		v.point.ReceiveCount = max(v.point.ReceiveCount, d.earlier+d.receives)
	}
	// The end of a poll does not end what it has started, so only the values of ctx are kept.
	ctx = context.WithValue(context.WithoutCancel(ctx), invocationKey{}, v)
	ctx, v.cancel = context.WithDeadline(ctx, v.deadline)
	v.timer = time.AfterFunc(q.options.FunctionTimeout, func() { v.end(TimedOut, nil, nil) })
	q.invocations[v] = struct{}{}
	go v.call(ctx, h, appendPayload(p.buffers.get(), b.records))
}

// call calls the handler in a goroutine of its own.
func (v *invocation) call(ctx context.Context, h Handler, payload []byte) {
	var response []byte
	var err error
	how := Panicked // unless Invoke returns
	defer func() {
		if how == Panicked {
			if r := recover(); r != nil {
				err = fmt.Errorf("sqstest: handler panicked: %v\n%s", r, debug.Stack())
			} else {
				err = errors.New("sqstest: handler called runtime.Goexit")
			}
		}
		v.end(how, response, err)
		v.leave()
	}()

	if v.dies(BeforeInvoke, "", "") {
		how = Crashed
		return
	}
	response, err = h.Invoke(ctx, payload)
	how = Answered
	if err != nil {
		how, response = FunctionError, nil
	}
	if v.dies(AfterInvoke, "", "") {
		return // the payload is a dead process's memory now, which nobody uses again
	}
	// The answer may be part of the payload, so it is copied first. What the handler has kept of the payload is wrong
	// from here on, as it is with aws-lambda-go, which reads the next event into the same buffer. A goroutine that still
	// reads it is a data race, which the race detector reports.
	response = bytes.Clone(response)
	for i := range payload {
		payload[i] = '?'
	}
	v.poller.buffers.put(payload)
}

// end ends the invocation, unless it has ended before, and does with its messages what AWS would.
func (v *invocation) end(how Ending, response []byte, err error) {
	q := v.queue
	q.mu.Lock()
	if v.ended {
		q.mu.Unlock()
		return
	}
	now := time.Now()
	v.ended = true
	v.dead = how != Answered && how != FunctionError
	v.timer.Stop()

	d := Delivery{
		Invocation: v.point.Invocation, Messages: v.batch.messages, Started: v.started, Ended: now,
		Ending: how, Response: response, Err: err,
	}
	var failed map[string]bool
	switch how {
	case Crashed:
		q.stats.Crashes++
	case TimedOut:
		q.stats.Timeouts++
	case FunctionError, Panicked:
		q.stats.Errors++
	case Answered:
		if !q.options.WithoutReportBatchItemFailures {
			failed, d.Err = readResponse(response, v.point.MessageIDs)
		}
	}
	for _, received := range v.batch.deliveries {
		id := received.message.id
		if how != Answered || d.Err != nil || failed[id] {
			d.Returned = append(d.Returned, id)
			continue
		}
		q.deleteReceived(received, now)
		d.Deleted = append(d.Deleted, id)
	}
	q.mu.Unlock()

	if q.options.Observe != nil {
		q.options.Observe(d)
	}
	q.mu.Lock()
	v.poller.running--
	q.broadcast()
	q.mu.Unlock()
}

// leave marks that Invoke has returned. The context of a dead invocation lives on until Close, since nobody is there
// who could cancel it.
func (v *invocation) leave() {
	q := v.queue
	q.mu.Lock()
	v.returned = true
	q.calls--
	if !v.dead {
		delete(q.invocations, v)
		v.cancel()
	}
	q.broadcast()
	q.mu.Unlock()
}
