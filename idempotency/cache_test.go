package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

func caches(entries int) func(*idempotency.Options) {
	return func(o *idempotency.Options) { o.LocalCache = entries }
}

// wantCalls checks which calls the store got since the last time.
func wantCalls(t *testing.T, store *faultStore, want string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Join(store.calls, " ")); diff != "" {
		t.Errorf("calls of the store (-want +got):\n%s", diff)
	}
	store.calls = nil
}

// Rule 11, case 24: a completed key is replayed from memory, with its result, until it expires, and never with another
// payload. What the store says is replayed from memory the next time.
func TestLocalCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		store := &faultStore{}
		g := newGuard(t, store, caches(2), hooks(&r))
		do := func(g *idempotency.Guard, fingerprint string, fn func(context.Context) ([]int, error)) (idempotency.Result[[]int], error) {
			return idempotency.Do(t.Context(), g, "k", fn, func(o *idempotency.CallOptions) { o.Fingerprint = fingerprint })
		}
		_, err := do(g, "f", returns([]int{1, 2}, nil))
		wantErr(t, err)
		wantCalls(t, store, "claim complete")
		want := idempotency.Result[[]int]{Value: []int{1, 2}, Replayed: true}
		for _, fingerprint := range []string{"f", "", "f"} {
			got, err := do(g, fingerprint, forbidden[[]int](t))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("replay: error is %v (-want +got):\n%s", err, diff)
			}
		}
		_, err = do(g, "another", forbidden[[]int](t))
		wantErr(t, err, idempotency.ErrFingerprintMismatch)
		wantCalls(t, store, "")
		for _, e := range r.events[2:] {
			if e.Owner != "" || e.Key != "k" {
				t.Errorf("event is %+v, want one of k without an owner", e)
			}
		}
		if diff := cmp.Diff("claimed, completed, replayed, replayed, replayed, mismatch", r.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}

		other := newGuard(t, store, caches(2)) // another process
		for _, calls := range []string{"claim", ""} {
			got, err := do(other, "f", forbidden[[]int](t))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("replay elsewhere: error is %v (-want +got):\n%s", err, diff)
			}
			wantCalls(t, store, calls)
		}
		_, err = do(other, "another", forbidden[[]int](t))
		wantErr(t, err, idempotency.ErrFingerprintMismatch)

		time.Sleep(idempotency.DefaultExpiry + 2*time.Second)
		_, err = do(g, "another", returns([]int{3}, nil))
		wantErr(t, err)
		wantCalls(t, store, "claim complete")
	})
}

// A replay from memory is to be had until the last moment that the store's is, whatever the clock is.
func TestLocalCacheExpiry(t *testing.T) {
	now := time.Unix(1_000_000, 1)
	store := &faultStore{}
	g := newGuard(t, store, caches(1), func(o *idempotency.Options) {
		o.Expiry, o.Clock = time.Minute, func() time.Time { return now }
	})
	_, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
	wantErr(t, err)
	entry, _ := store.Get("orders#k")
	now = entry.Expiry.Add(time.Second - 1)
	wantCalls(t, store, "claim complete")
	_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t))
	wantErr(t, err)
	wantCalls(t, store, "")
	now = now.Add(1)
	_, err = idempotency.Do(t.Context(), g, "k", returns(1, nil))
	wantErr(t, err)
	wantCalls(t, store, "claim complete")
}

