package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func leaseLimit(t testing.TB, s *suite) {
	for _, skew := range []time.Duration{0, time.Second, 1500 * time.Millisecond} {
		for _, fraction := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond} {
			what := fmt.Sprintf("skew %s, lease at a second and %s", skew, fraction)
			r := s.claimAt(newKey(), s.start)
			r.Lease = r.Lease.Add(fraction)
			r.Skew = skew
			s.mustClaim(t, r)
			for _, early := range []time.Duration{-skew - time.Millisecond, -skew, -time.Millisecond, 0} {
				next := s.claimAt(r.Key, r.Lease.Add(skew+early))
				next.Skew = skew
				s.wantEntry(t, what+": entry before the limit", s.mustRefuse(t, next), inProgress(r))
			}
			next := s.claimAt(r.Key, r.Lease.Add(skew+time.Millisecond))
			next.Skew = skew
			if got := s.mustClaim(t, next); !got.TookOver {
				t.Errorf("%s: claim one millisecond after the limit: TookOver is false", what)
			}
			s.wantHeld(t, what+": entry after the takeover", next.Now, next.Key, inProgress(next))
		}
	}
}

// leaseMilliseconds claims within the millisecond in which lease and skew end. Parts of a millisecond do not count.
func leaseMilliseconds(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Lease = r.Lease.Add(200 * time.Microsecond)
	s.mustClaim(t, r)
	s.wantHeld(t, "entry later in the last millisecond", r.Lease.Add(skew+700*time.Microsecond), r.Key, inProgress(r))
	s.wantFree(t, "next millisecond", r.Lease.Add(skew+800*time.Microsecond), r.Key)
}

// leaseUnits has a lease and an expiry on different sides of now. Who compares one with the seconds or milliseconds of the
// other decides wrongly.
func leaseUnits(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start.Add(-time.Minute))
	r.Lease = s.start.Add(-30 * time.Second)
	s.mustClaim(t, r)
	if got := s.wantFree(t, "lease 30 s ago, expiry in an hour", s.start, r.Key); !got.TookOver {
		t.Error("claim 30 s after the lease: TookOver is false")
	}

	r = s.claimAt(newKey(), s.start.Add(-time.Minute))
	r.Lease = s.start.Add(30 * time.Second)
	s.mustClaim(t, r)
	s.wantHeld(t, "lease in 30 s", s.start, r.Key, inProgress(r))
}

func leaseLong(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Lease, r.Expiry = s.start.Add(36*time.Hour), s.start.Add(48*time.Hour)
	s.mustClaim(t, r)
	s.wantHeld(t, "entry at the end of the lease", r.Lease.Add(skew), r.Key, inProgress(r))
	s.wantFree(t, "after the lease", r.Lease.Add(skew+time.Millisecond), r.Key)
}

func leaseRenewed(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew := renewal(r)
	s.mustRenew(t, renew)
	want := inProgress(r)
	want.Owner, want.Lease, want.Expiry = renew.NewOwner, renew.Lease, renew.Expiry
	s.wantHeld(t, "entry after the first lease", r.Lease.Add(skew+time.Millisecond), r.Key, want)
	s.wantHeld(t, "entry at the end of the renewed lease", renew.Lease.Add(skew), r.Key, want)
	s.wantFree(t, "after the renewed lease", renew.Lease.Add(skew+time.Millisecond), r.Key)
}

// completeAfterLease completes, and renews, a claim whose lease has run out but that nobody took over.
func completeAfterLease(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"late"`)
	c.Now = r.Lease.Add(10 * time.Second)
	s.mustComplete(t, c)
	s.wantHeld(t, "entry after the late completion", c.Now, r.Key, completed(r, c))

	r = s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew := renewal(r)
	renew.Now = r.Lease.Add(10 * time.Second)
	s.mustRenew(t, renew)

	r = s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	late := release(r)
	late.Now = r.Lease.Add(10 * time.Second)
	s.mustRelease(t, late)
	s.wantFree(t, "after the late release", late.Now, r.Key)
}

func expiryLimit(t testing.TB, s *suite) {
	for _, skew := range []time.Duration{0, time.Second} {
		what := fmt.Sprintf("skew %s", skew)
		r := s.claimAt(newKey(), s.start)
		s.mustClaim(t, r)
		c := completion(r, `"done"`)
		c.Expiry = s.start.Add(2 * time.Hour) // not that of the claim
		s.mustComplete(t, c)
		for _, early := range []time.Duration{-time.Hour, -time.Second, -time.Millisecond, 0, 999 * time.Millisecond} {
			next := s.claimAt(r.Key, c.Expiry.Add(early))
			next.Skew = skew
			s.wantEntry(t, what+": entry before the limit", s.mustRefuse(t, next), completed(r, c))
		}
		next := s.claimAt(r.Key, c.Expiry.Add(time.Second))
		next.Skew = skew
		if got := s.mustClaim(t, next); got.TookOver {
			t.Errorf("%s: claim of an expired completion: TookOver is true", what)
		}
		s.wantHeld(t, what+": entry after the new claim", next.Now, next.Key, inProgress(next))
	}
}

// expirySeconds claims within the second in which a completion expires. Parts of a second do not count.
func expirySeconds(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"done"`)
	c.Expiry = c.Expiry.Add(300 * time.Millisecond)
	s.mustComplete(t, c)
	s.wantHeld(t, "entry later in the last second", r.Expiry.Add(900*time.Millisecond), r.Key, completed(r, c))
	s.wantFree(t, "next second", r.Expiry.Add(time.Second), r.Key)
}

