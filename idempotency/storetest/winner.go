package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func claimAbsent(t testing.TB, s *suite) {
	first := s.claimAt(newKey(), s.start)
	first.Fingerprint = "f1"
	if got := s.mustClaim(t, first); got.TookOver {
		t.Error("claim of an absent key: TookOver is true")
	}
	s.wantHeld(t, "entry after the claim", s.start, first.Key, inProgress(first))
	if got := s.wantFree(t, "another key", s.start, newKey()); got.TookOver {
		t.Error("claim of another absent key: TookOver is true")
	}
}

func claimAbsentTogether(t testing.TB, s *suite) {
	s.claimTogether(t, newKey(), s.start)
}

func claimLeaseTogether(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	s.claimTogether(t, r.Key, r.Lease.Add(skew+time.Millisecond))
}

func claimExpiryTogether(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	s.mustComplete(t, completion(r, `"old"`))
	s.claimTogether(t, r.Key, r.Expiry.Add(time.Second))
}

// claimTogether sends 64 claims of a free key at once. One must win, and the others must be told of it.
func (s *suite) claimTogether(t testing.TB, key string, now time.Time) {
	t.Helper()
	var requests [64]idempotency.ClaimRequest
	var results [64]idempotency.ClaimResult
	var errs [64]error
	for i := range requests {
		requests[i] = s.claimAt(key, now)
	}
	together(len(requests), func(i int) { results[i], errs[i] = s.store.Claim(s.ctx, requests[i]) })

	winner := -1
	for i, r := range results {
		if errs[i] != nil {
			t.Fatalf("claim %d of 64: %v", i, errs[i])
		}
		if r.Claimed && winner >= 0 {
			t.Fatalf("claims %d and %d of 64 are both granted", winner, i)
		}
		if r.Claimed {
			winner = i
		}
	}
	if winner < 0 {
		t.Fatalf("none of 64 claims is granted")
	}
	want := inProgress(requests[winner])
	for i, r := range results {
		if i != winner {
			s.wantEntry(t, "entry of a refused claim", r.Entry, want)
		}
	}
	s.wantHeld(t, "entry afterwards", now, key, want)
}

// claimAgainstComplete lets a late completion race with a takeover. One of the two is too late, and is told so: a store
// that looks first and writes then grants both now and again.
func claimAgainstComplete(t testing.TB, s *suite) {
	for round := range 50 {
		late := s.claimAt(newKey(), s.start)
		s.mustClaim(t, late)
		next := s.claimAt(late.Key, late.Lease.Add(skew+time.Millisecond))
		c := completion(late, `"late"`)
		c.Now, c.Expiry = next.Now, next.Expiry

		var claimed idempotency.ClaimResult
		var claimErr, completeErr error
		together(2, func(i int) {
			if i == round%2 { // the one that waits last often starts first
				completeErr = s.store.Complete(s.ctx, c)
			} else {
				claimed, claimErr = s.store.Claim(s.ctx, next)
			}
		})
		switch {
		case claimErr != nil:
			t.Fatalf("claim: %v", claimErr)
		case completeErr == nil && claimed.Claimed:
			t.Fatalf("a claim was completed and taken over, both")
		case completeErr == nil:
			s.wantEntry(t, "entry of the claim that came after the completion", claimed.Entry, completed(late, c))
		case !errors.Is(completeErr, idempotency.ErrClaimLost):
			t.Fatalf("complete: error is %v, want nil or %v", completeErr, idempotency.ErrClaimLost)
		case !claimed.Claimed:
			t.Fatalf("a claim was neither completed nor taken over")
		default:
			s.wantHeld(t, "entry after the takeover", next.Now, next.Key, inProgress(next))
		}
	}
}

// claimAgainstRenew lets a late renewal race with a takeover.
func claimAgainstRenew(t testing.TB, s *suite) {
	for round := range 50 {
		late := s.claimAt(newKey(), s.start)
		s.mustClaim(t, late)
		next := s.claimAt(late.Key, late.Lease.Add(skew+time.Millisecond))
		renew := renewal(late)
		renew.Now, renew.Lease, renew.Expiry = next.Now, next.Lease, next.Expiry

		var claimed idempotency.ClaimResult
		var claimErr, renewErr error
		together(2, func(i int) {
			if i == round%2 { // the one that waits last often starts first
				renewErr = s.store.Renew(s.ctx, renew)
			} else {
				claimed, claimErr = s.store.Claim(s.ctx, next)
			}
		})
		switch {
		case claimErr != nil:
			t.Fatalf("claim: %v", claimErr)
		case renewErr != nil && !errors.Is(renewErr, idempotency.ErrClaimLost):
			t.Fatalf("renew: error is %v, want nil or %v", renewErr, idempotency.ErrClaimLost)
		case (renewErr == nil) == claimed.Claimed:
			t.Fatalf("renewed is %t and taken over is %t, want one of the two", renewErr == nil, claimed.Claimed)
		}
		want := inProgress(next)
		if renewErr == nil {
			want.Owner = renew.NewOwner
		}
		s.wantHeld(t, "entry afterwards", next.Now, next.Key, want)
	}
}

// together calls f n times at once and waits for all calls to return.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
