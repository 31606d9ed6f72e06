package storetest

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// plant writes an entry of another tool under a new key.
func (s *suite) plant(t testing.TB, e idempotency.Entry) string {
	t.Helper()
	key := newKey()
	s.store.(Planter).Plant(t, key, e)
	return key
}

// wantNotMine completes, releases and renews what is another tool's.
func (s *suite) wantNotMine(t testing.TB, key string, e idempotency.Entry) {
	t.Helper()
	r := s.claimAt(key, s.start)
	s.wantError(t, "complete", s.store.Complete(s.ctx, completion(r, "1")), idempotency.ErrClaimLost)
	s.wantError(t, "release", s.store.Release(s.ctx, release(r)), idempotency.ErrClaimLost)
	r.CountAttempts = true
	s.wantError(t, "release with attempts counted", s.store.Release(s.ctx, release(r)), idempotency.ErrClaimLost)
	s.wantError(t, "renew", s.store.Renew(s.ctx, renewal(r)), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after all were refused", s.start, key, e)
}

func plantedWithoutOwner(t testing.TB, s *suite) {
	e := idempotency.Entry{
		Status: idempotency.InProgress, Lease: s.start.Add(1500 * time.Millisecond), Expiry: s.start.Add(expiryTime),
	}
	key := s.plant(t, e)
	s.wantNotMine(t, key, e)
	s.wantHeld(t, "entry without owner at the end of its lease", e.Lease.Add(skew), key, e)
	if got := s.wantFree(t, "after the lease", e.Lease.Add(skew+time.Millisecond), key); !got.TookOver {
		t.Error("claim after the lease of an entry without owner: TookOver is false")
	}
}

func plantedWithoutLease(t testing.TB, s *suite) {
	e := idempotency.Entry{Status: idempotency.InProgress, Expiry: s.start.Add(expiryTime)}
	key := s.plant(t, e)
	s.wantNotMine(t, key, e)
	s.wantHeld(t, "entry without lease before it expires", e.Expiry.Add(999*time.Millisecond), key, e)
	s.wantFree(t, "after the expiry", e.Expiry.Add(time.Second), key)
}

// plantedLeaseZero has a row that is in progress with a lease of 0, which every tool reads as free.
func plantedLeaseZero(t testing.TB, s *suite) {
	key := s.plant(t, idempotency.Entry{
		Status: idempotency.InProgress, Lease: time.UnixMilli(0), Expiry: s.start.Add(expiryTime), Attempts: 2,
	})
	s.wantError(t, "release of what is released", s.store.Release(s.ctx, release(s.claimAt(key, s.start))), nil)
	s.countedClaim(t, key, s.start, 3)
}

// plantedExpiryBeforeLease has a live claim that expired, as a tool may write it that adds its expiry to another clock.
func plantedExpiryBeforeLease(t testing.TB, s *suite) {
	e := idempotency.Entry{
		Status: idempotency.InProgress, Owner: newOwner(), Lease: s.start.Add(10 * time.Minute), Expiry: s.start,
	}
	key := s.plant(t, e)
	s.wantHeld(t, "live entry after its expiry", s.start.Add(5*time.Minute), key, e)
	s.wantHeld(t, "live entry at the end of its lease", e.Lease.Add(skew), key, e)
	s.wantFree(t, "after the lease", e.Lease.Add(skew+time.Millisecond), key)
}

// plantedRemains has what a tool leaves that takes a key over with an update: the result of the completion before.
func plantedRemains(t testing.TB, s *suite) {
	key := s.plant(t, idempotency.Entry{
		Status: idempotency.InProgress, Fingerprint: "f1", Data: []byte(`"old"`),
		Lease: s.start.Add(-time.Minute), Expiry: s.start.Add(expiryTime),
	})
	s.wantFree(t, "entry in progress with the remains of another", s.start, key)
}

func plantedCompleted(t testing.TB, s *suite) {
	e := idempotency.Entry{Status: idempotency.Completed, Expiry: s.start.Add(expiryTime), Data: []byte(`{"total":1}`)}
	key := s.plant(t, e)
	s.wantNotMine(t, key, e)
	s.wantHeld(t, "completion before it expires", e.Expiry, key, e)
	s.wantFree(t, "after the expiry", e.Expiry.Add(time.Second), key)
}
