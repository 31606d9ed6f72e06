package kinesis_test

import (
	"context"
	"sync/atomic"

	"github.com/oncekit/oncekit/idempotency"
)

// faults is a memory store whose requests fail as the functions say. A request whose function returns nil goes through;
// a nil function is none.
type faults struct {
	idempotency.MemoryStore
	claim, complete, release    func() error
	claimed                     func() error // after the claim was made: its reply is lost
	claims, completes, releases atomic.Int32
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (s *faults) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.claims.Add(1)
	if err := call(s.claim); err != nil {
		return idempotency.ClaimResult{}, err
	}
	result, err := s.MemoryStore.Claim(ctx, r)
	if err == nil {
		if err = call(s.claimed); err != nil {
			return idempotency.ClaimResult{}, err
		}
	}
	return result, err
}

func (s *faults) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	s.completes.Add(1)
	if err := call(s.complete); err != nil {
		return err
	}
	return s.MemoryStore.Complete(ctx, r)
}

func (s *faults) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	s.releases.Add(1)
	if err := call(s.release); err != nil {
		return err
	}
	return s.MemoryStore.Release(ctx, r)
}
