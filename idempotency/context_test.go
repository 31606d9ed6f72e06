package idempotency_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func TestFromContextOutside(t *testing.T) {
	if info, ok := idempotency.FromContext(t.Context()); ok || info.Key != "" {
		t.Errorf("FromContext is %+v, %t, want none", info, ok)
	}
	if left := (idempotency.Info{}).LeaseLeft(); left != 0 {
		t.Errorf("LeaseLeft of the zero Info is %v, want 0", left)
	}
}

// What guarded work knows: its key without the namespace, its owner, the end of its lease and how much is left of it by
// the guard's clock.
func TestFromContext(t *testing.T) {
	now := memoryStart
	store := &faultStore{}
	g := newGuard(t, store, func(o *idempotency.Options) {
		o.Clock, o.Lease = func() time.Time { return now }, 30*time.Second
		o.HashKeys = true
	})
	_, err := idempotency.Do(t.Context(), g, "jane@example.com", func(ctx context.Context) (int, error) {
		info, ok := idempotency.FromContext(ctx)
		if owner := store.claims[0].Owner; !ok || info.Key != "jane@example.com" || info.Owner != owner || info.Attempt != 0 ||
			!info.Lease.Equal(memoryStart.Add(30*time.Second)) {
			t.Errorf("FromContext is %+v, %t", info, ok)
		}
		for _, at := range []time.Duration{0, 12 * time.Second, 30 * time.Second, time.Minute} {
			now = memoryStart.Add(at)
			if got, want := info.LeaseLeft(), 30*time.Second-at; got != want {
				t.Errorf("after %v the lease left is %v, want %v", at, got, want)
			}
		}
		return 0, nil
	})
	wantErr(t, err)
}

// The innermost claim wins, also where contexts are derived in between, and the outer one is back after it.
func TestFromContextInnermost(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	check := func(ctx context.Context, want string) {
		t.Helper()
		if info, ok := idempotency.FromContext(ctx); !ok || info.Key != want {
			t.Errorf("FromContext is %+v, %t, want key %s", info, ok, want)
		}
	}
	_, err := idempotency.Do(t.Context(), g, "outer", func(ctx context.Context) (int, error) {
		derived, cancel := context.WithTimeout(context.WithValue(ctx, valueKey{}, 1), time.Second)
		defer cancel()
		got, err := idempotency.Do(derived, g, "inner", func(inner context.Context) (int, error) {
			check(context.WithoutCancel(inner), "inner")
			value, _ := inner.Value(valueKey{}).(int)
			return value, nil
		})
		if got.Value != 1 {
			t.Errorf("value of the context is %d, want 1", got.Value)
		}
		check(derived, "outer")
		return 0, err
	})
	wantErr(t, err)
}

// The number of the attempt is what the source says, unless the store counts.
func TestAttempt(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	c, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Attempt: 4})
	wantErr(t, err)
	if info, _ := idempotency.FromContext(c.Context(t.Context())); info.Attempt != 4 || c.Attempt() != 4 {
		t.Errorf("attempt is %d in the context, %d in the claim, want 4", info.Attempt, c.Attempt())
	}
	wantErr(t, c.Release(t.Context()))

	store := &faultStore{}
	g = newGuard(t, store, func(o *idempotency.Options) { o.CountAttempts = true })
	for want := 1; want <= 3; want++ {
		c, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Attempt: 9})
		wantErr(t, err)
		if info, _ := idempotency.FromContext(c.Context(t.Context())); info.Attempt != want || c.Attempt() != want {
			t.Errorf("attempt is %d in the context, %d in the claim, want %d", info.Attempt, c.Attempt(), want)
		}
		wantErr(t, c.ReleaseUnstarted(t.Context())) // never begun: not counted
		_, err = idempotency.Do(t.Context(), g, "k", returns(0, errThrottled))
		wantErr(t, err, errThrottled)
	}
	for i, r := range store.releases {
		if !r.CountAttempts || r.Unstarted != (i%2 == 0) {
			t.Errorf("release %d is %+v, want CountAttempts, and Unstarted where the work was not begun", i, r)
		}
	}
}

// Rule 7: the bounds of a settling context.
func TestDetach(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name                string
		context, invocation time.Duration // until their deadlines, 0: none
		cancel              bool
		want                time.Duration
	}{
		{"no deadline", 0, 0, false, 5 * s},
		{"no deadline, cancelled", 0, 0, true, 5 * s},
		{"deadline", 60 * s, 0, false, 60 * s},
		{"deadline, cancelled", 60 * s, 0, true, 60 * s},
		{"deadline at the floor", 2 * s, 0, false, 2 * s},
		{"deadline near", s, 0, false, 2 * s},
		{"deadline past", -time.Hour, 0, false, 2 * s},
		{"invocation later", s, 10 * s, false, 10 * s},
		{"invocation earlier", 10 * s, 4 * s, false, 4 * s},
		{"invocation past", 10 * s, -s, false, 2 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := limits(context.WithValue(t.Context(), valueKey{}, "trace"), test.context, test.invocation)
				defer stop()
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				if test.cancel {
					cancel()
				}
				start := time.Now()
				detached, stopDetached := idempotency.Detach(ctx)
				if err := detached.Err(); err != nil || detached.Value(valueKey{}) != "trace" {
					t.Errorf("error is %v, value %v, want none, and trace", err, detached.Value(valueKey{}))
				}
				<-detached.Done()
				if got := time.Since(start); got != test.want {
					t.Errorf("the context ended after %v, want %v", got, test.want)
				}
				stopDetached()
			})
		})
	}
}
