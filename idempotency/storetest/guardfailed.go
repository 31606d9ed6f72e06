package storetest

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

func failedReleased(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	_, replayed, err := do(t.Context(), guardKey, "", s.failing)
	s.wantError(t, err, errWork)
	if replayed {
		t.Error("replayed is true")
	}
	s.wantEntry(t, idempotency.Absent)
	s.mustRun(t, t.Context(), do)
}

func failedNotReleased(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	s.store.fault = on(releaseMethod, -1, fault{before: errStore})
	_, _, err := do(t.Context(), guardKey, "", s.failing)
	s.wantError(t, err, errWork)
	s.wantError(t, err, errStore)
	if text := err.Error(); strings.Index(text, errWork.Error()) > strings.Index(text, errStore.Error()) {
		t.Errorf("error is %q, want that of the work first", text)
	}
}

func failedLost(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	var other idempotency.Entry
	_, _, err := do(context.WithoutCancel(t.Context()), guardKey, "", s.loseClaim(t, &other, errWork))
	s.wantError(t, err, errWork)
	s.wantOther(t, other)
}

// failedPanic has work that panics. The panic may go on to the caller, or come as an error.
func failedPanic(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	var err error
	panicked := func() (recovered any) {
		defer func() { recovered = recover() }()
		_, _, err = do(t.Context(), guardKey, "", func(context.Context) ([]byte, error) { panic("storetest") })
		return nil
	}()
	if panicked == nil && err == nil {
		t.Error("work panicked, and the caller is told that it succeeded")
	}
	s.wantEntry(t, idempotency.Absent)
}

func failedGoexit(t testing.TB, s *guardSuite) {
	do := s.guard(t, idempotency.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, err := do(t.Context(), guardKey, "", func(context.Context) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		})
		if err == nil {
			t.Error("work called Goexit, and the caller is told that it succeeded")
		}
	}()
	<-ended
	s.wantEntry(t, idempotency.Absent)
}
