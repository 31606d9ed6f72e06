package watermarktest

import (
	"fmt"
	"time"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

func leaseLimit(t reporter, s *suite) {
	for _, skew := range []time.Duration{0, time.Second, 1500 * time.Millisecond} {
		for _, fraction := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond} {
			what := fmt.Sprintf("skew %s, lease at a second and %s", skew, fraction)
			r := claimAt(newKey(), s.start)
			r.Lease, r.Skew = r.Lease.Add(fraction), skew
			s.mustClaim(t, what, r, none)
			for _, early := range []time.Duration{-skew - time.Millisecond, -skew, -time.Millisecond, 0} {
				s.wantHeld(t, what, r, r.Lease.Add(skew+early), none)
			}
			next := claimAt(r.Key, r.Lease.Add(skew+time.Millisecond))
			next.Skew = skew
			s.mustClaim(t, what, next, none)
			s.wantHeld(t, what+": after the takeover", next, next.Now, none)
		}
	}
}

// leaseMilliseconds claims within the millisecond in which lease and skew end. Parts of a millisecond do not count.
func leaseMilliseconds(t reporter, s *suite) {
	r := claimAt(newKey(), s.start)
	r.Lease = r.Lease.Add(200 * time.Microsecond)
	s.mustClaim(t, "absent shard", r, none)
	s.wantHeld(t, "later in the last millisecond", r, r.Lease.Add(skew+700*time.Microsecond), none)
	s.claim(t, "next millisecond", r.Key, r.Lease.Add(skew+800*time.Microsecond), none)
}

func leaseLong(t reporter, s *suite) {
	r := claimAt(newKey(), s.start)
	r.Lease, r.Expiry = s.start.Add(36*time.Hour), s.start.Add(48*time.Hour)
	s.mustClaim(t, "absent shard", r, none)
	s.wantHeld(t, "at the end of the lease", r, r.Lease.Add(skew), none)
	s.claim(t, "after the lease", r.Key, r.Lease.Add(skew+time.Millisecond), none)
}

// advanceAfterLease advances under a lease that has run out, while nobody took over.
func advanceAfterLease(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	a := advance(r, whole("5"))
	a.Now = r.Lease.Add(skew + time.Second)
	s.mustAdvance(t, "after the lease", a)
	s.claim(t, "takeover", r.Key, a.Now, whole("5"))
}

// leaseReleased has a shard free at once when it is given back, with any skew.
func leaseReleased(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	next := claimAt(r.Key, s.start)
	next.Skew, next.Expiry = 10*time.Minute, s.start.Add(2*expiryTime)
	s.mustClaim(t, "given back", next, whole("5"))
	s.wantHeld(t, "the next owner", next, s.start, whole("5"))
}

func expiryLimit(t reporter, s *suite) {
	for _, to := range []watermark.Position{whole("5"), none} {
		r := s.claim(t, "absent shard", newKey(), s.start, none)
		s.mustAdvance(t, "the owner", advance(r, whole("5")))
		a := release(r, to)
		a.Expiry = r.Expiry.Add(time.Minute)
		s.mustAdvance(t, "the owner", a)
		next := s.claim(t, "at the expiry", r.Key, a.Expiry, whole("5"))
		s.mustAdvance(t, "the next owner", release(next, none))
		s.claim(t, "a second after the expiry", r.Key, next.Expiry.Add(time.Second), none)
	}
}

// expirySeconds claims within the second in which the position expires. Parts of a second do not count.
func expirySeconds(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	a := release(r, whole("5"))
	a.Expiry = a.Expiry.Add(200 * time.Millisecond)
	s.mustAdvance(t, "the owner", a)
	next := s.claim(t, "later in the last second", r.Key, a.Expiry.Add(700*time.Millisecond), whole("5"))
	a = release(next, none)
	a.Expiry = next.Expiry
	s.mustAdvance(t, "the next owner", a)
	s.claim(t, "next second", r.Key, time.Unix(a.Expiry.Unix()+1, 0), none)
}

// expiryOfLiveClaim has the position expire while its owner still works: that ends the claim's position, not the claim.
func expiryOfLiveClaim(t reporter, s *suite) {
	r := claimAt(newKey(), s.start)
	r.Lease, r.Expiry = s.start.Add(20*time.Minute), s.start.Add(30*time.Minute)
	s.mustClaim(t, "absent shard", r, none)
	a := advance(r, whole("5"))
	a.Expiry = s.start.Add(10 * time.Minute)
	s.mustAdvance(t, "the owner", a)
	s.wantRefused(t, "before the end of the lease", r, r.Lease.Add(skew))
	s.claim(t, "after the lease", r.Key, r.Lease.Add(skew+time.Millisecond), none)
}

// expiryOfClaim has a position that lives on because a claim said so, and none that a claim cut short.
func expiryOfClaim(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	next := s.claim(t, "just before the expiry", r.Key, r.Expiry.Add(-time.Second), whole("5"))
	s.claim(t, "at the second expiry", r.Key, next.Expiry, whole("5"))
}

func expiryOfAdvance(t reporter, s *suite) {
	for _, released := range []bool{false, true} {
		r := s.claim(t, "absent shard", newKey(), s.start, none)
		a := advance(r, whole("5"))
		a.Release = released
		a.Now = r.Expiry.Add(time.Second)
		a.Expiry = a.Now.Add(expiryTime)
		s.wantLost(t, "a second after the expiry", a)
		a.Now = r.Expiry
		s.mustAdvance(t, "at the expiry", a)
		s.claim(t, "at the expiry", r.Key, r.Expiry, whole("5"))
	}
}

// expiryStartsAnew has nothing of a position left that has expired: it neither shows nor is in the way.
func expiryStartsAnew(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	r = s.claim(t, "after the expiry", r.Key, r.Expiry.Add(time.Second), none)
	s.mustAdvance(t, "the new owner", release(r, whole("3")))
	s.claim(t, "after the new owner", r.Key, r.Now, whole("3"))
}
