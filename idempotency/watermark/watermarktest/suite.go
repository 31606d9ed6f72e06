package watermarktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// suite is one store under one check.
type suite struct {
	store watermark.Store
	ctx   context.Context
	start time.Time // a whole second, an hour ahead
}

const (
	leaseTime  = time.Minute
	expiryTime = time.Hour
	skew       = time.Second
)

func newSuite(t testing.TB, store watermark.Store) *suite {
	return &suite{store: store, ctx: t.Context(), start: time.Unix(time.Now().Add(time.Hour).Unix(), 0)}
}

func newKey() string   { return "#watermark#test#" + rand.Text() }
func newOwner() string { return rand.Text() }

// whole returns the position of a whole record.
func whole(sequence string) watermark.Position {
	return watermark.Position{Sequence: sequence, Sub: watermark.Whole}
}

var none watermark.Position

// claimAt returns a request for a shard with the usual lease, skew and expiry.
func claimAt(key string, now time.Time) watermark.ClaimRequest {
	return watermark.ClaimRequest{
		Key: key, Owner: newOwner(), Now: now, Lease: now.Add(leaseTime), Skew: skew, Expiry: now.Add(expiryTime),
	}
}

// advance returns a request that moves the position at the time of the claim.
func advance(r watermark.ClaimRequest, to watermark.Position) watermark.AdvanceRequest {
	return watermark.AdvanceRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, To: to, Expiry: r.Expiry}
}

// release is advance, and gives the shard back.
func release(r watermark.ClaimRequest, to watermark.Position) watermark.AdvanceRequest {
	a := advance(r, to)
	a.Release = true
	return a
}

func rewind(key string, now time.Time, to watermark.Position) watermark.RewindRequest {
	return watermark.RewindRequest{Key: key, Now: now, To: to, Expiry: now.Add(expiryTime)}
}

// mustClaim sends a claim that must be granted, at a position.
func (s *suite) mustClaim(t reporter, what string, r watermark.ClaimRequest, want watermark.Position) {
	t.Helper()
	got, err := s.store.Claim(s.ctx, r)
	if err != nil {
		t.Fatalf("%s: claim at %s: %v, want it granted", what, s.at(r.Now), err)
	}
	if got.Compare(want) != 0 {
		t.Fatalf("%s: claim at %s: position is %q, want %q", what, s.at(r.Now), got, want)
	}
}

// claim takes a shard that must be free at now.
func (s *suite) claim(
	t reporter, what, key string, now time.Time, want watermark.Position,
) watermark.ClaimRequest {
	t.Helper()
	r := claimAt(key, now)
	s.mustClaim(t, what, r, want)
	return r
}

// wantHeld checks that r has the shard at now, and the position that is reached: a claim that is sent again tells it.
func (s *suite) wantHeld(
	t reporter, what string, r watermark.ClaimRequest, now time.Time, want watermark.Position,
) {
	t.Helper()
	s.wantRefused(t, what, r, now)
	s.mustClaim(t, what+": the claim again", r, want)
}

// wantRefused checks what a stranger's claim at now is told of r, which has the shard.
func (s *suite) wantRefused(t reporter, what string, r watermark.ClaimRequest, now time.Time) {
	t.Helper()
	stranger := claimAt(r.Key, now)
	stranger.Skew = r.Skew
	before := time.Now()
	position, err := s.store.Claim(s.ctx, stranger)
	held, ok := errors.AsType[*idempotency.InProgressError](err)
	if !ok || !position.IsZero() {
		t.Fatalf("%s: claim at %s: position %q, error %v, want an *idempotency.InProgressError",
			what, s.at(now), position, err)
	}
	lease := time.UnixMilli(r.Lease.UnixMilli())
	if held.Key != r.Key || !held.Lease.Equal(lease) {
		t.Fatalf("%s: claim at %s: refused by the lease of %q until %s, want %q until %s",
			what, s.at(now), held.Key, s.at(held.Lease), r.Key, s.at(lease))
	}
	left := max(lease.Add(r.Skew+time.Millisecond).Sub(now), 0)
	if held.Free.Before(before.Add(left)) || held.Free.After(time.Now().Add(left)) {
		t.Fatalf("%s: claim at %s: free in %v, want %v", what, s.at(now), time.Until(held.Free), left)
	}
}

func (s *suite) mustAdvance(t reporter, what string, r watermark.AdvanceRequest) {
	t.Helper()
	if err := s.store.Advance(s.ctx, r); err != nil {
		t.Fatalf("%s: advance to %q: %v, want no error", what, r.To, err)
	}
}

func (s *suite) wantLost(t reporter, what string, r watermark.AdvanceRequest) {
	t.Helper()
	if err := s.store.Advance(s.ctx, r); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Fatalf("%s: advance to %q: error is %v, want %v", what, r.To, err, idempotency.ErrClaimLost)
	}
}

func (s *suite) mustRewind(t reporter, what string, r watermark.RewindRequest) {
	t.Helper()
	if err := s.store.Rewind(s.ctx, r); err != nil {
		t.Fatalf("%s: rewind to %q: %v, want no error", what, r.To, err)
	}
}

// at says a time as its distance from the start.
func (s *suite) at(now time.Time) string { return fmt.Sprintf("start+%s", now.Sub(s.start)) }

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
