package idempotency

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

const defaultMaxEntries = 100_000

// MemoryOptions configures a MemoryStore. Its zero value is the default.
type MemoryOptions struct {
	// MaxEntries is how many keys the store holds at most. 0 means 100,000.
	MaxEntries int
}

// MemoryStore is a Store in the memory of one process, for tests, for local runs, and for work that only this process
// does. Its zero value is an empty store with the default options. It starts no goroutines.
//
// It has no clock of its own: time is what the requests say, so whoever sets the guard's clock has set the store's.
//
// The store is bounded. What has expired is dropped now and then; when the store is full of claims and completions that
// are still good, Claim returns ErrStoreFull. It forgets none of them to make room.
//
// A method whose context is done returns the context's error and changes nothing, as a store behind a network would.
type MemoryStore struct {
	options MemoryOptions

	mu      sync.Mutex
	entries map[string]Entry
	sweepAt int   // how many entries are enough to look for expired ones
	next    int64 // none expires before the end of this second
}

// NewMemoryStore returns an empty store. A wrong option is reported by Validate, which New calls.
func NewMemoryStore(optFns ...func(*MemoryOptions)) *MemoryStore {
	s := &MemoryStore{}
	for _, fn := range optFns {
		if fn != nil {
			fn(&s.options)
		}
	}
	return s
}

// Validate reports an option that is out of range.
func (s *MemoryStore) Validate() error {
	if s.options.MaxEntries < 0 {
		return fmt.Errorf("idempotency: MemoryOptions.MaxEntries is %d, want 0 (for %d) or more",
			s.options.MaxEntries, defaultMaxEntries)
	}
	return nil
}

// Claim implements Store.
func (s *MemoryStore) Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error) {
	if err := ctx.Err(); err != nil {
		return ClaimResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	old, held := s.entries[r.Key]
	tookOver, attempts := false, 0
	switch {
	case !held:
		if !s.makeRoom(r.Now, r.Skew) {
			return ClaimResult{}, ErrStoreFull
		}
	case old.Status == InProgress && old.Owner == r.Owner:
		return ClaimResult{Claimed: true, Entry: cloned(old)}, nil // the request was sent twice
	case !free(&old, r.Now, r.Skew):
		return ClaimResult{Entry: cloned(old)}, nil
	default:
		tookOver = old.Status == InProgress && old.Lease.UnixMilli() > 0 // 0: it was released
		if !expired(&old, r.Now) {
			attempts = old.Attempts
		}
	}
	if r.CountAttempts {
		attempts++
	}
	e := Entry{
		Status:      InProgress,
		Owner:       r.Owner,
		Fingerprint: r.Fingerprint,
		Lease:       wholeMilliseconds(r.Lease),
		Expiry:      wholeSeconds(r.Expiry),
		Attempts:    attempts,
	}
	s.set(r.Key, e)
	return ClaimResult{Claimed: true, TookOver: tookOver, Entry: e}, nil
}

// Complete implements Store.
func (s *MemoryStore) Complete(ctx context.Context, r CompleteRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e, held := s.entries[r.Key]
	switch {
	case !held || e.Owner != r.Owner:
		return ErrClaimLost
	case e.Status == Completed:
		return nil
	case expired(&e, r.Now):
		return ErrClaimLost
	}
	s.set(r.Key, Entry{
		Status:      Completed,
		Owner:       r.Owner,
		Fingerprint: e.Fingerprint,
		Expiry:      wholeSeconds(r.Expiry),
		Data:        slices.Clone(r.Data),
	})
	return nil
}

// Release implements Store.
func (s *MemoryStore) Release(ctx context.Context, r ReleaseRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e, held := s.entries[r.Key]
	switch {
	case !held || released(&e):
		return nil
	case e.Owner != r.Owner:
		return ErrClaimLost
	case e.Status == Completed:
		return ErrAlreadyCompleted
	case !r.CountAttempts:
		delete(s.entries, r.Key)
		return nil
	}
	e.Owner, e.Fingerprint, e.Lease = "", "", time.UnixMilli(0)
	if r.Unstarted && e.Attempts > 0 {
		e.Attempts--
	}
	s.set(r.Key, e)
	return nil
}

// Renew implements Store.
func (s *MemoryStore) Renew(ctx context.Context, r RenewRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e, held := s.entries[r.Key]
	switch {
	case !held || e.Owner != r.Owner && e.Owner != r.NewOwner:
		return ErrClaimLost
	case e.Status == Completed:
		return ErrAlreadyCompleted
	case e.Owner == r.NewOwner:
		return nil
	case expired(&e, r.Now):
		return ErrClaimLost
	}
	e.Owner, e.Lease, e.Expiry = r.NewOwner, wholeMilliseconds(r.Lease), wholeSeconds(r.Expiry)
	s.set(r.Key, e)
	return nil
}

// Get returns what is held for a key, as stored, the namespace included. What has expired but was not dropped yet is
// returned too: its Expiry tells. It is meant for tests.
func (s *MemoryStore) Get(key string) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, held := s.entries[key]
	return cloned(e), held
}

// Len returns how many keys are held, those included that have expired but were not dropped yet.
func (s *MemoryStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

func (s *MemoryStore) set(key string, e Entry) {
	if s.entries == nil {
		s.entries = make(map[string]Entry)
	}
	s.entries[key] = e
	s.next = min(s.next, e.Expiry.Unix())
}

// makeRoom reports whether there is room for another entry. Where there is none, or where there are twice as many as
// the last sweep left, it sweeps: then a claim pays for looking at two entries or so. A store that is full of what is
// still good is not swept again before something in it can have expired.
func (s *MemoryStore) makeRoom(now time.Time, skew time.Duration) bool {
	limit := cmp.Or(s.options.MaxEntries, defaultMaxEntries)
	if n := len(s.entries); n >= min(limit, max(s.sweepAt, 64)) && s.next < now.Unix() {
		s.next = math.MaxInt64
		maps.DeleteFunc(s.entries, func(_ string, e Entry) bool {
			// A lease that ends after the expiry is against the contract, but whoever holds it is not dropped for it.
			if expired(&e, now) && free(&e, now, skew) {
				return true
			}
			s.next = min(s.next, e.Expiry.Unix())
			return false
		})
		s.sweepAt = 2 * len(s.entries)
	}
	return len(s.entries) < limit
}

// free reports whether a claim at now may have the entry's key.
func free(e *Entry, now time.Time, skew time.Duration) bool {
	if e.Status == InProgress && !e.Lease.IsZero() {
		return e.Lease.UnixMilli()+skew.Milliseconds() < now.UnixMilli()
	}
	return expired(e, now)
}

func expired(e *Entry, now time.Time) bool { return e.Expiry.Unix() < now.Unix() }

// released reports whether the entry is kept only for its count of attempts.
func released(e *Entry) bool {
	return e.Status == InProgress && e.Owner == "" && e.Lease.Equal(time.UnixMilli(0))
}

func cloned(e Entry) Entry {
	e.Data = slices.Clone(e.Data)
	return e
}

func wholeMilliseconds(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }
func wholeSeconds(t time.Time) time.Time      { return time.Unix(t.Unix(), 0) }
