package watermarktest

import (
	"errors"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

func claimAbsent(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.wantHeld(t, "afterwards", r, s.start, none)
	s.claim(t, "another shard", newKey(), s.start, none)
}

func claimAbsentTogether(t reporter, s *suite) {
	for range 4 { // who looks first and writes then is lucky now and again
		s.claimTogether(t, newKey(), s.start, none)
	}
}

func claimLeaseTogether(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", advance(r, whole("5")))
	s.claimTogether(t, r.Key, r.Lease.Add(skew+time.Millisecond), whole("5"))
}

func claimExpiryTogether(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	s.claimTogether(t, r.Key, r.Expiry.Add(time.Second), none)
}

// claimTogether sends 64 claims of a free shard at once. One must win, and the others must be told of it.
func (s *suite) claimTogether(t reporter, key string, now time.Time, want watermark.Position) {
	t.Helper()
	var requests [64]watermark.ClaimRequest
	var errs [64]error
	for i := range requests {
		requests[i] = claimAt(key, now)
	}
	together(len(requests), func(i int) { _, errs[i] = s.store.Claim(s.ctx, requests[i]) })
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("claims %d and %d of 64 are both granted", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, idempotency.ErrInProgress):
			t.Fatalf("claim %d of 64: error is %v, want %v", i, err, idempotency.ErrInProgress)
		}
	}
	if winner < 0 {
		t.Fatalf("none of 64 claims is granted")
	}
	s.wantHeld(t, "afterwards", requests[winner], now, want)
}

// claimAgainstAdvance lets a late advance race with a takeover. Either it is stored, and the new owner is told, or it is
// refused: a store that looks first and writes then does neither now and again.
func claimAgainstAdvance(t reporter, s *suite) {
	for round := range 50 {
		late := s.claim(t, "absent shard", newKey(), s.start, none)
		next := claimAt(late.Key, late.Lease.Add(skew+time.Millisecond))
		a := advance(late, whole("5"))
		a.Now = next.Now
		var position watermark.Position
		var claimErr, advanceErr error
		together(2, func(i int) {
			if i == round%2 { // the one that waits last often starts first
				advanceErr = s.store.Advance(s.ctx, a)
			} else {
				position, claimErr = s.store.Claim(s.ctx, next)
			}
		})
		want := whole("5")
		if advanceErr != nil {
			want = none
		}
		switch {
		case claimErr != nil:
			t.Fatalf("takeover: %v", claimErr)
		case advanceErr != nil && !errors.Is(advanceErr, idempotency.ErrClaimLost):
			t.Fatalf("late advance: error is %v, want nil or %v", advanceErr, idempotency.ErrClaimLost)
		case position.Compare(want) != 0:
			t.Fatalf("the takeover's position is %q, want %q after an advance to %q whose error is %v",
				position, want, a.To, advanceErr)
		}
		s.wantHeld(t, "after the takeover", next, next.Now, want)
	}
}

// claimRefused has a claim with another lease and expiry refused, and sees that nothing is changed.
func claimRefused(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", advance(r, whole("5")))
	stranger := claimAt(r.Key, s.start)
	stranger.Lease, stranger.Expiry = r.Lease.Add(time.Minute), r.Expiry.Add(time.Minute)
	if _, err := s.store.Claim(s.ctx, stranger); !errors.Is(err, idempotency.ErrInProgress) {
		t.Fatalf("claim of a shard that is held: error is %v, want %v", err, idempotency.ErrInProgress)
	}
	s.wantHeld(t, "after the refused claim", r, r.Lease.Add(skew), whole("5"))
	s.wantLost(t, "the refused", advance(stranger, whole("6")))
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	s.claim(t, "after the owner's expiry", r.Key, r.Expiry.Add(time.Second), none)
}

// claimTwice sends a claim again, as an SDK does when the reply to the first is lost: on an absent shard, after a lease,
// after an expiry.
func claimTwice(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustClaim(t, "again", r, none)
	s.mustAdvance(t, "the owner", advance(r, whole("5")))

	r = s.claim(t, "after the lease", r.Key, r.Lease.Add(skew+time.Millisecond), whole("5"))
	s.mustClaim(t, "after the lease, again", r, whole("5"))
	s.mustAdvance(t, "the owner", release(r, whole("6")))

	r = s.claim(t, "after the expiry", r.Key, r.Expiry.Add(time.Second), none)
	s.mustClaim(t, "after the expiry, again", r, none)
	s.wantHeld(t, "afterwards", r, r.Now, none)
}

// claimTwiceReleased delivers a claim again when its work is over. Granted, it would keep the shard from others for an
// owner that is gone.
func claimTwiceReleased(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	if _, err := s.store.Claim(s.ctx, r); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Fatalf("claim that was given back, again: error is %v, want %v", err, idempotency.ErrClaimLost)
	}
	next := s.claim(t, "next owner", r.Key, s.start, whole("5"))
	if _, err := s.store.Claim(s.ctx, r); !errors.Is(err, idempotency.ErrInProgress) {
		t.Fatalf("claim of an earlier owner, again: error is %v, want %v", err, idempotency.ErrInProgress)
	}
	s.wantHeld(t, "afterwards", next, s.start, whole("5"))
}
