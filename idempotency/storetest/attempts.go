package storetest

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// countedClaim claims a key with its attempts counted, and checks the count in the answer and in the store.
func (s *suite) countedClaim(t testing.TB, key string, now time.Time, attempts int) idempotency.ClaimRequest {
	t.Helper()
	r := s.claimAt(key, now)
	r.CountAttempts = true
	want := inProgress(r)
	want.Attempts = attempts
	s.wantEntry(t, "entry of a counted claim", s.mustClaim(t, r).Entry, want)
	s.wantHeld(t, "entry after a counted claim", now, key, want)
	return r
}

func attemptsNotCounted(t testing.TB, s *suite) {
	key := newKey()
	r := s.claimAt(key, s.start)
	s.mustClaim(t, r)
	s.mustRelease(t, release(r))
	s.wantFree(t, "after a release", s.start, key)
	s.wantFree(t, "after a lease", s.start.Add(leaseTime+skew+time.Millisecond), key)
}

func attemptsCounted(t testing.TB, s *suite) {
	key := newKey()
	s.mustRelease(t, release(s.countedClaim(t, key, s.start, 1)))
	s.mustRelease(t, release(s.countedClaim(t, key, s.start.Add(time.Second), 2)))
	crashed := s.countedClaim(t, key, s.start.Add(2*time.Second), 3)
	s.mustRelease(t, release(s.countedClaim(t, key, crashed.Lease.Add(skew+time.Millisecond), 4)))
	s.countedClaim(t, newKey(), s.start, 1)
}

// attemptsTakenBack releases claims under which the handler never started, one of them twice.
func attemptsTakenBack(t testing.TB, s *suite) {
	key := newKey()
	unstarted := release(s.countedClaim(t, key, s.start, 1))
	unstarted.Unstarted = true
	s.mustRelease(t, unstarted)
	s.mustRelease(t, release(s.countedClaim(t, key, s.start, 1)))

	unstarted = release(s.countedClaim(t, key, s.start, 2))
	unstarted.Unstarted = true
	s.mustRelease(t, unstarted)
	s.mustRelease(t, unstarted)
	s.countedClaim(t, key, s.start, 2)
}

// attemptsKeptWithoutOwner releases a counted claim: the row stays, and is nobody's.
func attemptsKeptWithoutOwner(t testing.TB, s *suite) {
	r := s.countedClaim(t, newKey(), s.start, 1)
	s.mustRelease(t, release(r))
	s.wantError(t, "complete after release", s.store.Complete(s.ctx, completion(r, "1")), idempotency.ErrClaimLost)
	s.wantError(t, "renew after release", s.store.Renew(s.ctx, renewal(r)), idempotency.ErrClaimLost)
	other := release(r)
	other.Owner = newOwner()
	s.wantError(t, "release of what is released", s.store.Release(s.ctx, other), nil)

	next := s.claimAt(r.Key, r.Expiry)
	next.CountAttempts = true
	got := s.mustClaim(t, next)
	if got.TookOver {
		t.Error("claim after release: TookOver is true")
	}
	if got.Entry.Attempts != 2 {
		t.Errorf("claim in the second in which the released entry expires: attempts is %d, want 2", got.Entry.Attempts)
	}
}

func attemptsReset(t testing.TB, s *suite) {
	key := newKey()
	s.mustRelease(t, release(s.countedClaim(t, key, s.start, 1)))
	r := s.countedClaim(t, key, s.start, 2)
	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantHeld(t, "entry after completion", s.start, key, completed(r, c))
	s.countedClaim(t, key, c.Expiry.Add(time.Second), 1)
}
