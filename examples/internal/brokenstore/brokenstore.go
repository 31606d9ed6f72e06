// Package brokenstore has stores that break their contract, to show that a simulation notices.
package brokenstore

import (
	"context"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Forgetful says that it has stored completions and has not.
type Forgetful struct{ idempotency.MemoryStore }

// Complete implements idempotency.Store.
func (*Forgetful) Complete(context.Context, idempotency.CompleteRequest) error { return nil }

// Generous takes no notice of leases.
type Generous struct{ idempotency.MemoryStore }

// Claim implements idempotency.Store.
func (s *Generous) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	lease := r.Lease
	if e, held := s.Get(r.Key); held && e.Status == idempotency.InProgress {
		r.Now = e.Lease.Add(r.Skew + time.Second)
		r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
	}
	result, err := s.MemoryStore.Claim(ctx, r)
	result.Entry.Lease = lease
	return result, err
}

// Hasty says of every key that it is done.
type Hasty struct{ idempotency.MemoryStore }

// Claim implements idempotency.Store.
func (*Hasty) Claim(context.Context, idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return idempotency.ClaimResult{Entry: idempotency.Entry{Status: idempotency.Completed}}, nil
}
