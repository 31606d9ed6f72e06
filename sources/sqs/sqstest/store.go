package sqstest

import (
	"context"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Fault is what goes wrong with a store call. The zero value is nothing.
type Fault struct {
	// Latency is how long the call takes before it is applied. If the call's context ends first, the call is not
	// applied and returns the context's error.
	Latency time.Duration
	// Err, if not nil, is what the call returns instead of being applied: throttling, for example.
	Err error
	// ReplyLost says that the call is applied before it returns Err.
	ReplyLost bool
}

// Store returns a store that belongs to the function that reads the queue: a call within an invocation reaches inner
// only if the invocation is alive, and with the faults of Options.StoreFault. A call of a dead invocation, or of one
// that dies at this point, does not return before the queue is closed, and returns ErrClosed then. So does every call
// within an invocation after Close. A call that was on its way to inner when another goroutine's crash fell still
// arrives, as over a network, and does not return either.
//
// Other calls go to inner as they are: those without an invocation in their context, and those of another queue's.
func (q *Queue) Store(inner idempotency.Store) idempotency.Store {
	return &store{queue: q, inner: inner}
}

type store struct {
	queue *Queue
	inner idempotency.Store
}

func (s *store) Claim(ctx context.Context, r idempotency.ClaimRequest) (result idempotency.ClaimResult, err error) {
	err = s.call(ctx, "Claim", r.Key, func() error {
		result, err = s.inner.Claim(ctx, r)
		return err
	})
	if err != nil {
		return idempotency.ClaimResult{}, err // not what a lost reply said
	}
	return result, nil
}

func (s *store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return s.call(ctx, "Complete", r.Key, func() error { return s.inner.Complete(ctx, r) })
}

func (s *store) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return s.call(ctx, "Release", r.Key, func() error { return s.inner.Release(ctx, r) })
}

func (s *store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.call(ctx, "Renew", r.Key, func() error { return s.inner.Renew(ctx, r) })
}

// Validate asks inner, if it can be asked.
func (s *store) Validate() error {
	if v, ok := s.inner.(idempotency.Validator); ok {
		return v.Validate()
	}
	return nil
}

// call applies one call of a store, or does not.
func (s *store) call(ctx context.Context, name, key string, apply func() error) error {
	v := invocationOf(ctx)
	if v == nil || v.queue != s.queue {
		return apply()
	}
	if !v.survives(StoreCall, name, key) {
		return ErrClosed
	}
	var fault Fault
	if s.queue.options.StoreFault != nil {
		fault = s.queue.options.StoreFault(v.at(StoreCall, name, key))
	}
	if fault.Latency > 0 {
		if err := sleep(ctx, fault.Latency); err != nil {
			return err
		}
		if !v.alive() { // another record may have crashed the invocation in the meantime
			return ErrClosed
		}
	}
	if fault.Err != nil && !fault.ReplyLost {
		return fault.Err
	}
	err := apply()
	if !v.survives(StoreReply, name, key) {
		return ErrClosed
	}
	if fault.Err != nil {
		return fault.Err
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
