package sourcetest

import (
	"context"
	"sync/atomic"

	"github.com/oncekit/oncekit/idempotency"
)

// Faults is a memory store whose requests fail as the functions say. A request whose function returns nil goes through;
// a nil function is none.
type Faults struct {
	idempotency.MemoryStore
	OnClaim, OnComplete, OnRelease func() error
	OnClaimed                      func() error // after the claim was made: its reply is lost

	Claims, Completes, Releases atomic.Int32 // requests
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

// Claim is that of idempotency.Store.
func (s *Faults) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.Claims.Add(1)
	if err := call(s.OnClaim); err != nil {
		return idempotency.ClaimResult{}, err
	}
	result, err := s.MemoryStore.Claim(ctx, r)
	if err == nil {
		if err = call(s.OnClaimed); err != nil {
			return idempotency.ClaimResult{}, err
		}
	}
	return result, err
}

// Complete is that of idempotency.Store.
func (s *Faults) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	s.Completes.Add(1)
	if err := call(s.OnComplete); err != nil {
		return err
	}
	return s.MemoryStore.Complete(ctx, r)
}

// Release is that of idempotency.Store.
func (s *Faults) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	s.Releases.Add(1)
	if err := call(s.OnRelease); err != nil {
		return err
	}
	return s.MemoryStore.Release(ctx, r)
}
