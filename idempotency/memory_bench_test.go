package idempotency_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// BenchmarkMemoryStore claims and completes a new key in each round, in a store that holds the completions of the last
// while and sweeps out what has expired. Its target is 500 ns a round with 1,000 held. With 80,000 the rounds take what
// the caches of the machine make of them.
func BenchmarkMemoryStore(b *testing.B) {
	for _, held := range []int{1_000, 80_000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) { benchmarkMemoryStore(b, held) })
	}
}

func benchmarkMemoryStore(b *testing.B, held int) {
	ctx := b.Context()
	store := idempotency.NewMemoryStore()
	keys := make([]string, 2*held) // a key comes again when it has expired
	for i := range keys {
		keys[i] = fmt.Sprintf("orders#%029d", i)
	}
	now := time.Unix(1_800_000_000, 0)
	step := 10 * time.Second / time.Duration(held)
	round := func(i int) {
		now = now.Add(step)
		key, expiry := keys[i%len(keys)], now.Add(10*time.Second)
		r, err := store.Claim(ctx, idempotency.ClaimRequest{
			Key: key, Owner: "owner", Now: now, Lease: now.Add(5 * time.Second), Expiry: expiry, Skew: time.Second,
		})
		if err != nil || !r.Claimed {
			b.Fatalf("round %d: claim: %+v, %v", i, r, err)
		}
		err = store.Complete(ctx, idempotency.CompleteRequest{Key: key, Owner: "owner", Now: now, Expiry: expiry})
		if err != nil {
			b.Fatal(err)
		}
	}
	rounds := 0
	for ; rounds < len(keys); rounds++ {
		round(rounds)
	}
	b.ReportAllocs()
	for b.Loop() {
		round(rounds)
		rounds++
	}
	if n := store.Len(); n < held || n > held*5/2 {
		b.Errorf("store holds %d entries, want %d to twice that", n, held)
	}
}
