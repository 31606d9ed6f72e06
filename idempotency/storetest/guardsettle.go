package storetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// wantSettled checks the context of the last call of a method: it is not done, and ends in at least and at most.
func (s *guardSuite) wantSettled(t testing.TB, method string, least, most time.Duration) {
	t.Helper()
	calls := s.store.called(method)
	if len(calls) == 0 {
		t.Fatalf("there was no %s", method)
	}
	c := calls[len(calls)-1]
	if c.done != nil || !c.limited || c.left < least || c.left > most {
		t.Errorf("context of %s: error is %v, has a deadline: %t, in %v, want one in %v to %v",
			method, c.done, c.limited, c.left, least, most)
	}
}

func detachedCompletion(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	_, _, err := do(ctx, guardKey, "", func(ctx context.Context) ([]byte, error) {
		cancel()
		return s.work(ctx)
	})
	if err != nil {
		t.Fatalf("error is %v, want none", err)
	}
	s.wantSettled(t, completeMethod, time.Second, 5*time.Second)
	s.mustReplay(t, t.Context(), do)
}

func detachedRelease(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	_, _, err := do(ctx, guardKey, "", func(ctx context.Context) ([]byte, error) {
		cancel()
		return nil, context.Cause(ctx)
	})
	s.wantError(t, err, context.Canceled)
	s.wantSettled(t, releaseMethod, time.Second, 5*time.Second)
	s.wantEntry(t, idempotency.Absent)
}

// detachedLate has work that ends after the deadline. It has two seconds to complete or release its claim.
func detachedLate(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, _, err := do(ctx, guardKey, "", s.lasting(15*time.Second)); err != nil {
		t.Fatalf("error is %v, want none", err)
	}
	s.wantSettled(t, completeMethod, 2*time.Second, 5*time.Second)
	s.mustReplay(t, t.Context(), do)
}

func detachedBounded(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, _, err := do(ctx, "first", "", s.lasting(time.Second)); err != nil {
		t.Fatalf("error is %v, want none", err)
	}
	s.wantSettled(t, completeMethod, time.Second, 59*time.Second)

	// A store that does not answer is given up.
	s.store.fault = on(completeMethod, -1, fault{delay: time.Hour, after: errStore})
	start := time.Now()
	_, _, _ = do(context.WithoutCancel(t.Context()), guardKey, "", s.work) // its error is another check's matter
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("call with a store that does not answer took %v, want at most 10s", took)
	}
}

// detachedAfterWork looks at the store while work goes on that does not heed the end of its context.
func detachedAfterWork(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error)
	go func() {
		_, _, err := do(ctx, guardKey, "", s.lasting(30*time.Second))
		ended <- err
	}()
	time.Sleep(20 * time.Second)
	synctest.Wait()
	during := s.store.methods()
	err := <-ended
	if diff := cmp.Diff([]string{claimMethod}, during); diff != "" {
		t.Errorf("requests while the work goes on (-want +got):\n%s", diff)
	}
	if err != nil {
		t.Errorf("error is %v, want none", err)
	}
}

func closedUndecided(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(claimMethod, -1, fault{before: errStore})
	s.mustFail(t, t.Context(), do, errStore)
	s.wantMethods(t, claimMethod, releaseMethod)
	if claim, release := s.store.calls[0], s.store.calls[1]; claim.owner != release.owner || claim.key != release.key {
		t.Errorf("release is of key %q and owner %q, the claim of %q and %q", release.key, release.owner, claim.key, claim.owner)
	}
}

func closedNotReleased(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = func(string, int) fault { return fault{before: errStore} }
	s.mustFail(t, t.Context(), do, errStore)
}

func closedReplyAfterLease(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{Lease: 10 * time.Second})
	s.store.fault = on(claimMethod, 1, fault{delay: 10 * time.Second})
	s.mustFail(t, context.WithoutCancel(t.Context()), do, idempotency.ErrLeaseTooShort)
	s.wantEntry(t, idempotency.Absent)
}

func closedReplyAfterDeadline(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{Lease: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s.store.fault = on(claimMethod, 1, fault{delay: 11 * time.Second})
	before := s.runs
	if _, _, err := do(ctx, guardKey, "", s.work); err == nil || s.runs != before {
		t.Errorf("work ran %d times, error is %v, want never and an error", s.runs-before, err)
	}
	s.wantEntry(t, idempotency.Absent)
}

func closedNoTime(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	passed, cancelPassed := context.WithDeadline(t.Context(), time.Now())
	defer cancelPassed()
	for _, ctx := range []context.Context{cancelled, passed} {
		before := s.runs
		if _, _, err := do(ctx, guardKey, "", s.work); err == nil || s.runs != before {
			t.Errorf("context is done (%v): work ran %d times, error is %v, want never and an error",
				ctx.Err(), s.runs-before, err)
		}
		s.wantEntry(t, idempotency.Absent)
	}
}

func unrecordedRetried(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(completeMethod, 1, fault{before: errStore})
	s.mustRun(t, t.Context(), do)
	s.mustReplay(t, t.Context(), do)
}

func unrecordedNever(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(completeMethod, -1, fault{before: errStore})
	s.mustRun(t, t.Context(), do)
	s.wantEntry(t, idempotency.InProgress)
	s.mustFail(t, t.Context(), do, idempotency.ErrInProgress) // the lease keeps the work from being repeated
	if n := len(s.store.called(releaseMethod)); n > 0 {
		t.Errorf("there were %d releases, want none", n)
	}
}

func unrecordedFails(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{FailUnrecorded: true})
	s.store.fault = on(completeMethod, -1, fault{before: errStore})
	_, replayed, err := do(t.Context(), guardKey, "", s.work)
	s.wantError(t, err, errStore)
	if replayed {
		t.Error("replayed is true")
	}
	s.wantEntry(t, idempotency.InProgress)
}

// loseClaim returns work that ends with err after another worker has taken the key over, whose claim it writes to other.
func (s *guardSuite) loseClaim(t testing.TB, other *idempotency.Entry, err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		time.Sleep(2 * time.Minute)
		*other = s.claimElsewhere(t, "")
		return []byte("late"), err
	}
}

// wantOther checks that the other worker's claim is as it was.
func (s *guardSuite) wantOther(t testing.TB, other idempotency.Entry) {
	t.Helper()
	got, _ := s.store.Get(storedGuardKey)
	if diff := cmp.Diff(other, got); diff != "" {
		t.Errorf("claim of the other worker (-want +got):\n%s", diff)
	}
}

func unrecordedLost(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	var other idempotency.Entry
	_, _, err := do(context.WithoutCancel(t.Context()), guardKey, "", s.loseClaim(t, &other, nil))
	s.wantError(t, err, idempotency.ErrClaimLost)
	s.wantOther(t, other)
	if n := len(s.store.called(releaseMethod)); n > 0 {
		t.Errorf("there were %d releases, want none", n)
	}
}
