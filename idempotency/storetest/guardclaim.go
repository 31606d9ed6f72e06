package storetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func callersTogether(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	var running, runs, refused atomic.Int64
	together(64, func(int) {
		_, replayed, err := do(t.Context(), guardKey, "", func(context.Context) ([]byte, error) {
			runs.Add(1)
			if n := running.Add(1); n > 1 {
				t.Errorf("%d callers do the work at once", n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil, nil
		})
		switch {
		case errors.Is(err, idempotency.ErrInProgress), err == nil && replayed:
			refused.Add(1)
		case err != nil:
			t.Errorf("error is %v, want none or %v", err, idempotency.ErrInProgress)
		}
	})
	if runs.Load() != 1 || refused.Load() != 63 {
		t.Errorf("work ran %d times, and %d callers were told that it is another's, want 1 and 63", runs.Load(), refused.Load())
	}
}

func ownersFresh(t testing.TB, s *guardSuite) {
	for range 2 {
		do := s.guard(t, idempotency.Options{})
		for _, key := range []string{"a", "a", "b", "c", "c"} { // again after a failure, and another
			if _, _, err := do(t.Context(), key, "", s.failing); err == nil {
				t.Fatal("error of failing work is nil")
			}
		}
	}
	owners := s.store.called(claimMethod)
	for i, a := range owners {
		if len(a.owner) < 16 {
			t.Fatalf("owner %q has %d characters, want at least 16", a.owner, len(a.owner))
		}
		for _, b := range owners[:i] {
			same := 0
			for j := range min(len(a.owner), len(b.owner)) {
				if a.owner[j] == b.owner[j] {
					same++
				}
			}
			if 2*same > len(a.owner) {
				t.Fatalf("owner %q of one claim tells much of owner %q of another", b.owner, a.owner)
			}
		}
	}
}

func ownerKept(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	_, _, err := do(t.Context(), guardKey, "", s.failing)
	s.wantError(t, err, errWork)
	s.mustRun(t, t.Context(), do)
	s.wantMethods(t, claimMethod, releaseMethod, claimMethod, completeMethod)
	for i := 0; i < 4; i += 2 {
		claim, end := s.store.calls[i], s.store.calls[i+1]
		if claim.owner != end.owner || claim.key != end.key {
			t.Errorf("%s is of key %q and owner %q, its claim of %q and %q", end.method, end.key, end.owner, claim.key, claim.owner)
		}
	}
}

func claimReplyLost(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(claimMethod, 1, fault{after: errStore})
	s.mustFail(t, t.Context(), do, errStore)
	s.wantEntry(t, idempotency.Absent)

	s.store.fault = on(claimMethod, -1, fault{twice: true})
	s.mustRun(t, t.Context(), do)
	s.mustReplay(t, t.Context(), do)
}

func completionReplyLost(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(completeMethod, 1, fault{after: errStore})
	s.mustRun(t, t.Context(), do)
	s.mustReplay(t, t.Context(), do)
}

func releaseReplyLost(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(releaseMethod, 1, fault{after: errStore})
	_, _, err := do(t.Context(), guardKey, "", s.failing)
	s.wantError(t, err, errWork)
	s.mustRun(t, t.Context(), do)
}

// claimed returns the last claim that the store was asked for.
func (s *guardSuite) claimed(t testing.TB) idempotency.ClaimRequest {
	t.Helper()
	claims := s.store.called(claimMethod)
	if len(claims) == 0 {
		t.Fatal("the store was not asked for a claim")
	}
	return claims[len(claims)-1].claim
}

// wantLease checks that the last claim ends in d from now. It may end up to a millisecond earlier.
func (s *guardSuite) wantLease(t testing.TB, d time.Duration) {
	t.Helper()
	r := s.claimed(t)
	if !r.Now.Equal(time.Now()) {
		t.Errorf("claim is of %v, want %v", r.Now, time.Now())
	}
	if left := r.Lease.Sub(r.Now); left > d || left <= d-time.Millisecond {
		t.Errorf("lease ends in %v, want %v", left, d)
	}
}

func leaseFromDeadline(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	for _, d := range []time.Duration{3 * time.Second, 12345678 * time.Microsecond, 90 * time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		if _, _, err := do(ctx, guardKey, "", s.failing); !errors.Is(err, errWork) {
			t.Errorf("error is %v, want %v", err, errWork)
		}
		s.wantLease(t, d)
		cancel()
	}
}

func leaseWithoutDeadline(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.mustRun(t, context.WithoutCancel(t.Context()), do)
	s.wantLease(t, time.Minute)
	s.mustReplay(t, t.Context(), do)
}

func leaseByOption(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{Lease: 5 * time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s.mustRun(t, ctx, do) // longer than the invocation
	s.wantLease(t, 5*time.Minute)
}

// leaseContext looks at the context of the work: it ends before the lease, but not much.
func leaseContext(t testing.TB, s *guardSuite) {
	for _, test := range []struct {
		deadline, lease time.Duration // 0: none
	}{
		{0, 0}, {30 * time.Second, 0}, {0, 20 * time.Second}, {time.Hour, 20 * time.Second}, {time.Second, 0},
	} {
		ctx, cancel := context.WithoutCancel(t.Context()), context.CancelFunc(func() {})
		if test.deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, test.deadline)
		}
		do := s.guard(t, idempotency.Options{Lease: test.lease})
		_, _, err := do(ctx, guardKey, "", func(ctx context.Context) ([]byte, error) {
			r := s.claimed(t)
			end, ok := ctx.Deadline()
			if whole := r.Lease.Sub(r.Now); !ok || !end.Before(r.Lease) || r.Lease.Sub(end) > whole/5 {
				t.Errorf("deadline %v, option %v: lease ends in %v, and the work's context in %v (has a deadline: %t)",
					test.deadline, test.lease, whole, end.Sub(r.Now), ok)
			}
			return nil, errWork
		})
		s.wantError(t, err, errWork)
		cancel()
	}
}

// leaseNested does work within work. Its lease is until the end of the invocation too, which the context of the outer work
// is short of.
func leaseNested(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, _, err := do(ctx, "outer", "", func(ctx context.Context) ([]byte, error) {
		s.mustRun(t, ctx, do)
		s.wantLease(t, 30*time.Second)
		return nil, nil
	})
	if err != nil {
		t.Errorf("outer work: %v", err)
	}
}

// leaseTakeover finds a claim whose holder is gone, at both sides of its limit.
func leaseTakeover(t testing.TB, s *guardSuite) {
	for _, test := range []struct{ option, skew time.Duration }{
		{0, time.Second}, {-1, 0}, {5 * time.Second, 5 * time.Second},
	} {
		do := s.guard(t, idempotency.Options{Skew: test.option})
		s.claimElsewhere(t, "")
		time.Sleep(time.Minute + test.skew)
		s.mustFail(t, t.Context(), do, idempotency.ErrInProgress)
		time.Sleep(time.Millisecond)
		_, _, err := do(t.Context(), guardKey, "", s.failing)
		s.wantError(t, err, errWork)
		s.wantEntry(t, idempotency.Absent)
	}
}

func expiryAfterLease(t testing.TB, s *guardSuite) {
	for _, o := range []idempotency.Options{
		{}, {Expiry: time.Second}, {Expiry: 15 * time.Minute},
		{Expiry: 10 * time.Minute, Lease: 10 * time.Minute, Skew: time.Minute},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		_, _, err := s.guard(t, o)(ctx, guardKey, "", s.failing)
		s.wantError(t, err, errWork)
		r := s.claimed(t)
		if end := r.Lease.Add(r.Skew); !time.Unix(r.Expiry.Unix(), 0).After(end) {
			t.Errorf("expiry %v, lease %v: claim expires %v after its lease and skew have ended, want later",
				o.Expiry, o.Lease, r.Expiry.Sub(end))
		}
		cancel()
	}
}

func expiryOfCompletion(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{Expiry: 300 * time.Second})
	s.mustRun(t, t.Context(), do)
	time.Sleep(300 * time.Second)
	s.mustReplay(t, t.Context(), do)
	time.Sleep(time.Second)
	s.mustRun(t, t.Context(), do)
	time.Sleep(time.Second)
	s.mustReplay(t, t.Context(), do)
}

