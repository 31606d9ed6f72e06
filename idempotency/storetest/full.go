package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// full fills a store of three entries with two claims and a completion.
func (s *suite) full(t testing.TB) (live, other, done idempotency.ClaimRequest, c idempotency.CompleteRequest) {
	t.Helper()
	s.store = s.store.(Limiter).Limited(t, 3)
	live, other, done = s.claimAt(newKey(), s.start), s.claimAt(newKey(), s.start), s.claimAt(newKey(), s.start)
	for _, r := range []idempotency.ClaimRequest{live, done, other} {
		s.mustClaim(t, r)
	}
	c = completion(done, `"done"`)
	s.mustComplete(t, c)
	return live, other, done, c
}

func (s *suite) wantFull(t testing.TB, now time.Time) {
	t.Helper()
	for range 10 {
		got, err := s.store.Claim(s.ctx, s.claimAt(newKey(), now))
		if !errors.Is(err, idempotency.ErrStoreFull) || got.Claimed {
			t.Fatalf("claim in a full store at %s: claimed is %t, error is %v, want false, %v",
				s.at(now), got.Claimed, err, idempotency.ErrStoreFull)
		}
	}
}

func fullRefuses(t testing.TB, s *suite) {
	live, other, done, c := s.full(t)
	s.wantFull(t, s.start)
	s.wantFull(t, live.Lease.Add(skew))
	s.wantHeld(t, "live claim in a full store", s.start, live.Key, inProgress(live))
	s.wantHeld(t, "another live claim in a full store", s.start, other.Key, inProgress(other))
	s.wantHeld(t, "completion in a full store", s.start, done.Key, completed(done, c))
	s.wantFull(t, s.start)
}

func fullServes(t testing.TB, s *suite) {
	live, other, done, c := s.full(t)
	s.wantFull(t, s.start)
	s.wantEntry(t, "claim sent again", s.mustClaim(t, live).Entry, inProgress(live))
	renew := renewal(live)
	s.mustRenew(t, renew)
	live.Owner = renew.NewOwner
	s.mustComplete(t, completion(live, `"live"`))
	s.wantFree(t, "claim after its lease", other.Lease.Add(skew+time.Millisecond), other.Key)
	s.wantHeld(t, "completion", s.start, done.Key, completed(done, c))
}

func fullHasRoomAgain(t testing.TB, s *suite) {
	live, _, done, c := s.full(t)
	s.mustRelease(t, release(live))
	s.wantFree(t, "new key after a release", s.start, newKey())
	s.wantFull(t, s.start)
	s.wantFull(t, c.Expiry)
	s.wantHeld(t, "completion at its expiry", c.Expiry, done.Key, completed(done, c))
	for range 3 { // two claims and a completion expired together
		s.wantFree(t, "new key after an expiry", c.Expiry.Add(time.Second), newKey())
	}
	s.wantFull(t, c.Expiry.Add(time.Second))
}