// expiryNotDeleted has two deliveries after an expiry, of which the first finds the key free and the second does not.
func expiryNotDeleted(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"done"`)
	c.Expiry = s.start.Add(300 * time.Second)
	s.mustComplete(t, c)
	at301 := s.claimAt(r.Key, s.start.Add(301*time.Second))
	s.mustClaim(t, at301)
	s.wantHeld(t, "entry at 302", s.start.Add(302*time.Second), r.Key, inProgress(at301))
}

// expiryOfLiveClaim has a claimant whose skew is so wide that the claim in its way is past its expiry, and is live still.
func expiryOfLiveClaim(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Skew, r.Expiry = 0, r.Lease.Add(2*time.Second)
	s.mustClaim(t, r)
	next := s.claimAt(r.Key, r.Expiry.Add(5*time.Second))
	next.Skew = 10 * time.Second
	s.wantEntry(t, "entry within a skew of 10 s", s.mustRefuse(t, next), inProgress(r))
	next.Now = r.Lease.Add(next.Skew + time.Millisecond)
	if got := s.mustClaim(t, next); !got.TookOver {
		t.Error("claim after the skew: TookOver is false")
	}
}

func expiryComplete(t testing.TB, s *suite) {
	for _, late := range []time.Duration{0, 999 * time.Millisecond} {
		r := s.claimAt(newKey(), s.start)
		s.mustClaim(t, r)
		c := completion(r, `"late"`)
		c.Now, c.Expiry = r.Expiry.Add(late), r.Expiry.Add(time.Hour)
		s.mustComplete(t, c)
		s.wantHeld(t, "entry after the late completion", c.Now, r.Key, completed(r, c))
	}

	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"too late"`)
	c.Now, c.Expiry = r.Expiry.Add(time.Second), r.Expiry.Add(time.Hour)
	s.wantError(t, "complete of an expired claim", s.store.Complete(s.ctx, c), idempotency.ErrClaimLost)
	s.wantFree(t, "after the refused completion", c.Now, r.Key)
}

func expiryRenew(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew := renewal(r)
	renew.Now = r.Expiry.Add(999 * time.Millisecond)
	renew.Lease, renew.Expiry = renew.Now.Add(leaseTime), r.Expiry.Add(expiryTime)
	s.mustRenew(t, renew)
	want := inProgress(r)
	want.Owner, want.Lease, want.Expiry = renew.NewOwner, time.UnixMilli(renew.Lease.UnixMilli()), renew.Expiry
	s.wantHeld(t, "entry after the late renewal", renew.Now, r.Key, want)

	r = s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	renew = renewal(r)
	renew.Now = r.Expiry.Add(time.Second)
	renew.Lease, renew.Expiry = renew.Now.Add(leaseTime), r.Expiry.Add(expiryTime)
	s.wantError(t, "renew of an expired claim", s.store.Renew(s.ctx, renew), idempotency.ErrClaimLost)
	s.wantFree(t, "after the refused renewal", renew.Now, r.Key)
}

// takeoverStartsAnew claims without a fingerprint what was claimed with one, so that what is left of it shows.
func takeoverStartsAnew(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Fingerprint = "f1"
	s.mustClaim(t, r)
	s.wantFree(t, "after a lease", r.Lease.Add(skew+time.Millisecond), r.Key)

	r = s.claimAt(newKey(), s.start)
	r.Fingerprint = "f1"
	s.mustClaim(t, r)
	s.mustComplete(t, completion(r, `{"total":1}`))
	next := s.claimAt(r.Key, r.Expiry.Add(time.Second))
	s.mustClaim(t, next)
	s.wantHeld(t, "entry after a completion expired", next.Now, r.Key, inProgress(next))
	none := completion(next, "")
	s.mustComplete(t, none)
	s.wantHeld(t, "entry after a completion without a result", next.Now, r.Key, completed(next, none))

	for _, counted := range []bool{false, true} {
		r = s.claimAt(newKey(), s.start)
		r.Fingerprint, r.CountAttempts = "f1", counted
		s.mustClaim(t, r)
		s.mustRelease(t, release(r))
		next = s.claimAt(r.Key, s.start)
		want := inProgress(next)
		want.Attempts = s.mustClaim(t, next).Entry.Attempts
		s.wantHeld(t, "entry of the claim after a release", s.start, r.Key, want)
	}
}
