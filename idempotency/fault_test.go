package idempotency_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

var errThrottled = errors.New("throttled")

// A fault stands between the guard and the store. It gets the number of the request of its kind, from 0, and send, which
// lets the request through to the store, whatever has become of the caller meanwhile.
type fault func(ctx context.Context, n int, send func() error) error

// refuse answers in the store's stead.
func refuse(err error) fault {
	return func(context.Context, int, func() error) error { return err }
}

// loseReply lets the store do what it is asked to, and says err.
func loseReply(err error) fault {
	return func(_ context.Context, _ int, send func() error) error {
		_ = send()
		return err
	}
}

// delayReply keeps the reply back for d, even if nobody waits for it any longer.
func delayReply(d time.Duration) fault {
	return func(_ context.Context, _ int, send func() error) error {
		err := send()
		time.Sleep(d)
		return err
	}
}

// hang never answers.
func hang(ctx context.Context, _ int, _ func() error) error {
	<-ctx.Done()
	return ctx.Err()
}

// first is f for the first n requests.
func first(n int, f fault) fault {
	return func(ctx context.Context, i int, send func() error) error {
		if i < n {
			return f(ctx, i, send)
		}
		return send()
	}
}

// faultStore is a MemoryStore behind faults. It keeps what it was asked.
type faultStore struct {
	idempotency.MemoryStore
	onClaim, onComplete, onRelease fault // nil: none

	mu        sync.Mutex
	calls     []string          // "claim", "complete" and "release" in the order in which they came
	contexts  []context.Context // theirs
	claims    []idempotency.ClaimRequest
	completes []idempotency.CompleteRequest
	releases  []idempotency.ReleaseRequest
}

func (s *faultStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (result idempotency.ClaimResult, err error) {
	n := note(ctx, s, "claim", &s.claims, r)
	err = pass(ctx, s.onClaim, n, func() (err error) {
		result, err = s.MemoryStore.Claim(context.WithoutCancel(ctx), r)
		return err
	})
	if err != nil {
		return idempotency.ClaimResult{}, err
	}
	return result, nil
}

func (s *faultStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	n := note(ctx, s, "complete", &s.completes, r)
	return pass(ctx, s.onComplete, n, func() error {
		return s.MemoryStore.Complete(context.WithoutCancel(ctx), r)
	})
}

func (s *faultStore) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	n := note(ctx, s, "release", &s.releases, r)
	return pass(ctx, s.onRelease, n, func() error {
		return s.MemoryStore.Release(context.WithoutCancel(ctx), r)
	})
}

func note[R any](ctx context.Context, s *faultStore, call string, requests *[]R, r R) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.contexts = append(s.calls, call), append(s.contexts, ctx)
	*requests = append(*requests, r)
	return len(*requests) - 1
}

func pass(ctx context.Context, f fault, n int, send func() error) error {
	if f != nil {
		return f(ctx, n, send)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return send()
}

// newGuard makes a guard that logs nothing.
func newGuard(t testing.TB, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	quiet := func(o *idempotency.Options) { o.Logger = slog.New(slog.DiscardHandler) }
	g, err := idempotency.New("orders", store, append([]func(*idempotency.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wantErr checks that err is each of the errors wanted, and that there is none if none is wanted.
func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("error is %v, want none", err)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error is %v, want it to be %q", err, w)
		}
	}
}

// returns makes a function for Do that returns value and err.
func returns[R any](value R, err error) func(context.Context) (R, error) {
	return func(context.Context) (R, error) { return value, err }
}

// forbidden makes a function for Do that must not run.
func forbidden[R any](t testing.TB) func(context.Context) (R, error) {
	return func(context.Context) (R, error) {
		t.Error("the function ran, want that it does not start")
		var zero R
		return zero, nil
	}
}
