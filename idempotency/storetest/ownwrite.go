package storetest

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// claimTwice sends a claim again, as the SDK does when the reply to the first is lost: on an absent key, after a lease,
// and after an expiry.
func claimTwice(t testing.TB, s *suite) {
	key := newKey()
	first := s.claimAt(key, s.start)
	first.Fingerprint, first.CountAttempts = "f1", true
	s.claimTwice(t, "absent key", first, 1)

	takeover := s.claimAt(key, first.Lease.Add(skew+time.Millisecond))
	takeover.CountAttempts = true
	s.claimTwice(t, "after the lease", takeover, 2)

	s.mustComplete(t, completion(takeover, "1"))
	anew := s.claimAt(key, takeover.Expiry.Add(time.Second))
	anew.CountAttempts = true
	s.claimTwice(t, "after the expiry", anew, 1)
}

func (s *suite) claimTwice(t testing.TB, what string, r idempotency.ClaimRequest, attempts int) {
	t.Helper()
	s.mustClaim(t, r)
	want := inProgress(r)
	want.Attempts = attempts
	s.wantEntry(t, what+": entry of the claim that is sent again", s.mustClaim(t, r).Entry, want)
	s.wantHeld(t, what+": entry afterwards", r.Now, r.Key, want)
}

// claimTwiceAfterCompletion delivers a claim again when its work is done already. It must not be granted.
func claimTwiceAfterCompletion(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantEntry(t, "entry of the claim that is sent again", s.mustRefuse(t, r), completed(r, c))
	s.wantHeld(t, "entry afterwards", s.start, r.Key, completed(r, c))
}

func completeTwice(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantError(t, "complete again", s.store.Complete(s.ctx, c), nil)
	s.wantHeld(t, "entry afterwards", s.start, r.Key, completed(r, c))

	// The caller tried again with a new request. What is completed is not in progress, so it stays as it is.
	later := completion(r, `"done later"`)
	later.Now, later.Expiry = r.Now.Add(time.Second), r.Expiry.Add(time.Second)
	s.wantError(t, "complete again with another request", s.store.Complete(s.ctx, later), nil)
	s.wantHeld(t, "entry afterwards", s.start, r.Key, completed(r, c))
}

func releaseTwice(t testing.TB, s *suite) {
	for _, counted := range []bool{false, true} {
		r := s.claimAt(newKey(), s.start)
		r.CountAttempts = counted
		s.mustClaim(t, r)
		s.mustRelease(t, release(r))
		s.wantError(t, "release again", s.store.Release(s.ctx, release(r)), nil)
		s.mustClaim(t, s.claimAt(r.Key, s.start))
	}

	// Where a claim could not be decided, the release that follows may find that it was never written.
	absent := s.claimAt(newKey(), s.start)
	s.wantError(t, "release of an absent key", s.store.Release(s.ctx, release(absent)), nil)
	absent.CountAttempts = true
	s.wantError(t, "release of an absent key, attempts counted", s.store.Release(s.ctx, release(absent)), nil)
	s.wantFree(t, "absent key after a release", s.start, absent.Key)
}

// releaseTwiceAfterClaim delivers a release again when another owner holds the key: the claim is not its to release.
func releaseTwiceAfterClaim(t testing.TB, s *suite) {
	for _, counted := range []bool{false, true} {
		r := s.claimAt(newKey(), s.start)
		r.CountAttempts = counted
		s.mustClaim(t, r)
		s.mustRelease(t, release(r))
		next := s.claimAt(r.Key, s.start)
		want := inProgress(next)
		want.Attempts = s.mustClaim(t, next).Entry.Attempts
		s.wantError(t, "release again", s.store.Release(s.ctx, release(r)), idempotency.ErrClaimLost)
		s.wantHeld(t, "entry afterwards", s.start, r.Key, want)
	}
}

func renewTwice(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew := renewal(r)
	s.mustRenew(t, renew)
	s.wantError(t, "renew again", s.store.Renew(s.ctx, renew), nil)
	want := inProgress(r)
	want.Owner, want.Lease, want.Expiry = renew.NewOwner, renew.Lease, renew.Expiry
	s.wantHeld(t, "entry afterwards", s.start, r.Key, want)
}
