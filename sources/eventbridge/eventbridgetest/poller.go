package eventbridgetest

import (
	"context"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// poller is one Drain or Run. Its numbers are guarded by the bus's mutex.
type poller struct {
	calls   int // invocations that are waited for
	running int // invocations that have not ended
}

// Drain delivers events to h until each is done or given up. Then no invocation is running either, but parked goroutines of
// dead ones may be left, until Close.
//
// It always comes to an end, since retries and ages are limited, though that can be a day away. When ctx is done, Drain
// delivers no more, waits for what it has invoked, and returns the context's error and what is left, unless nothing is. The
// values of ctx are those of Invoke's context; its end is not. After Close, Drain returns lambdatest.ErrClosed.
func (b *Bus) Drain(ctx context.Context, h lambdatest.Handler) error { return b.poll(ctx, h, true) }

// Run delivers events to h until ctx is done, waits for what it has invoked, and returns nil. Otherwise it is like Drain.
func (b *Bus) Run(ctx context.Context, h lambdatest.Handler) error { return b.poll(ctx, h, false) }

func (b *Bus) poll(ctx context.Context, h lambdatest.Handler, drain bool) error {
	if h == nil {
		return errNoHandler
	}
	p := new(poller)
	done := ctx.Done()
	for {
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return b.errClosed()
		}
		var w *work
		var next time.Time
		if ctx.Err() == nil {
			w, next = b.take(time.Now(), p.calls < b.options.Concurrency)
		}
		left, changed := b.left(), b.changed
		ended := p.running == 0 && w == nil && (ctx.Err() != nil || drain && left == 0)
		b.mu.Unlock()

		switch {
		case w != nil:
			b.try(ctx, h, p, w)
		case !ended:
			if lambdatest.Wait(done, changed, next) {
				done = nil // once is enough: from here on the loop waits for what is running
			}
		case !drain, left == 0:
			return nil
		default:
			return fmt.Errorf("eventbridgetest: %d events are left on %q: %w", left, b.name, context.Cause(ctx))
		}
	}
}

// left returns how many events are neither done nor given up, every copy counted. The caller holds b.mu.
func (b *Bus) left() int {
	n := len(b.pending)
	for element := b.work.Front(); element != nil; element = element.Next() {
		n += len(element.Value.(*work).parts)
	}
	return n
}
