package storetest

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func completeOwner(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)

	other := completion(r, `"other"`)
	other.Owner = newOwner()
	s.wantError(t, "complete by another owner", s.store.Complete(s.ctx, other), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, inProgress(r))

	own := completion(r, `"own"`)
	s.mustComplete(t, own)
	s.wantHeld(t, "entry after completion", s.start, r.Key, completed(r, own))

	s.wantError(t, "complete by another owner of what is completed", s.store.Complete(s.ctx, other),
		idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, own))
}

func completeLost(t testing.TB, s *suite) {
	absent := s.claimAt(newKey(), s.start)
	s.wantError(t, "complete of an absent key", s.store.Complete(s.ctx, completion(absent, "1")), idempotency.ErrClaimLost)
	s.wantFree(t, "absent key after a refused completion", s.start, absent.Key)

	released := s.claimAt(newKey(), s.start)
	s.mustClaim(t, released)
	s.mustRelease(t, release(released))
	s.wantError(t, "complete after release", s.store.Complete(s.ctx, completion(released, "1")), idempotency.ErrClaimLost)
	s.wantFree(t, "released key after a refused completion", s.start, released.Key)

	late := s.claimAt(newKey(), s.start)
	s.mustClaim(t, late)
	next := s.claimAt(late.Key, late.Lease.Add(skew+time.Millisecond))
	s.mustClaim(t, next)
	c := completion(late, `"late"`)
	c.Now, c.Expiry = next.Now, next.Expiry
	s.wantError(t, "complete after takeover", s.store.Complete(s.ctx, c), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", next.Now, next.Key, inProgress(next))

	done := completion(next, `"next"`)
	s.mustComplete(t, done)
	s.wantError(t, "complete after takeover and completion", s.store.Complete(s.ctx, c), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", next.Now, next.Key, completed(next, done))
}

func releaseOwner(t testing.TB, s *suite) {
	for _, counted := range []bool{false, true} {
		r := s.claimAt(newKey(), s.start)
		r.CountAttempts = counted
		own := inProgress(r)
		own.Attempts = s.mustClaim(t, r).Entry.Attempts

		other := release(r)
		other.Owner = newOwner()
		s.wantError(t, "release by another owner", s.store.Release(s.ctx, other), idempotency.ErrClaimLost)
		s.wantHeld(t, "entry after it was refused", s.start, r.Key, own)

		s.mustRelease(t, release(r))
		again := s.claimAt(r.Key, s.start)
		if got := s.mustClaim(t, again); got.TookOver {
			t.Errorf("claim after release (attempts counted: %t): TookOver is true", counted)
		}
	}
}

func releaseCompleted(t testing.TB, s *suite) {
	for _, counted := range []bool{false, true} {
		r := s.claimAt(newKey(), s.start)
		r.CountAttempts = counted
		s.mustClaim(t, r)
		c := completion(r, `"done"`)
		s.mustComplete(t, c)

		s.wantError(t, "release of what is completed", s.store.Release(s.ctx, release(r)), idempotency.ErrAlreadyCompleted)
		s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, c))

		other := release(r)
		other.Owner = newOwner()
		s.wantError(t, "release of what another owner completed", s.store.Release(s.ctx, other), idempotency.ErrClaimLost)
		s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, c))
	}
}

