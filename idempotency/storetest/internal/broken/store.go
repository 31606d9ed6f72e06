package broken

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Store is a store in memory that breaks the rule that its fault names, and no other.
type Store struct {
	fault Fault
	limit int // entries, 0: no limit
	calls atomic.Int64

	mu      sync.Mutex
	entries map[string]idempotency.Entry
	former  map[string]bool // owners that were renewed to another
}

// NewStore returns an empty store with a fault.
func NewStore(fault Fault) *Store {
	return &Store{fault: fault, entries: make(map[string]idempotency.Entry), former: make(map[string]bool)}
}

// Plant implements storetest.Planter.
func (s *Store) Plant(_ testing.TB, key string, e idempotency.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[key] = e
}

// Limited implements storetest.Limiter.
func (s *Store) Limited(_ testing.TB, maxEntries int) idempotency.Store {
	limited := NewStore(s.fault)
	limited.limit = maxEntries
	return limited
}

func (s *Store) is(f Fault) bool { return s.fault == f }

// pause lets another call in between a look and the write that relies on it, where that is the fault.
func (s *Store) pause(f Fault) {
	if !s.is(f) {
		return
	}
	s.mu.Unlock()
	for calls, i := s.calls.Load(), 0; s.calls.Load() == calls && i < 20_000; i++ {
		runtime.Gosched()
	}
	s.mu.Lock()
}

// lock begins a call.
func (s *Store) lock() {
	s.calls.Add(1)
	s.mu.Lock()
}

func (s *Store) free(e idempotency.Entry, r idempotency.ClaimRequest) bool {
	if e.Owner == "" && s.is(OwnerlessIsFree) {
		return true
	}
	noLease := e.Lease.IsZero() || s.is(ZeroLeaseIsNone) && e.Lease.UnixMilli() == 0
	switch {
	case e.Status == idempotency.Completed:
		return s.expired(e, r.Now) && !s.is(ExpiryUnheeded)
	case noLease && s.is(NoLeaseForEver):
		return false
	case noLease && !s.is(NoLeaseIsOver) || s.is(LeaseUnheeded):
		return s.expired(e, r.Now)
	case s.is(ExpiryEndsClaim) && s.expired(e, r.Now):
		return true
	}
	limit, now := e.Lease.UnixMilli()+r.Skew.Milliseconds(), r.Now.UnixMilli()
	switch s.fault {
	case LeaseEarly:
		return limit <= now
	case LeaseLate:
		return limit+1 < now
	case LeaseNoSkew:
		return e.Lease.UnixMilli() < now
	case LeaseUnits:
		return limit < r.Now.Unix()
	case LeaseExact:
		return e.Lease.Add(r.Skew).Before(r.Now)
	}
	return limit < now
}

func (s *Store) expired(e idempotency.Entry, now time.Time) bool {
	switch s.fault {
	case ExpiryEarly:
		return e.Expiry.Unix() <= now.Unix()
	case ExpiryLate:
		return e.Expiry.Unix()+1 < now.Unix()
	case ExpiryExact:
		return e.Expiry.Before(now)
	}
	return e.Expiry.Unix() < now.Unix()
}

func (s *Store) key(key string) string {
	switch s.fault {
	case KeysCut:
		return key[:min(len(key), 1000)]
	case KeysFolded:
		return strings.ToLower(key)
	case KeysTrimmed:
		return strings.TrimSpace(key)
	case KeysCString:
		key, _, _ = strings.Cut(key, "\x00")
	}
	return key
}

func (s *Store) contextError(ctx context.Context) error {
	if s.is(ContextLost) {
		return idempotency.ErrClaimLost
	}
	return ctx.Err()
}