func keyVerbatim(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	for _, key := range []string{"a", "a#b", "a b", "注文", strings.Repeat("k", 1024-len(guardNamespace)-1)} {
		if _, _, err := do(t.Context(), key, "", s.work); err != nil {
			t.Fatal(err)
		}
		if got, want := s.claimed(t).Key, guardNamespace+"#"+key; got != want {
			t.Errorf("stored key is %q, want %q", got, want)
		}
	}
}

// keyLong uses keys that differ in their last byte, where a key that is cut is cut.
func keyLong(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	long := strings.Repeat("k", 5000)
	for _, key := range []string{long + "1", long + "2"} {
		for i := range 2 {
			_, replayed, err := do(t.Context(), key, "", s.work)
			if err != nil || replayed != (i == 1) {
				t.Fatalf("long key, call %d: replayed is %t, error is %v", i+1, replayed, err)
			}
		}
		if got := s.claimed(t).Key; len(got) > 1024 {
			t.Errorf("stored key has %d bytes, want no more than 1024", len(got))
		}
		// Who asks for the stored form of a key asks for another key.
		form := strings.TrimPrefix(s.claimed(t).Key, guardNamespace+"#")
		if _, replayed, err := do(t.Context(), form, "", s.work); replayed || err != nil {
			t.Errorf("key that is the stored form of another: replayed is %t, error is %v", replayed, err)
		}
	}
}

func keyHashed(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{HashKeys: true})
	s.mustRun(t, t.Context(), do)
	s.mustReplay(t, t.Context(), do)
	for _, c := range s.store.called(claimMethod) {
		if strings.Contains(c.key, guardKey) || !strings.HasPrefix(c.key, guardNamespace+"#") {
			t.Errorf("stored key is %q, want a hash in the namespace", c.key)
		}
	}
}