func renewOwner(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.CountAttempts = true
	own := inProgress(r)
	own.Attempts = s.mustClaim(t, r).Entry.Attempts

	other := renewal(r)
	other.Owner = newOwner()
	s.wantError(t, "renew by another owner", s.store.Renew(s.ctx, other), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, own)

	renew := renewal(r)
	s.mustRenew(t, renew)
	own.Owner, own.Lease, own.Expiry = renew.NewOwner, renew.Lease, renew.Expiry
	s.wantHeld(t, "entry after renewal", s.start, r.Key, own)

	s.wantError(t, "complete by the owner before the renewal", s.store.Complete(s.ctx, completion(r, "1")),
		idempotency.ErrClaimLost)
	s.wantError(t, "release by the owner before the renewal", s.store.Release(s.ctx, release(r)),
		idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after both were refused", s.start, r.Key, own)

	r.Owner = renew.NewOwner
	s.mustComplete(t, completion(r, `"renewed"`))
}

func renewLost(t testing.TB, s *suite) {
	absent := s.claimAt(newKey(), s.start)
	s.wantError(t, "renew of an absent key", s.store.Renew(s.ctx, renewal(absent)), idempotency.ErrClaimLost)
	s.wantFree(t, "absent key after a refused renewal", s.start, absent.Key)

	released := s.claimAt(newKey(), s.start)
	s.mustClaim(t, released)
	s.mustRelease(t, release(released))
	s.wantError(t, "renew after release", s.store.Renew(s.ctx, renewal(released)), idempotency.ErrClaimLost)
	s.wantFree(t, "released key after a refused renewal", s.start, released.Key)

	late := s.claimAt(newKey(), s.start)
	s.mustClaim(t, late)
	next := s.claimAt(late.Key, late.Lease.Add(skew+time.Millisecond))
	s.mustClaim(t, next)
	renew := renewal(late)
	renew.Now, renew.Lease, renew.Expiry = next.Now, next.Lease.Add(time.Minute), next.Expiry.Add(time.Minute)
	s.wantError(t, "renew after takeover", s.store.Renew(s.ctx, renew), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", next.Now, next.Key, inProgress(next))
}

func renewCompleted(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew := renewal(r)
	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantError(t, "renew of what is completed", s.store.Renew(s.ctx, renew), idempotency.ErrAlreadyCompleted)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, c))

	// The reply to a renewal is lost, the caller completes under the new owner, and then the first request arrives again.
	r = s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew = renewal(r)
	s.mustRenew(t, renew)
	c = completion(r, `"done"`)
	c.Owner = renew.NewOwner
	s.mustComplete(t, c)
	s.wantError(t, "renew of what its new owner completed", s.store.Renew(s.ctx, renew), idempotency.ErrAlreadyCompleted)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, c))

	other := renewal(r)
	other.Owner = newOwner()
	s.wantError(t, "renew of what another owner completed", s.store.Renew(s.ctx, other), idempotency.ErrClaimLost)
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, completed(r, c))
}

// renewDelayed sends a renewal again after a later one: it must not bring the earlier lease back. The owner that it names
// is nobody's any more.
func renewDelayed(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	first := renewal(r)
	s.mustRenew(t, first)
	second := first
	second.Owner, second.NewOwner = first.NewOwner, newOwner()
	second.Lease, second.Expiry = first.Lease.Add(time.Minute), first.Expiry.Add(time.Minute)
	s.mustRenew(t, second)

	s.wantError(t, "renewal that arrives after a later one", s.store.Renew(s.ctx, first), idempotency.ErrClaimLost)
	want := inProgress(r)
	want.Owner, want.Lease, want.Expiry = second.NewOwner, second.Lease, second.Expiry
	s.wantHeld(t, "entry after it was refused", s.start, r.Key, want)
}

func claimRefusedChangesNothing(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Fingerprint, r.CountAttempts = "f1", true
	own := inProgress(r)
	own.Attempts = s.mustClaim(t, r).Entry.Attempts

	other := s.claimAt(r.Key, s.start.Add(time.Second))
	other.Fingerprint, other.CountAttempts = "f2", true
	s.wantEntry(t, "entry of the refused claim", s.mustRefuse(t, other), own)
	s.wantHeld(t, "entry after the refused claim", s.start, r.Key, own)

	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantEntry(t, "entry of the claim refused by a completion", s.mustRefuse(t, other), completed(r, c))
	s.wantHeld(t, "entry after the claim refused by a completion", s.start, r.Key, completed(r, c))
}
