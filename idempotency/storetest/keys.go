package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// keysOdd claims keys that a store might cut, fold, escape or quote, all of them together, and finds each its own. A key is
// UTF-8 text of up to idempotency.MaxKeyLength bytes: longer and empty ones do not reach a store.
func keysOdd(t testing.TB, s *suite) {
	run := newKey() + "#"
	long := strings.Repeat("k", idempotency.MaxKeyLength-len(run)-1)
	keys := []string{
		"a", "A", "a ", " a", "a\t", "a\n", "á", "a\u0301", "a#", "a##", "#a", "a#b", "a:b", "a/b", "a/../b", "a\\b", "a%23b",
		"a+b",
		`a"b`, "a'b", "a`b", "a;b--", "{a}", "{a}b", "a*", "a?", "[a]", ":a", "$a", "a\u0000", "a\u0000b", "a\u00a0", "a\u200b",
		"注文", "🧾", "İ", "i", "ß", "SS", "null", "0", "00", "1e0", "1", `{"a":1}`,
		"arn:aws:sqs:eu-west-1:123456789012:orders.fifo|group|dedup",
		long + "1", long + "2", strings.Repeat("注", len(long)/3) + "1", strings.Repeat("注", len(long)/3) + "2",
	}
	claims := make([]idempotency.ClaimRequest, len(keys))
	for i, key := range keys {
		claims[i] = s.claimAt(run+key, s.start)
		s.mustClaim(t, claims[i])
	}
	for i, r := range claims {
		s.wantHeld(t, "entry of "+keys[i], s.start, r.Key, inProgress(r))
		if i%2 == 0 {
			s.mustComplete(t, completion(r, `"done"`))
		} else {
			s.mustRelease(t, release(r))
		}
	}
	for i, r := range claims {
		if i%2 == 0 {
			s.wantHeld(t, "entry of "+keys[i], s.start, r.Key, completed(r, completion(r, `"done"`)))
		} else {
			s.wantFree(t, keys[i], s.start, r.Key)
		}
	}
}

// contextDone calls each method with a context that is done. It may have worked or not, but it must not say that the
// claim is lost or the store full: whoever called it then sends the request again.
func contextDone(t testing.TB, s *suite) {
	done, cancel := context.WithCancel(s.ctx)
	cancel()
	passed, cancelPassed := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancelPassed()

	for _, ctx := range []context.Context{done, passed} {
		r := s.claimAt(newKey(), s.start)
		got, err := s.store.Claim(ctx, r)
		s.wantUndecided(t, "claim", err)
		if err == nil && !got.Claimed {
			t.Fatalf("claim of an absent key: refused by %s", s.describe(got.Entry))
		}
		s.mustClaim(t, r)

		renew := renewal(r)
		s.wantUndecided(t, "renew", s.store.Renew(ctx, renew))
		s.mustRenew(t, renew)

		rel := release(r)
		rel.Owner = renew.NewOwner
		s.wantUndecided(t, "release", s.store.Release(ctx, rel))
		s.mustRelease(t, rel)

		r = s.claimAt(r.Key, s.start)
		s.mustClaim(t, r)
		c := completion(r, `"done"`)
		s.wantUndecided(t, "complete", s.store.Complete(ctx, c))
		s.mustComplete(t, c)
		s.wantHeld(t, "entry after completion", s.start, r.Key, completed(r, c))
	}
}

// wantUndecided fails if the error is one by which a store says that it knows what happened.
func (s *suite) wantUndecided(t testing.TB, what string, err error) {
	t.Helper()
	for _, decided := range []error{
		idempotency.ErrInProgress, idempotency.ErrClaimLost, idempotency.ErrAlreadyCompleted, idempotency.ErrResultNotStored,
		idempotency.ErrStoreFull, idempotency.ErrStoreUnusable, idempotency.ErrLeaseTooShort,
	} {
		if errors.Is(err, decided) {
			t.Fatalf("%s with a context that is done: error is %v, want nil or an error of the context", what, err)
		}
	}
}
