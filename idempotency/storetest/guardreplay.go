package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

func fingerprintCompleted(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	for i, fingerprint := range []string{"f1", "f1", "f2"} {
		_, replayed, err := do(t.Context(), guardKey, fingerprint, s.work)
		if want := i == 1; replayed != want {
			t.Errorf("call %d: replayed is %t, want %t", i+1, replayed, want)
		}
		if want := i == 2; errors.Is(err, idempotency.ErrFingerprintMismatch) != want || !want && err != nil {
			t.Errorf("call %d: error is %v, want a mismatch: %t", i+1, err, want)
		}
	}
	if s.runs != 1 {
		t.Errorf("work ran %d times, want once", s.runs)
	}
}

func fingerprintInProgress(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.claimElsewhere(t, "f1")
	_, _, err := do(t.Context(), guardKey, "f2", s.work)
	s.wantError(t, err, idempotency.ErrFingerprintMismatch)
	_, _, err = do(t.Context(), guardKey, "f1", s.work)
	s.wantError(t, err, idempotency.ErrInProgress)
	if s.runs != 0 {
		t.Errorf("work ran %d times, want never", s.runs)
	}
}

// fingerprintOdd has fingerprints that not every store would give back as they were, and pairs of them that are one if
// they are cut or made text.
func fingerprintOdd(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	long := strings.Repeat("f", 5000)
	for _, fingerprints := range [][2]string{{long + "1", long + "2"}, {"\xfe", "\xff"}} {
		key := newOwner()
		for i, fingerprint := range []string{fingerprints[0], fingerprints[0], fingerprints[1]} {
			_, replayed, err := do(t.Context(), key, fingerprint, s.work)
			if want := i == 1; replayed != want {
				t.Errorf("call %d: replayed is %t, want %t", i+1, replayed, want)
			}
			if want := i == 2; errors.Is(err, idempotency.ErrFingerprintMismatch) != want || !want && err != nil {
				t.Errorf("call %d: error is %v, want a mismatch: %t", i+1, err, want)
			}
			if got := s.claimed(t).Fingerprint; len(got) > 1024 || !utf8.ValidString(got) || got == "" {
				t.Errorf("stored fingerprint has %d bytes, %.100q, want up to 1024 of UTF-8", len(got), got)
			}
		}
	}
}

func missingFails(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	for range 2 {
		_, _, err := do(t.Context(), "", "", s.work)
		s.wantError(t, err, idempotency.ErrKeyMissing)
	}
	if s.runs != 0 {
		t.Errorf("work ran %d times, want never", s.runs)
	}
	s.wantMethods(t)
}

func missingUnprotected(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{MissingKey: idempotency.MissingKeyRunsUnprotected})
	for range 2 {
		if _, replayed, err := do(t.Context(), "", "", s.work); err != nil || replayed {
			t.Errorf("replayed is %t, error is %v, want false and none", replayed, err)
		}
	}
	if s.runs != 2 {
		t.Errorf("work ran %d times, want twice", s.runs)
	}
	s.wantMethods(t)
}

func resultAsItWas(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	for _, want := range [][]byte{nil, {}, []byte("null"), []byte("0"), {0, 0xff, '"'}} {
		key := newOwner()
		for i := range 2 {
			got, replayed, err := do(t.Context(), key, "", func(context.Context) ([]byte, error) { return want, nil })
			if err != nil || replayed != (i == 1) {
				t.Fatalf("result %q, call %d: replayed is %t, error is %v", want, i+1, replayed, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result of call %d (-want +got):\n%s", i+1, diff)
			}
		}
	}
}

// resultNotStored has a store that has no room for results. The work is done, so it is not done again.
func resultNotStored(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.dropResults = true
	s.mustRun(t, t.Context(), do)
	s.wantEntry(t, idempotency.Completed)
	_, _, err := do(t.Context(), guardKey, "", s.work)
	s.wantError(t, err, idempotency.ErrResultNotStored)
	if s.runs != 1 {
		t.Errorf("work ran %d times, want once", s.runs)
	}
	s.wantEntry(t, idempotency.Completed)
}

func namespaceArgument(t testing.TB, s *guardSuite) {
	s.mustRun(t, t.Context(), s.guard(t, idempotency.Options{}))
	if got := s.claimed(t).Key; got != storedGuardKey {
		t.Errorf("stored key is %q, want %q", got, storedGuardKey)
	}
	s.mustReplay(t, t.Context(), s.guard(t, idempotency.Options{}))
	s.mustRun(t, t.Context(), s.newGuard(t, "payments", s.store, idempotency.Options{}))
}

func requestBudget(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	_, _, err := do(t.Context(), guardKey, "", s.failing)
	s.wantError(t, err, errWork)
	s.wantMethods(t, claimMethod, releaseMethod)

	s.store.calls = nil
	entry := s.claimElsewhere(t, "")
	s.mustFail(t, t.Context(), do, idempotency.ErrInProgress)
	s.wantMethods(t, claimMethod)
	err = s.store.MemoryStore.Release(t.Context(), idempotency.ReleaseRequest{
		Key: storedGuardKey, Owner: entry.Owner, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}

	s.store.calls = nil
	s.mustRun(t, t.Context(), do)
	s.wantMethods(t, claimMethod, completeMethod)

	s.store.calls = nil
	s.mustReplay(t, t.Context(), do)
	s.wantMethods(t, claimMethod)
}

func fullError(t testing.TB, s *guardSuite) {
	s.store.MemoryStore = idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = 1 })
	do := s.guard(t, idempotency.Options{})
	if _, _, err := do(t.Context(), "another", "", s.work); err != nil {
		t.Fatal(err)
	}
	s.mustFail(t, t.Context(), do, idempotency.ErrStoreFull)
}
