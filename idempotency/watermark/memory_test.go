package watermark_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// TestMemoryStoreDropsExpired has shards that nobody reads any more make room, and none that counts.
func TestMemoryStoreDropsExpired(t *testing.T) {
	var store watermark.MemoryStore // its zero value is ready
	claim := func(key string, at time.Time) {
		t.Helper()
		r := claimOf(key)
		r.Key, r.Now, r.Lease, r.Expiry = key, at, at.Add(time.Minute), at.Add(time.Hour)
		if _, err := store.Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		claim(fmt.Sprintf("shard %d", i), now)
	}
	claim("live", now.Add(30*time.Minute))
	if got := store.Len(); got != 11 {
		t.Errorf("%d entries before the expiry, want 11", got)
	}
	claim("next", now.Add(time.Hour))
	if got := store.Len(); got != 12 {
		t.Errorf("%d entries at the expiry, want 12", got)
	}
	claim("last", now.Add(time.Hour+time.Second))
	if got := store.Len(); got != 3 {
		t.Errorf("%d entries after the expiry, want 3", got)
	}
}

// TestMemoryStoreKeepsLiveClaims has a position expire under a lease that has not run out.
func TestMemoryStoreKeepsLiveClaims(t *testing.T) {
	store := watermark.NewMemoryStore()
	if _, err := store.Claim(t.Context(), claimOf("a")); err != nil {
		t.Fatal(err)
	}
	short := watermark.AdvanceRequest{Key: "k", Owner: "a", Now: now, To: whole("5"), Expiry: now.Add(time.Second)}
	if err := store.Advance(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	next := claimOf("b")
	next.Key, next.Now = "another shard", now.Add(3*time.Second)
	if _, err := store.Claim(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	next.Key = "k"
	if _, err := store.Claim(t.Context(), next); !errors.Is(err, idempotency.ErrInProgress) {
		t.Errorf("claim of a shard that is held: error is %v, want %v", err, idempotency.ErrInProgress)
	}
}

// TestMemoryStoreContext has calls with a context that is done change nothing.
func TestMemoryStoreContext(t *testing.T) {
	store := watermark.NewMemoryStore()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	advance := watermark.AdvanceRequest{Key: "k", Owner: "a", Now: now, To: whole("5"), Expiry: now.Add(time.Hour)}
	if _, err := store.Claim(done, claimOf("a")); !errors.Is(err, context.Canceled) || store.Len() != 0 {
		t.Errorf("claim: error is %v and %d entries are held, want %v and 0", err, store.Len(), context.Canceled)
	}
	if _, err := store.Claim(t.Context(), claimOf("a")); err != nil {
		t.Fatal(err)
	}
	if err := store.Advance(done, advance); !errors.Is(err, context.Canceled) {
		t.Errorf("advance: error is %v, want %v", err, context.Canceled)
	}
	rewind := watermark.RewindRequest{Key: "k", Now: now, To: whole("7"), Expiry: now.Add(time.Hour)}
	if err := store.Rewind(done, rewind); !errors.Is(err, context.Canceled) {
		t.Errorf("rewind: error is %v, want %v", err, context.Canceled)
	}
	if got, err := store.Claim(t.Context(), claimOf("a")); err != nil || !got.IsZero() {
		t.Errorf("position is %q, error %v, want none", got, err)
	}
}

// TestInvariants lets workers take a shard from each other at random times, and checks what a consumer relies on: who has
// it alone, and that a position which was stored is never behind a later one's, but for a rewind.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := watermark.NewMemoryStore()
		now, owners := now, 0
		var reached watermark.Position
		var holder watermark.ClaimRequest
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"claim", "advance", "rewind", "wait"}).Draw(t, "step") {
			case "claim":
				owners++
				r := claimOf(fmt.Sprint(owners))
				r.Now, r.Lease, r.Expiry = now, now.Add(time.Minute), now.Add(24*time.Hour)
				position, err := store.Claim(t.Context(), r)
				if err != nil {
					continue
				}
				if !holder.Now.IsZero() && !now.After(holder.Lease.Add(time.Second)) {
					t.Fatalf("owner %s has the shard, and owner %s has it", holder.Owner, r.Owner)
				}
				if position.Compare(reached) != 0 {
					t.Fatalf("owner %s starts at %v, want %v", r.Owner, position, reached)
				}
				holder = r
			case "advance":
				a := watermark.AdvanceRequest{
					Key: "k", Owner: fmt.Sprint(rapid.IntRange(max(owners-1, 1), max(owners, 1)).Draw(t, "owner")), Now: now,
					To:     watermark.Position{Sequence: fmt.Sprint(rapid.IntRange(1, 200).Draw(t, "to"))},
					Expiry: now.Add(24 * time.Hour), Release: rapid.Bool().Draw(t, "release"),
				}
				before := reached
				if err := store.Advance(t.Context(), a); err != nil {
					if a.Owner == holder.Owner && !holder.Now.IsZero() {
						t.Fatalf("owner %s has the shard, and its advance is refused: %v", a.Owner, err)
					}
					continue
				}
				if a.Owner != holder.Owner && a.To.Compare(before) > 0 {
					t.Fatalf("owner %s does not have the shard, and moves it from %v to %v", a.Owner, before, a.To)
				}
				if a.To.Compare(reached) > 0 {
					reached = a.To
				}
				if a.Owner == holder.Owner && a.Release {
					holder.Now = time.Time{}
				}
			case "rewind":
				reached = watermark.Position{Sequence: fmt.Sprint(rapid.IntRange(1, 200).Draw(t, "to"))}
				r := watermark.RewindRequest{Key: "k", Now: now, To: reached, Expiry: now.Add(24 * time.Hour)}
				if err := store.Rewind(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				holder.Now = time.Time{}
			case "wait":
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			}
		}
	})
}