// Nothing is cached but a stored completion: no claim, no release, none that the store did not take, and no result that
// would fill the memory. That a completion has no result is known without the store.
func TestLocalCacheHoldsCompletions(t *testing.T) {
	failed := errors.New("card declined")
	for _, test := range []struct {
		name   string
		store  *faultStore
		before call
		want   string // the store's calls of the second Do
	}{
		{"failed", &faultStore{}, doOf(returns(1.0, failed)), "claim complete"},
		{"held elsewhere", &faultStore{}, heldWith(""), "claim"},
		{"held elsewhere, and seen so", &faultStore{}, func(ctx context.Context, g *idempotency.Guard) {
			heldWith("")(ctx, g)
			doOf(returns(1.0, nil))(ctx, g)
		}, "claim"},
		{"unrecorded", &faultStore{onComplete: first(3, refuse(errThrottled))}, doOf(returns(1.0, nil)), "claim"},
		{"lost", &faultStore{onComplete: first(1, refuse(idempotency.ErrClaimLost))}, doOf(returns(1.0, nil)), "claim"},
		{"completed", &faultStore{}, doOf(returns(1.0, nil)), ""},
		{"completed at the second try", &faultStore{onComplete: first(1, refuse(errThrottled))}, doOf(returns(1.0, nil)), ""},
		{"largest result", &faultStore{}, doOfText(idempotency.MaxCachedData - len(`""`)), ""},
		{"larger result", &faultStore{}, doOfText(idempotency.MaxCachedData), "claim"},
		{"given up", &faultStore{}, func(ctx context.Context, g *idempotency.Guard) {
			c, _ := g.Claim(ctx, idempotency.Request{Key: "k"})
			_ = c.GiveUp(ctx, true)
		}, ""},
		{"given up and free", &faultStore{}, func(ctx context.Context, g *idempotency.Guard) {
			c, _ := g.Claim(ctx, idempotency.Request{Key: "k"})
			_ = c.GiveUp(ctx, false)
		}, "claim complete"},
		{"in a group", &faultStore{}, func(ctx context.Context, g *idempotency.Guard) {
			claims, _ := g.ClaimAll(ctx, []idempotency.Request{{Key: "k"}, {Key: "l"}})
			g.SettleAll(ctx, claims, []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete})
		}, ""},
		{"in a group, released", &faultStore{}, func(ctx context.Context, g *idempotency.Guard) {
			claims, _ := g.ClaimAll(ctx, []idempotency.Request{{Key: "k"}})
			g.SettleAll(ctx, claims, []idempotency.Ending{idempotency.EndRelease})
		}, "claim complete"},
		{"in a group, unrecorded", &faultStore{onComplete: first(3, refuse(errThrottled))}, func(ctx context.Context, g *idempotency.Guard) {
			claims, _ := g.ClaimAll(ctx, []idempotency.Request{{Key: "k"}})
			g.SettleAll(ctx, claims, []idempotency.Ending{idempotency.EndComplete})
		}, "claim"},
	} {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked in a group: %t", test.name, group), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &faultStore{onComplete: test.store.onComplete}
					g := newGuard(t, store, caches(2))
					test.before(t.Context(), g)
					store.calls = nil
					if !group {
						_, _ = idempotency.Do(t.Context(), g, "k", returns(1.0, nil))
					} else if claims, errs := g.ClaimAll(t.Context(), []idempotency.Request{{Key: "k"}}); errs[0] == nil && !claims[0].Replayed() {
						g.SettleAll(t.Context(), claims, []idempotency.Ending{idempotency.EndComplete})
					}
					wantCalls(t, store, test.want)
				})
			})
		}
	}
}

func doOfText(size int) call {
	return func(ctx context.Context, g *idempotency.Guard) {
		_, _ = idempotency.Do(ctx, g, "k", returns(strings.Repeat("a", size), nil))
	}
}

// What a caller does to the bytes it gave, or got, is its own affair.
func TestLocalCacheKeepsItsBytes(t *testing.T) {
	g := newGuard(t, &faultStore{}, caches(1))
	c, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
	wantErr(t, err)
	data := []byte(`"done"`)
	wantErr(t, c.Complete(t.Context(), data))
	for range 2 {
		clear(data)
		c, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		data = c.Data()
		if diff := cmp.Diff(`"done"`, string(data)); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
	}
}

// What a transaction has completed is known without the store, too.
func TestLocalCacheOfTransaction(t *testing.T) {
	store := &transactingStore{}
	g := newGuard(t, store, caches(1))
	_, err := idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
		_, err := idempotency.TransactionFrom(ctx)
		return 1, err
	})
	wantErr(t, err)
	wantCalls(t, &store.faultStore, "claim")
	got, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
	if want := (idempotency.Result[int]{Value: 1, Replayed: true}); got != want || err != nil {
		t.Errorf("replay returns %+v, %v; want %+v", got, err, want)
	}
	wantCalls(t, &store.faultStore, "")
}

type transactingStore struct{ faultStore }

func (s *transactingStore) Begin(idempotency.BeginRequest) idempotency.Transaction {
	return collected{s}
}

// collected is a transaction with writes in it.
type collected struct{ store *transactingStore }

func (c collected) Close() bool { return true }
func (c collected) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return c.store.MemoryStore.Complete(ctx, r)
}

// By default nothing is cached.
func TestNoLocalCache(t *testing.T) {
	store := &faultStore{}
	g := newGuard(t, store)
	for range 3 {
		_, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
		wantErr(t, err)
	}
	wantCalls(t, store, "claim complete claim claim")
}

// Of more keys than there is room for, those are kept that were used last.
func TestLocalCacheKeepsLastUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		store := &faultStore{}
		g := newGuard(t, store, caches(limit))
		var used []string // what was used last in front
		for _, key := range rapid.SliceOfN(rapid.StringMatching(`[a-f]`), 1, 30).Draw(rt, "keys") {
			cached := false
			for i, k := range used {
				if k == key {
					cached, used = i < limit, append(used[:i:i], used[i+1:]...)
					break
				}
			}
			used = append([]string{key}, used...)
			store.calls = nil
			_, _ = idempotency.Do(t.Context(), g, key, returns(1, nil))
			if got := len(store.calls) == 0; got != cached {
				rt.Fatalf("%q after %q: from memory: %t, want %t", key, used[1:], got, cached)
			}
		}
	})
}

// Many goroutines may use one guard's memory.
func TestLocalCacheConcurrently(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore(), caches(3))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 200 {
				key := fmt.Sprint((i + n) % 5)
				got, err := idempotency.Do(t.Context(), g, key, returns(key, nil))
				if err != nil && !errors.Is(err, idempotency.ErrInProgress) || err == nil && got.Value != key {
					t.Errorf("Do of %q returns %+v, %v", key, got, err)
				}
			}
		})
	}
	wg.Wait()
}
