package watermark

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// MemoryStore is a Store in the memory of one process, for tests and local runs. Its zero value is an empty store. It
// starts no goroutines, and has no clock of its own: time is what the requests say.
//
// It has an entry for each shard. What has expired is dropped when the next shard comes.
//
// A method whose context is done returns the context's error and changes nothing, as a store behind a network would.
type MemoryStore struct {
	mu      sync.Mutex
	entries map[string]entry
}

// entry is what is known of one shard.
type entry struct {
	position Position
	owner    string // the last one; empty: none since the position was set by hand
	lease    int64  // epoch milliseconds, 0: nobody has the shard
	expiry   int64  // epoch seconds
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// Claim implements Store.
func (s *MemoryStore) Claim(ctx context.Context, r ClaimRequest) (Position, error) {
	if err := firstError(ctx, r); err != nil {
		return Position{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e, known := s.entries[r.Key]
	switch {
	case e.owner == r.Owner && e.lease == 0:
		return Position{}, idempotency.ErrClaimLost
	case e.owner == r.Owner:
		return e.position, nil // the request was sent twice
	case !e.free(r.Now, r.Skew):
		return Position{}, r.InProgress(time.UnixMilli(e.lease))
	case known && e.expired(r.Now):
		e.position = Position{}
	case !known:
		s.dropExpired(r.Now, r.Skew)
	}
	e.owner, e.lease, e.expiry = r.Owner, r.Lease.UnixMilli(), r.Expiry.Unix()
	s.set(r.Key, e)
	return e.position, nil
}

// Advance implements Store.
func (s *MemoryStore) Advance(ctx context.Context, r AdvanceRequest) error {
	if err := firstError(ctx, r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e := s.entries[r.Key]
	switch order := r.To.Compare(e.position); {
	case e.owner != r.Owner:
		return idempotency.ErrClaimLost
	case e.lease == 0 && order <= 0:
		return nil // the request was sent twice
	case e.lease == 0, e.expired(r.Now):
		return idempotency.ErrClaimLost
	case order > 0:
		e.position = r.To
	case order < 0 && !r.To.IsZero() && !r.Release:
		return nil
	}
	e.expiry = r.Expiry.Unix()
	if r.Release {
		e.lease = 0
	}
	s.set(r.Key, e)
	return nil
}

// Rewind implements Store.
func (s *MemoryStore) Rewind(ctx context.Context, r RewindRequest) error {
	if err := firstError(ctx, r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(r.Key, entry{position: r.To, expiry: r.Expiry.Unix()})
	return nil
}

// firstError returns why a call does nothing: its context is done, or its request is wrong.
func firstError(ctx context.Context, r interface{ Validate() error }) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.Validate()
}

func (s *MemoryStore) set(key string, e entry) {
	if s.entries == nil {
		s.entries = make(map[string]entry)
	}
	s.entries[key] = e
}

func (s *MemoryStore) dropExpired(now time.Time, skew time.Duration) {
	maps.DeleteFunc(s.entries, func(_ string, e entry) bool { return e.expired(now) && e.free(now, skew) })
}

// free reports whether a claim may have the shard.
func (e *entry) free(now time.Time, skew time.Duration) bool {
	return e.lease+skew.Milliseconds() < now.UnixMilli()
}

func (e *entry) expired(now time.Time) bool { return e.expiry < now.Unix() }
