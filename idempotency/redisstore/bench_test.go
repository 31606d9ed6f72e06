package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/internal/redistest"
)

// recordScript notes each command that a store sends.
type recordScript struct {
	redisstore.Client
	last redisstore.Command
}

func (r *recordScript) Do(ctx context.Context, c redisstore.Command) ([]string, error) {
	r.last = c
	return r.Client.Do(ctx, c)
}

// BenchmarkClaimComplete compares a claim and its completion with the same two commands sent by hand, and with a hundred
// of each in bulk. The difference between the first two is what the store adds.
func BenchmarkClaimComplete(b *testing.B) {
	for _, client := range clients {
		b.Run(client.name, func(b *testing.B) {
			c := client.connect(b, redistest.Start(b), "", "")
			ctx := b.Context()
			run := 0
			next := func() (idempotency.ClaimRequest, idempotency.CompleteRequest) {
				run++
				key, owner := "orders#"+strconv.Itoa(run), fmt.Sprintf("%026d", run)
				r := idempotency.ClaimRequest{
					Key: key, Owner: owner, Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour), Skew: time.Second,
				}
				return r, idempotency.CompleteRequest{Key: key, Owner: owner, Now: now, Expiry: r.Expiry}
			}
			recorder := &recordScript{Client: c}
			store := redisstore.New(recorder)
			// Twice, since the server does not know the scripts the first time.
			var claim, complete redisstore.Command
			for range 2 {
				r, done := next()
				mustClaim(b, store, r)
				claim = recorder.last
				must(b, store.Complete(ctx, done))
				complete = recorder.last
			}

			b.Run("commands", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r, _ := next()
					claim.Key, claim.Args[0] = "idempotency:"+r.Key, r.Owner
					complete.Key, complete.Args[0] = claim.Key, r.Owner
					if _, err := c.Do(ctx, claim); err != nil {
						b.Fatal(err)
					}
					if _, err := c.Do(ctx, complete); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("store", func(b *testing.B) {
				b.ReportAllocs()
				store := redisstore.New(c)
				for b.Loop() {
					r, done := next()
					if result, err := store.Claim(ctx, r); err != nil || !result.Claimed {
						b.Fatal(result, err)
					}
					if err := store.Complete(ctx, done); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("bulk", func(b *testing.B) {
				b.ReportAllocs()
				const n = 100
				store := redisstore.New(c)
				claims, completions := make([]idempotency.ClaimRequest, n), make([]idempotency.CompleteRequest, n)
				records := 0
				for b.Loop() {
					for i := range n {
						claims[i], completions[i] = next()
					}
					for _, a := range store.ClaimAll(ctx, claims) {
						if a.Err != nil || !a.Claimed {
							b.Fatal(a)
						}
					}
					for _, err := range store.CompleteAll(ctx, completions) {
						if err != nil {
							b.Fatal(err)
						}
					}
					records += n
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
			})
		})
	}
}
