package eventbridgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Delivery is one invocation that has ended.
type Delivery struct {
	// Invocation counts the bus's invocations, from 1.
	Invocation int
	// IDs are those of the events, in the order of the payload. They must not be changed.
	IDs []string
	// Payload is what the handler received. It must not be changed.
	Payload []byte
	// Attempt counts the invocations with this event or batch: 1 for the first, whether it is a copy or not.
	Attempt int
	// Started and Ended are the times of both. They differ by less than FunctionTimeout unless the invocation timed out.
	Started, Ended time.Time
	// Ending is how it ended.
	Ending lambdatest.Ending
	// Response is the answer's bytes, nil unless Ending is Answered. Nobody reads them.
	Response []byte
	// Err is the handler's error, or its panic with the stack. It is nil for an answer, a crash and a timeout.
	Err error
	// GivenUp says that the subscriber did not wait so long: its call has failed, however the invocation ended.
	GivenUp bool
}

// call is one invocation.
type call struct {
	work    *work
	poller  *poller
	ids     []string
	payload []byte
	attempt int
	timer   *time.Timer // at which a subscriber gives up, nil if nobody does
	givenUp bool        // guarded by the bus's mutex
}

// try delivers w, one step on: to Lambda's queue or to the function.
func (b *Bus) try(ctx context.Context, h lambdatest.Handler, p *poller, w *work) {
	b.mu.Lock()
	left := b.expire(w, time.Now())
	b.mu.Unlock()
	if !left {
		return
	}
	point := lambdatest.Point{
		Moment: lambdatest.BeforeInvoke, Key: w.parts[0].event.id, RecordIDs: w.ids(), Attempt: w.invocations + 1,
	}
	var fault error
	if o := &b.options; !w.queued && o.TargetFault != nil {
		point.Name = "Target"
		fault = o.TargetFault(point)
	}
	throttled := false
	if o := &b.options; fault == nil && b.invokes(w) && o.Throttle != nil {
		point.Name = "Throttle"
		throttled = o.Throttle(point)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case fault != nil:
		b.stats.TargetFaults++
		if errors.Is(fault, ErrNotRetriable) {
			w.failures++
			w.err = fault
			b.deadLetter(w, NotRetriable, now)
		} else {
			b.fail(w, now, fault)
		}
	case throttled && w.queued:
		b.stats.Throttles++
		b.throttled(w, now)
	case throttled:
		b.stats.Throttles++
		b.fail(w, now, errThrottled)
	case b.invokes(w):
		b.invoke(ctx, h, p, w, now)
	default:
		w.queued, w.busy, w.since, w.due, w.failures, w.err = true, false, now, now, 0, nil
		b.maybeDuplicate(w, now)
	}
}

var (
	errThrottled = errors.New("function was throttled")
	errCrashed   = errors.New("function has crashed")
	errTimedOut  = errors.New("function has timed out")
)

// invoke invokes the function with w. The caller holds b.mu.
func (b *Bus) invoke(ctx context.Context, h lambdatest.Handler, p *poller, w *work, now time.Time) {
	w.invocations++
	w.throttles = 0
	p.calls++
	p.running++
	b.stats.Invocations++
	elements := make([][]byte, len(w.parts))
	for i, part := range w.parts {
		part.event.delivered = append(part.event.delivered, now)
		elements[i] = part.json
	}
	c := &call{work: w, poller: p, ids: w.ids(), attempt: w.invocations, payload: b.payload(elements)}
	w.call = c
	if b.waits() {
		c.timer = time.AfterFunc(b.options.Subscriber.InvocationTimeout, func() { b.giveUp(c) })
	}
	e := lambdatest.Event{Payload: slices.Clone(c.payload), RecordIDs: c.ids, Attempt: w.invocations}
	b.function.Start(ctx, h, e, func(r lambdatest.Result) { b.ended(c, r) })
}

// payload returns what the function gets: an object if there is never more than one.
func (b *Bus) payload(elements [][]byte) []byte {
	if b.options.Subscriber == nil || b.options.Subscriber.MaxBatchSize == 1 {
		return elements[0]
	}
	return array(elements)
}

// giveUp ends the wait of a subscriber for an answer. The function runs on.
func (b *Bus) giveUp(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || c.work.call != c {
		return // there is nobody left, or the answer came first
	}
	b.abandon(c, time.Now())
	b.broadcast()
}

// abandon takes a call as failed that is not waited for any more. The caller holds b.mu.
func (b *Bus) abandon(c *call, now time.Time) {
	c.givenUp = true
	b.stats.GivenUp++
	b.concluded(c)
	b.fail(c.work, now, fmt.Errorf("no answer within InvocationTimeout (%v)", b.options.Subscriber.InvocationTimeout))
}

// concluded frees the place that a call has taken. The caller holds b.mu.
func (b *Bus) concluded(c *call) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.work.call = nil
	c.poller.calls--
}

// ended does with the events of an invocation what AWS would.
func (b *Bus) ended(c *call, r lambdatest.Result) {
	b.mu.Lock()
	w, err := c.work, r.Err
	switch r.Ending {
	case lambdatest.Crashed:
		b.stats.Crashes++
		err = errCrashed
	case lambdatest.TimedOut:
		b.stats.Timeouts++
		err = errTimedOut
	case lambdatest.FunctionError, lambdatest.Panicked:
		b.stats.Errors++
	}
	switch {
	case c.givenUp:
	case b.waits() && r.Ended.Sub(r.Started) >= b.options.Subscriber.InvocationTimeout:
		b.abandon(c, r.Ended) // its timer is about to fire, and time decides
	case err != nil:
		b.concluded(c)
		b.fail(w, r.Ended, err)
	default:
		b.concluded(c)
		b.finish(w, r.Ended)
	}
	d := Delivery{
		Invocation: r.Invocation, IDs: c.ids, Payload: c.payload, Attempt: c.attempt, Started: r.Started, Ended: r.Ended,
		Ending: r.Ending, Response: r.Response, Err: r.Err, GivenUp: c.givenUp,
	}
	b.broadcast()
	b.mu.Unlock()

	defer func() { // also if Observe ends the goroutine, as testing.T.Fatal does
		b.mu.Lock()
		defer b.mu.Unlock()
		c.poller.running--
		b.broadcast()
	}()
	if b.options.Observe != nil {
		b.options.Observe(d)
	}
}

// finish is done with w. The caller holds b.mu.
func (b *Bus) finish(w *work, now time.Time) {
	b.remove(w)
	b.stats.Done += len(w.parts)
	for _, p := range w.parts {
		p.event.done = now
	}
	if b.waits() {
		b.maybeDuplicate(w, now)
	}
}
