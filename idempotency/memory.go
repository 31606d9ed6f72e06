package idempotency

import (
	"container/heap"
	"context"
	"fmt"
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
// The store is bounded. Every claim drops up to two expired entries, so what is dead does not pile up; when the store is
// full of claims and completions that are still good, Claim returns ErrStoreFull. It forgets none of them to make room.
//
// A method whose context is done returns the context's error and changes nothing, as a store behind a network would.
type MemoryStore struct {
	options MemoryOptions

	mu      sync.Mutex
	items   map[string]*memoryItem
	seconds map[int64]*memorySecond // the same items by the second in which they expire
	queue   memoryQueue             // these seconds, the earliest in front
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

	it := s.items[r.Key]
	tookOver, attempts := false, 0
	switch {
	case it == nil:
		s.dropExpired(r.Now, r.Skew)
		if len(s.items) >= s.maxEntries() {
			return ClaimResult{}, ErrStoreFull
		}
	case it.entry.Status == InProgress && it.entry.Owner == r.Owner:
		return ClaimResult{Claimed: true, Entry: it.copy()}, nil // the request was sent twice
	case !it.free(r.Now, r.Skew):
		return ClaimResult{Entry: it.copy()}, nil
	default:
		tookOver = it.entry.Status == InProgress && it.entry.Lease.UnixMilli() > 0 // 0: it was released
		if !it.expired(r.Now) {
			attempts = it.entry.Attempts
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
	s.set(it, r.Key, e)
	return ClaimResult{Claimed: true, TookOver: tookOver, Entry: e}, nil
}

// Complete implements Store.
func (s *MemoryStore) Complete(ctx context.Context, r CompleteRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	it := s.items[r.Key]
	if it == nil || it.entry.Owner != r.Owner {
		return ErrClaimLost
	}
	if it.entry.Status == Completed {
		return nil
	}
	if it.expired(r.Now) {
		return ErrClaimLost
	}
	s.set(it, r.Key, Entry{
		Status:      Completed,
		Owner:       r.Owner,
		Fingerprint: it.entry.Fingerprint,
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

	it := s.items[r.Key]
	switch {
	case it == nil || it.released():
		return nil
	case it.entry.Owner != r.Owner:
		return ErrClaimLost
	case it.entry.Status == Completed:
		return ErrAlreadyCompleted
	case !r.CountAttempts:
		s.remove(it)
		return nil
	}
	e := it.entry
	e.Owner, e.Fingerprint, e.Lease = "", "", time.UnixMilli(0)
	if r.Unstarted && e.Attempts > 0 {
		e.Attempts--
	}
	s.set(it, r.Key, e)
	return nil
}

// Renew implements Store.
func (s *MemoryStore) Renew(ctx context.Context, r RenewRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	it := s.items[r.Key]
	if it == nil || it.entry.Owner != r.Owner && it.entry.Owner != r.NewOwner {
		return ErrClaimLost
	}
	e := it.entry
	switch {
	case e.Status == Completed:
		return ErrAlreadyCompleted
	case e.Owner == r.NewOwner:
		return nil
	case it.expired(r.Now):
		return ErrClaimLost
	}
	e.Owner, e.Lease, e.Expiry = r.NewOwner, wholeMilliseconds(r.Lease), wholeSeconds(r.Expiry)
	s.set(it, r.Key, e)
	return nil
}

// Get returns what is held for a key, as stored, the namespace included. What has expired but was not dropped yet is
// returned too: its Expiry tells. It is meant for tests.
func (s *MemoryStore) Get(key string) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[key]
	if it == nil {
		return Entry{}, false
	}
	return it.copy(), true
}

// Len returns how many keys are held, those included that have expired but were not dropped yet.
func (s *MemoryStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

func (s *MemoryStore) maxEntries() int {
	if s.options.MaxEntries == 0 {
		return defaultMaxEntries
	}
	return s.options.MaxEntries
}

// set writes an entry, for a new key if it is nil.
func (s *MemoryStore) set(it *memoryItem, key string, e Entry) {
	if s.items == nil {
		s.items, s.seconds = make(map[string]*memoryItem), make(map[int64]*memorySecond)
	}
	if it == nil {
		it = &memoryItem{key: key}
		s.items[key] = it
	}
	it.entry = e

	second := e.Expiry.Unix()
	if it.second != nil {
		if it.second.epoch == second {
			return
		}
		s.unqueue(it)
	}
	in := s.seconds[second]
	if in == nil {
		in = &memorySecond{epoch: second}
		s.seconds[second] = in
		heap.Push(&s.queue, in)
	}
	it.second, it.index = in, len(in.items)
	in.items = append(in.items, it)
}

func (s *MemoryStore) remove(it *memoryItem) {
	s.unqueue(it)
	delete(s.items, it.key)
}

// unqueue takes an item out of its second, and the second out of the queue if nothing is left in it.
func (s *MemoryStore) unqueue(it *memoryItem) {
	in, last := it.second, len(it.second.items)-1
	moved := in.items[last]
	in.items[it.index], moved.index = moved, it.index
	in.items[last] = nil
	in.items = in.items[:last]
	if last == 0 {
		heap.Remove(&s.queue, in.index)
		delete(s.seconds, in.epoch)
	}
}

// dropExpired drops up to two entries that have expired. Two for each one that is added are enough for the dead to
// become fewer, and no claim pays for a long sweep. An entry is dropped only if the caller could claim its key as well: a
// claim that expired may be live still for a caller with a wide skew.
func (s *MemoryStore) dropExpired(now time.Time, skew time.Duration) {
	for range 2 {
		if len(s.queue) == 0 || s.queue[0].epoch >= now.Unix() {
			return
		}
		items := s.queue[0].items
		it := items[len(items)-1]
		if !it.free(now, skew) {
			return
		}
		s.remove(it)
	}
}
