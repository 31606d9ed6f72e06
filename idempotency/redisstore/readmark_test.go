package redisstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/internal/redistest"
)

func markRequest(key, owner string) idempotency.MarkRequest {
	c, m := claimRequest(key, owner), completeRequest(key, owner, "1")
	return idempotency.MarkRequest{CompleteRequest: m, Fingerprint: c.Fingerprint, Skew: c.Skew}
}

func markRequests(n int) (marks []idempotency.MarkRequest, finds []idempotency.FindRequest) {
	for _, r := range claimRequests(n) {
		marks = append(marks, markRequest(r.Key, r.Owner))
		finds = append(finds, idempotency.FindRequest{Key: r.Key, Now: r.Now, Skew: r.Skew})
	}
	return marks, finds
}

// TestMarks has many reads and marks go in as many round trips as claims do, and leave what a claim and a completion leave.
func TestMarks(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t)
			direct := redistest.GoRedis(t, address)
			counting := &counter{Pipeliner: client.connect(t, address, "", "").(redisstore.Pipeliner)}
			store := redisstore.New(counting)
			marks, finds := markRequests(150)
			_ = store.FindAll(t.Context(), finds[:1]) // each script is known from then on
			_ = store.MarkAll(t.Context(), []idempotency.MarkRequest{markRequest("marked", "me")})
			counting.sent = nil
			for i, a := range store.FindAll(t.Context(), finds) {
				if a.Err != nil || a.Entry.Status != idempotency.Absent {
					t.Fatalf("read %d is %+v, want nothing found", i, a)
				}
			}
			must(t, errors.Join(store.MarkAll(t.Context(), marks)...))
			for i, a := range store.FindAll(t.Context(), finds) {
				if a.Err != nil || a.Entry.Status != idempotency.Completed || a.Entry.Owner != marks[i].Owner {
					t.Fatalf("read %d is %+v, want the mark", i, a)
				}
			}
			trips := []string{"100 EVALSHA", "50 EVALSHA"}
			if diff := cmp.Diff(append(append(trips, trips...), trips...), counting.sent); diff != "" {
				t.Errorf("round trips (-want +got):\n%s", diff)
			}

			mustClaim(t, store, claimRequest("completed", "me"))
			must(t, store.Complete(t.Context(), completeRequest("completed", "me", "1")))
			want := direct.HGetAll(t.Context(), "idempotency:completed").Val()
			if diff := cmp.Diff(want, direct.HGetAll(t.Context(), "idempotency:marked").Val()); diff != "" {
				t.Errorf("hash (-completed +marked):\n%s", diff)
			}
			if ttl := direct.PTTL(t.Context(), "idempotency:marked").Val(); ttl < marks[0].Expiry.Sub(now) {
				t.Errorf("the server deletes the mark in %v, want no earlier than it expires", ttl)
			}
		})
	}
}

// TestMarksOfForeignKeys has a key that another kind of value holds, and one that is no entry. They are neither free nor
// marked, and stay as they are.
func TestMarksOfForeignKeys(t *testing.T) {
	address := redistest.Start(t)
	direct := redistest.GoRedis(t, address)
	store := redisstore.New(clients[0].connect(t, address, "", ""))
	must(t, direct.Set(t.Context(), "idempotency:text", "x", 0).Err())
	must(t, direct.HSet(t.Context(), "idempotency:hash", "status", "DONE", "expiry", "1").Err())
	for key, want := range map[string]string{
		"text": `redisstore: key "idempotency:text" holds a string, want a hash that this package wrote: give the store an Options.KeyPrefix of its own`,
		"hash": `redisstore: key "idempotency:hash": field status is "DONE", want INPROGRESS or COMPLETED`,
	} {
		find := store.FindAll(t.Context(), []idempotency.FindRequest{{Key: key, Now: now}})[0].Err
		mark := store.MarkAll(t.Context(), []idempotency.MarkRequest{markRequest(key, "me")})[0]
		if diff := cmp.Diff([]string{want, want}, []string{fmt.Sprint(find), fmt.Sprint(mark)}); diff != "" {
			t.Errorf("%s: errors of the read and the mark (-want +got):\n%s", key, diff)
		}
	}
	if text, status := direct.Get(t.Context(), "idempotency:text").Val(), direct.HGet(t.Context(), "idempotency:hash", "status").Val(); text != "x" || status != "DONE" {
		t.Errorf("the keys hold %q and %q by now", text, status)
	}
}

// TestMarksOfFullServer has a server without room. A new key is not marked, and one that is there is.
func TestMarksOfFullServer(t *testing.T) {
	address := redistest.Start(t, "--maxmemory-policy", "noeviction")
	direct := redistest.GoRedis(t, address)
	store := redisstore.New(clients[0].connect(t, address, "", ""))
	mustClaim(t, store, claimRequest("over", "other"))
	command(t, direct, "CONFIG", "SET", "maxmemory", "1")
	late := markRequest("over", "me")
	late.Now = now.Add(2 * claimRequest("", "").Lease.Sub(now))
	errs := store.MarkAll(t.Context(), []idempotency.MarkRequest{markRequest("new", "me"), late})
	if !errors.Is(errs[0], idempotency.ErrStoreFull) || errs[1] != nil {
		t.Errorf("errors are %v, want %v for the new key alone", errs, idempotency.ErrStoreFull)
	}
	if n := direct.Exists(t.Context(), "idempotency:new").Val(); n != 0 {
		t.Error("the new key is there")
	}
}
