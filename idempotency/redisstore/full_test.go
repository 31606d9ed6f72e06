package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/internal/redistest"
)

// TestFull has a server reach its maxmemory, with the policy that the package asks for. New keys are refused. The keys that
// it has are served in every way, and none is forgotten. The suite's 18-full wants a store for three keys, which no server
// can be: what a key takes is the server's secret.
func TestFull(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t, "--maxmemory-policy", "noeviction")
			direct := redistest.GoRedis(t, address)
			store := redisstore.New(client.connect(t, address, "", ""))
			for _, key := range []string{"completes", "renews", "ends", "completed", "released"} {
				mustClaim(t, store, claimRequest(key, "mine"))
			}
			for _, key := range []string{"counted", "counts"} {
				mustClaim(t, store, counted(claimRequest(key, "mine")))
			}
			must(t, store.Complete(t.Context(), completeRequest("completed", "mine", `"before"`)))
			command(t, direct, "CONFIG", "SET", "maxmemory", "1")

			wantFull := func() {
				t.Helper()
				for _, r := range []idempotency.ClaimRequest{claimRequest("new", "mine"), counted(claimRequest("new", "mine"))} {
					result, err := store.Claim(t.Context(), r)
					if result.Claimed || !errors.Is(err, idempotency.ErrStoreFull) || !strings.Contains(err.Error(), "idempotency:new") {
						t.Errorf("Claim = %+v, %v; want %v that names the key", result, err, idempotency.ErrStoreFull)
					}
				}
				answers := store.ClaimAll(t.Context(), []idempotency.ClaimRequest{claimRequest("new", "mine"), claimRequest("completed", "b")})
				if !errors.Is(answers[0].Err, idempotency.ErrStoreFull) || answers[1].Err != nil || answers[1].Claimed {
					t.Errorf("ClaimAll = %+v; want %v for a new key and a refusal for the other", answers, idempotency.ErrStoreFull)
				}
			}
			wantFull()
			must(t, store.Complete(t.Context(), completeRequest("completes", "mine", `"`+strings.Repeat("x", 1<<16)+`"`)))
			must(t, store.Renew(t.Context(), renewRequest("renews", "mine", "mine still")))
			must(t, store.Complete(t.Context(), completeRequest("renews", "mine still", `"renewed"`)))
			late := claimRequest("ends", "next")
			late.Now = late.Lease.Add(late.Skew + time.Millisecond)
			late.Lease, late.Expiry = late.Now.Add(time.Minute), late.Now.Add(time.Hour)
			if result := mustClaim(t, store, late); !result.TookOver {
				t.Error("claim after a lease: TookOver is false")
			}
			mustClaim(t, store, late) // it is sent twice
			must(t, store.Release(t.Context(), idempotency.ReleaseRequest{Key: "counted", Owner: "mine", Now: now, CountAttempts: true}))
			if got := mustClaim(t, store, counted(claimRequest("counted", "next"))).Entry.Attempts; got != 2 {
				t.Errorf("attempts are %d, want 2", got)
			}
			must(t, store.Complete(t.Context(), completeRequest("counts", "mine", "1")))
			must(t, store.Release(t.Context(), idempotency.ReleaseRequest{Key: "released", Owner: "mine", Now: now}))
			wantFull()

			held := map[string]string{}
			for _, key := range []string{"completes", "renews", "ends", "completed", "released", "counted", "counts", "new"} {
				held[key] = direct.HGet(t.Context(), "idempotency:"+key, "status").Val()
				if held[key] != "" && direct.PTTL(t.Context(), "idempotency:"+key).Val() < time.Hour {
					t.Errorf("%s is deleted too early", key)
				}
			}
			if diff := cmp.Diff(map[string]string{
				"completes": "COMPLETED", "renews": "COMPLETED", "ends": "INPROGRESS", "completed": "COMPLETED", "released": "",
				"counted": "INPROGRESS", "counts": "COMPLETED", "new": "",
			}, held); diff != "" {
				t.Errorf("what is held (-want +got):\n%s", diff)
			}
			command(t, direct, "CONFIG", "SET", "maxmemory", "0")
			mustClaim(t, store, claimRequest("new", "mine"))
		})
	}
}
