package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// The methods of a store, as faultyStore counts them.
const (
	claimMethod    = "claim"
	completeMethod = "complete"
	releaseMethod  = "release"
	renewMethod    = "renew"
)

// faultyStore is a store in memory that fails on demand and keeps a list of its calls.
type faultyStore struct {
	*idempotency.MemoryStore

	// fault says what goes wrong with the nth call of a method, from 1. Nil means nothing ever.
	fault func(method string, n int) fault

	dropResults bool // and say so

	mu    sync.Mutex
	calls []call
}

// fault is what goes wrong with a call.
type fault struct {
	before error         // the request is lost: nothing happens, and this is the answer
	delay  time.Duration // how long the reply takes
	after  error         // the reply is lost: it has happened, and this is the answer
	twice  bool          // the request arrives twice, and the second reply is the answer
}

// call is one call of a method.
type call struct {
	method, key, owner string
	claim              idempotency.ClaimRequest // where it is one
	limited            bool                     // whether the context has a deadline
	left               time.Duration            // until then
	done               error                    // what the context says at the time of the call
}

func (s *faultyStore) pass(ctx context.Context, c call, apply func() error) error {
	c.done = ctx.Err()
	if deadline, ok := ctx.Deadline(); ok {
		c.limited, c.left = true, time.Until(deadline)
	}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	var f fault
	if s.fault != nil {
		f = s.fault(c.method, s.count(c.method))
	}
	s.mu.Unlock()

	if f.before != nil {
		return f.before
	}
	err := apply()
	if f.twice {
		err = apply()
	}
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.after != nil {
		return f.after
	}
	return err
}

func (s *faultyStore) count(method string) int {
	n := 0
	for _, c := range s.calls {
		if c.method == method {
			n++
		}
	}
	return n
}

// methods returns the methods that were called, in order.
func (s *faultyStore) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var methods []string
	for _, c := range s.calls {
		methods = append(methods, c.method)
	}
	return methods
}

// called returns the calls of a method.
func (s *faultyStore) called(method string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []call
	for _, c := range s.calls {
		if c.method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

func (s *faultyStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (result idempotency.ClaimResult, err error) {
	err = s.pass(ctx, call{method: claimMethod, key: r.Key, owner: r.Owner, claim: r}, func() (err error) {
		result, err = s.MemoryStore.Claim(ctx, r)
		return err
	})
	if err != nil {
		return idempotency.ClaimResult{}, err
	}
	return result, nil
}

func (s *faultyStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return s.pass(ctx, call{method: completeMethod, key: r.Key, owner: r.Owner}, func() error {
		if !s.dropResults {
			return s.MemoryStore.Complete(ctx, r)
		}
		r.Data = nil
		return errors.Join(s.MemoryStore.Complete(ctx, r), idempotency.ErrResultNotStored)
	})
}

func (s *faultyStore) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return s.pass(ctx, call{method: releaseMethod, key: r.Key, owner: r.Owner}, func() error {
		return s.MemoryStore.Release(ctx, r)
	})
}

func (s *faultyStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.pass(ctx, call{method: renewMethod, key: r.Key, owner: r.Owner}, func() error {
		return s.MemoryStore.Renew(ctx, r)
	})
}
