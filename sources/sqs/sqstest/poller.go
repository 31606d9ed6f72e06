package sqstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// poller is one Drain or Run.
type poller struct {
	running int // invocations that have not ended; guarded by the queue's mutex
	stuck   string
}

// Drain delivers messages to h until the queue holds none: none visible, none in flight, none delayed. Then no
// invocation is running either, but parked goroutines of dead ones may be left, until Close.
//
// A message that is never deleted keeps Drain from ending. If a dead-letter queue does not take it, Drain returns an
// error that names it after more than 1,000 receives. When ctx is done, Drain receives no more, waits for what it
// has invoked, and returns the context's error and what is left, unless nothing is. The values of ctx are those of
// Invoke's context; its end is not. After Close, Drain returns lambdatest.ErrClosed.
func (q *Queue) Drain(ctx context.Context, h lambdatest.Handler) error { return q.poll(ctx, h, true) }

// Run delivers messages to h until ctx is done, waits for what it has invoked, and returns nil. Otherwise it is like
// Drain.
func (q *Queue) Run(ctx context.Context, h lambdatest.Handler) error { return q.poll(ctx, h, false) }

func (q *Queue) poll(ctx context.Context, h lambdatest.Handler, drain bool) error {
	if h == nil {
		return errors.New("sqstest: handler is nil")
	}
	p := new(poller)
	done := ctx.Done()
	var gather time.Time // when the batching window ends
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return q.errClosed()
		}
		now := time.Now()
		var next time.Time
		for ctx.Err() == nil && p.stuck == "" && p.running < q.options.Concurrency {
			b := q.receive(now, &gather)
			if b == nil {
				next = q.nextVisible(now)
				if !gather.IsZero() && (next.IsZero() || gather.Before(next)) {
					next = gather
				}
				break
			}
			if drain {
				p.stuck = b.stuck
			}
			q.start(ctx, h, p, b)
		}
		left, changed := q.entries.Len(), q.changed
		ended := p.running == 0 && (ctx.Err() != nil || p.stuck != "" || drain && left == 0)
		q.mu.Unlock()

		switch {
		case !ended:
			if lambdatest.Wait(done, changed, next) {
				done = nil // once is enough: from here on the loop waits for what is running
			}
		case !drain, left == 0:
			return nil
		case p.stuck != "":
			return fmt.Errorf("sqstest: message %s was received more than %d times and is not deleted; "+
				"%d messages are left in %q", p.stuck, maxReceivesInDrain, left, q.name)
		default:
			return fmt.Errorf("sqstest: %d messages are left in %q: %w", left, q.name, context.Cause(ctx))
		}
	}
}
