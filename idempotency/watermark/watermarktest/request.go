package watermarktest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// requestsWrong sends what the Validate methods refuse. A store must refuse it too, without a word on what is stored, and
// change nothing.
func requestsWrong(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", advance(r, whole("5")))
	check := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s: no error, want one", what)
		}
		wantUndecided(t, what, err)
		s.wantHeld(t, "after "+what, r, s.start, whole("5"))
	}
	claim := func(what string, change func(*watermark.ClaimRequest)) {
		t.Helper()
		// It would be granted, were it not wrong.
		wrong := claimAt(r.Key, r.Lease.Add(skew+time.Millisecond))
		change(&wrong)
		_, err := s.store.Claim(s.ctx, wrong)
		check(what, err)
	}
	claim("a claim without a key", func(r *watermark.ClaimRequest) { r.Key = "" })
	claim("a claim without an owner", func(r *watermark.ClaimRequest) { r.Owner = "" })
	claim("a claim without time", func(r *watermark.ClaimRequest) { r.Lease = r.Now })
	claim("a claim that expires with its lease", func(r *watermark.ClaimRequest) { r.Expiry = r.Lease.Add(r.Skew) })
	claim("a claim with negative skew", func(r *watermark.ClaimRequest) { r.Skew = -1 })

	for what, change := range map[string]func(*watermark.AdvanceRequest){
		"an advance without a key":           func(r *watermark.AdvanceRequest) { r.Key = "" },
		"an advance without an owner":        func(r *watermark.AdvanceRequest) { r.Owner = "" },
		"an advance that expires now":        func(r *watermark.AdvanceRequest) { r.Expiry = r.Now },
		"an advance to a negative place":     func(r *watermark.AdvanceRequest) { r.To.Sub = -1 },
		"an advance to no number":            func(r *watermark.AdvanceRequest) { r.To.Sequence = "12a" },
		"an advance to a place without one":  func(r *watermark.AdvanceRequest) { r.To.Sequence = "" },
		"an advance to a number of no shard": func(r *watermark.AdvanceRequest) { r.To.Sequence = strings.Repeat("1", 130) },
	} {
		wrong := release(r, watermark.Position{Sequence: "6", Sub: 1})
		change(&wrong)
		check(what, s.store.Advance(s.ctx, wrong))
	}
	for what, change := range map[string]func(*watermark.RewindRequest){
		"a rewind without a key":      func(r *watermark.RewindRequest) { r.Key = "" },
		"a rewind that expires now":   func(r *watermark.RewindRequest) { r.Expiry = r.Now },
		"a rewind to a negative one":  func(r *watermark.RewindRequest) { r.To = whole("-1") },
		"a rewind to a place too far": func(r *watermark.RewindRequest) { r.To.Sub++ },
	} {
		wrong := rewind(r.Key, s.start, whole("1"))
		change(&wrong)
		check(what, s.store.Rewind(s.ctx, wrong))
	}
}

// contextDone calls each method with a context that is done. It may have worked or not, but it must not say that the
// claim is lost: whoever called it then sends the request again.
func contextDone(t reporter, s *suite) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	r := claimAt(newKey(), s.start)
	_, err := s.store.Claim(ctx, r)
	wantUndecided(t, "claim", err)
	s.mustClaim(t, "claim again", r, none)
	wantUndecided(t, "advance", s.store.Advance(ctx, release(r, whole("5"))))
	s.mustAdvance(t, "again", release(r, whole("5")))
	wantUndecided(t, "rewind", s.store.Rewind(ctx, rewind(r.Key, s.start, whole("3"))))
	s.mustRewind(t, "again", rewind(r.Key, s.start, whole("3")))
	s.claim(t, "afterwards", r.Key, s.start, whole("3"))
}

// wantUndecided fails if the error is one by which a store says that it knows what happened.
func wantUndecided(t reporter, what string, err error) {
	t.Helper()
	for _, decided := range []error{idempotency.ErrInProgress, idempotency.ErrClaimLost, idempotency.ErrStoreUnusable} {
		if errors.Is(err, decided) {
			t.Fatalf("%s: error is %v, want none or one that is not %v", what, err, decided)
		}
	}
}

// keysOdd claims keys that a store might cut, fold or escape, all of them together, and finds each its own.
func keysOdd(t reporter, s *suite) {
	run := newKey() + "#"
	long := strings.Repeat("k", idempotency.MaxKeyLength-len(run)-1)
	keys := []string{
		"a", "A", "a ", " a", "a#", "#a", "a%23b", "a\u0000", "a\u0000b", "á", "a\u0301", "注文", `a"b`, "a'b", "a/b",
		"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks#shardId-000000000000",
		"arn:aws:kinesis:eu-west-1:123456789012:stream/clicks#shardId-000000000001",
		long + "1", long + "2",
	}
	claims := make([]watermark.ClaimRequest, len(keys))
	for i, key := range keys {
		claims[i] = s.claim(t, key, run+key, s.start, none)
		s.mustAdvance(t, key, advance(claims[i], watermark.Position{Sequence: "7", Sub: i}))
	}
	for i, r := range claims {
		s.wantHeld(t, keys[i], r, s.start, watermark.Position{Sequence: "7", Sub: i})
	}
}
