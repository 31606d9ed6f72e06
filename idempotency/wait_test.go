package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Rule 16 for Do, case 24a: what a caller does while another holds the key, by how long it may wait.
func TestWait(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	completes := func(t *testing.T, c *idempotency.Claim) { wantErr(t, c.Complete(t.Context(), []byte("1"))) }
	releases := func(t *testing.T, c *idempotency.Claim) { wantErr(t, c.Release(t.Context())) }
	for _, test := range []struct {
		name  string
		lease time.Duration // of the holder
		at    time.Duration // when the holder acts
		acts  func(*testing.T, *idempotency.Claim)
		wait  time.Duration
		want  string        // what becomes of the call
		after time.Duration // when it ends
		looks int           // claims of the waiting caller
	}{
		{"by default not at all", 10 * s, s, completes, 0, "held", 0, 1},
		{"not at all", 10 * s, s, completes, -1, "held", 0, 1},
		{"holder completes", 60 * s, 2 * s, completes, 10 * s, "replayed", 3100 * ms, 6},
		{"holder releases", 60 * s, 2 * s, releases, 10 * s, "runs", 3100 * ms, 6},
		{"holder completes just before the wait ends", 60 * s, 2990 * ms, completes, 3 * s, "replayed", 3 * s, 6},
		{"holder completes after the wait", 60 * s, 3001 * ms, completes, 3 * s, "held", 3 * s, 6},
		{"holder crashes", 5 * s, time.Hour, nil, 30 * s, "runs", 6*s + ms, 8},
		{"holder crashes, its lease is longer than the wait", 900 * s, time.Hour, nil, 20 * s, "held", 20 * s, 15},
		{"shorter than the first pause", 60 * s, 20 * ms, completes, 30 * ms, "replayed", 30 * ms, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faultStore{}
				holder := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.lease })
				c, err := holder.Claim(t.Context(), idempotency.Request{Key: "k"})
				wantErr(t, err)
				var acts sync.WaitGroup
				defer acts.Wait()
				if test.acts != nil {
					acts.Go(func() {
						time.Sleep(test.at)
						test.acts(t, c)
					})
				}
				start := time.Now()
				got, err := idempotency.Do(t.Context(), newGuard(t, store, func(o *idempotency.Options) { o.Wait = test.wait }),
					"k", returns(2, nil))
				took := time.Since(start)
				outcome := "runs"
				switch {
				case errors.Is(err, idempotency.ErrInProgress):
					outcome = "held"
				case err != nil:
					t.Fatal(err)
				case got == idempotency.Result[int]{Value: 1, Replayed: true}:
					outcome = "replayed"
				}
				if outcome != test.want || took != test.after {
					t.Errorf("after %v the call %s with %+v, want that it %s after %v", took, outcome, got, test.want, test.after)
				}
				if looks := len(store.claims) - 1; looks != test.looks {
					t.Errorf("the caller looked %d times, want %d", looks, test.looks)
				}
			})
		})
	}
}

// Waiting ends with its context, at once, and looks no more.
func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{}
		g := newGuard(t, store, func(o *idempotency.Options) { o.Wait, o.Lease = time.Hour, time.Hour })
		_, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(5*time.Second+50*time.Millisecond, cancel)
		start := time.Now()
		_, err = idempotency.Do(ctx, g, "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrInProgress)
		if took := time.Since(start); took != 5050*time.Millisecond {
			t.Errorf("waited %v, want 5.05s", took)
		}
		if looks := len(store.claims) - 1; looks != 6 { // at 0, 0.1, 0.3, 0.7, 1.5, 3.1 s
			t.Errorf("the caller looked %d times, want 6", looks)
		}
	})
}

// Rule 11 on the way of a wait: another payload is told so at once, and an error of the store too.
func TestWaitIsForHeldKeysOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{}
		g := newGuard(t, store, func(o *idempotency.Options) { o.Wait = time.Hour })
		_, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Fingerprint: "a"})
		wantErr(t, err)
		start := time.Now()
		other := func(o *idempotency.CallOptions) { o.Fingerprint = "b" }
		_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t), other)
		wantErr(t, err, idempotency.ErrFingerprintMismatch)
		store.onClaim = refuse(errThrottled)
		_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		wantErr(t, err, errThrottled)
		if took := time.Since(start); took != 0 {
			t.Errorf("waited %v, want not at all", took)
		}
	})
}

// Each look at the key is a claim of its own, whose lease begins when it is made.
func TestWaitLeaseBeginsWithTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) {
			o.Wait, o.Lease = time.Hour, 5*time.Second
		})
		_, err := g.Claim(t.Context(), idempotency.Request{Key: "k"}) // by one that crashes
		wantErr(t, err)
		_, err = idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
			if info, _ := idempotency.FromContext(ctx); info.LeaseLeft() != 5*time.Second {
				t.Errorf("lease left is %v, want 5s", info.LeaseLeft())
			}
			return 0, nil
		})
		wantErr(t, err)
	})
}

// overdue is a store that goes on refusing a claim although the lease in its way is over, as one whose clock is late does.
type overdue struct {
	idempotency.Store
	claims int
}

func (s *overdue) Claim(_ context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.claims++
	return idempotency.ClaimResult{Entry: idempotency.Entry{Status: idempotency.InProgress, Owner: "other", Lease: r.Now.Add(-time.Hour)}}, nil
}

// A key that should be free, but is not, is looked at no more often than one that is held.
func TestWaitForAnOverdueClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &overdue{}
		g := newGuard(t, store, func(o *idempotency.Options) { o.Wait = 10 * time.Second })
		start := time.Now()
		_, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrInProgress)
		// At 0, 0.1, 0.3, 0.7, 1.5, 3.1, then every two seconds, and at the end.
		if took := time.Since(start); store.claims != 10 || took != 10*time.Second {
			t.Errorf("%d claims in %v, want 10 in 10s", store.claims, took)
		}
	})
}

func TestRetryIn(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, test := range []struct {
		poll       int
		free, left time.Duration // until the key can be taken over, and of the waiting
		want       time.Duration
	}{
		{0, time.Hour, time.Hour, 100 * ms}, {1, time.Hour, time.Hour, 200 * ms}, {2, time.Hour, time.Hour, 400 * ms},
		{3, time.Hour, time.Hour, 800 * ms}, {4, time.Hour, time.Hour, 1600 * ms}, {5, time.Hour, time.Hour, 2 * s},
		{6, time.Hour, time.Hour, 2 * s}, {1 << 40, time.Hour, time.Hour, 2 * s}, {-1, time.Hour, time.Hour, 100 * ms},
		{0, 30 * ms, time.Hour, 30 * ms}, {10, 30 * ms, time.Hour, 30 * ms}, {0, 1, time.Hour, 1},
		{0, 0, time.Hour, 100 * ms}, {0, -time.Hour, time.Hour, 100 * ms}, {2, -1, time.Hour, 400 * ms},
		{0, time.Hour, 100 * ms, 100 * ms}, {0, time.Hour, 99 * ms, 99 * ms}, {0, 30 * ms, 20 * ms, 20 * ms},
		{0, time.Hour, 0, 0}, {0, time.Hour, -1, 0}, {3, -1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &idempotency.InProgressError{Free: time.Now().Add(test.free)}
			if got := e.RetryIn(test.poll, test.left); got != test.want {
				t.Errorf("poll %d of a key that is free in %v, with %v left: got %v, want %v",
					test.poll, test.free, test.left, got, test.want)
			}
		})
	}
}
