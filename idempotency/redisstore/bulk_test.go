package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/idempotency/redisstore/rueidisclient"
	"github.com/oncekit/oncekit/internal/redistest"
)

func claimRequests(n int) []idempotency.ClaimRequest {
	requests := make([]idempotency.ClaimRequest, n)
	for i := range requests {
		requests[i] = claimRequest(fmt.Sprint("k", i), fmt.Sprint("owner of ", i))
	}
	return requests
}

// TestBulkRoundTrips counts the commands and the round trips: one command a request, a hundred commands a round trip, and
// one more where a server does not know the script. The answers are right each time.
func TestBulkRoundTrips(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t)
			direct := redistest.GoRedis(t, address)
			counting := &counter{Pipeliner: client.connect(t, address, "", "").(redisstore.Pipeliner)}
			store := redisstore.New(counting)
			requests := claimRequests(250)
			for _, test := range []struct {
				name string
				want []string
			}{
				{"first", []string{"100 EVALSHA", "100 EVAL", "100 EVALSHA", "50 EVALSHA"}},
				{"again", []string{"100 EVALSHA", "100 EVALSHA", "50 EVALSHA"}},
			} {
				counting.sent = nil
				for i, a := range store.ClaimAll(t.Context(), requests) {
					if a.Err != nil || !a.Claimed || a.Entry.Owner != requests[i].Owner {
						t.Fatalf("%s: answer %d is %+v, want it claimed by %s", test.name, i, a, requests[i].Owner)
					}
				}
				if diff := cmp.Diff(test.want, counting.sent); diff != "" {
					t.Errorf("%s: round trips (-want +got):\n%s", test.name, diff)
				}
			}
			if n := direct.DBSize(t.Context()).Val(); n != 250 {
				t.Errorf("the server holds %d keys, want 250", n)
			}
			if got := store.BulkSizes(); got != (idempotency.BulkSizes{Claims: 100, Settle: 100}) {
				t.Errorf("BulkSizes = %+v, want 100 of each", got)
			}
		})
	}
}

// counter notes what goes out together.
type counter struct {
	redisstore.Pipeliner
	sent []string
}

func (c *counter) DoAll(ctx context.Context, commands []redisstore.Command) []redisstore.Reply {
	c.sent = append(c.sent, fmt.Sprint(len(commands), " ", commands[0].Name))
	return c.Pipeliner.DoAll(ctx, commands)
}

// TestBulkMixed has one call with requests that fare differently. None does anything to another.
func TestBulkMixed(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t)
			direct := redistest.GoRedis(t, address)
			store := redisstore.New(client.connect(t, address, "", ""))
			must(t, direct.Set(t.Context(), "idempotency:text", "x", 0).Err())
			mustClaim(t, store, claimRequest("mine", "me"))
			mustClaim(t, store, claimRequest("other's", "other"))
			requests := []idempotency.CompleteRequest{
				completeRequest("absent", "me", "1"), completeRequest("text", "me", "1"), completeRequest("mine", "me", "1"),
				completeRequest("other's", "me", "1"), completeRequest("mine", "me", "2"),
			}
			var got []string
			for _, err := range store.CompleteAll(t.Context(), requests) {
				got = append(got, fmt.Sprint(err))
			}
			const lost = "idempotency: claim was lost: redisstore: "
			want := []string{
				lost + `key "idempotency:absent": it is gone`,
				`redisstore: key "idempotency:text" holds a string, want a hash that this package wrote: ` +
					`give the store an Options.KeyPrefix of its own`,
				"<nil>",
				lost + `key "idempotency:other's": it is INPROGRESS under another owner`,
				"<nil>", // the second of the same: it is done already
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if data := direct.HGet(t.Context(), "idempotency:mine", "data").Val(); data != "1" {
				t.Errorf("data is %q, want that of the first request", data)
			}
		})
	}
}

// TestBulkWithoutPipeliner has a client that can send one command at a time. The answers are the same, and the guard is
// told that nothing is gained.
func TestBulkWithoutPipeliner(t *testing.T) {
	direct := redistest.GoRedis(t, redistest.Start(t))
	store := redisstore.New(struct{ redisstore.Client }{goredisclient.New(direct)})
	if _, gains := idempotency.Bulk(store); gains {
		t.Error("Bulk says that calls for many gain something")
	}
	for i, a := range store.ClaimAll(t.Context(), claimRequests(3)) {
		if a.Err != nil || !a.Claimed {
			t.Errorf("answer %d is %+v, want it claimed", i, a)
		}
	}
}

// shortened is a client that loses an answer.
type shortened struct{ redisstore.Pipeliner }

func (s shortened) DoAll(ctx context.Context, commands []redisstore.Command) []redisstore.Reply {
	return s.Pipeliner.DoAll(ctx, commands)[1:]
}

func TestBulkRepliesMissing(t *testing.T) {
	direct := redistest.GoRedis(t, redistest.Start(t))
	for i, a := range redisstore.New(shortened{goredisclient.New(direct)}).ClaimAll(t.Context(), claimRequests(3)) {
		if a.Claimed || !isUndecided(a.Err) {
			t.Errorf("answer %d is %+v, want it undecided", i, a)
		}
	}
}

// TestBulkCannotBeMade has calls that no server gets. Every answer says why.
func TestBulkCannotBeMade(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	store := redisstore.New(goredisclient.New(redistest.GoRedis(t, redistest.InMemory(t))))
	for _, test := range []struct {
		name  string
		ctx   context.Context
		store *redisstore.Store
		want  string
	}{
		{"context is done", cancelled, store, "context canceled"},
		{"not valid", t.Context(), redisstore.New(nil), "client is nil"},
	} {
		answers := test.store.ClaimAll(test.ctx, claimRequests(3))
		if len(answers) != 3 {
			t.Errorf("%s: %d answers, want 3", test.name, len(answers))
		}
		for i, a := range answers {
			if a.Claimed || a.Err == nil || !strings.Contains(a.Err.Error(), test.want) {
				t.Errorf("%s: answer %d is %+v, want an error that says %q", test.name, i, a, test.want)
			}
		}
	}
	if n := len(store.ReleaseAll(t.Context(), nil)); n != 0 {
		t.Errorf("%d answers to no request", n)
	}
}

// TestCluster has a cluster of one shard, whose server refuses a script that names no key or a key of another slot.
func TestCluster(t *testing.T) {
	address := redistest.StartCluster(t)
	direct := redistest.GoRedis(t, address)
	goRedis := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}, ContextTimeoutEnabled: true})
	defer goRedis.Close()
	cluster, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	must(t, err)
	defer cluster.Close()
	for name, client := range map[string]redisstore.Client{
		"go-redis": goredisclient.New(goRedis), "rueidis": rueidisclient.New(cluster),
	} {
		t.Run(name, func(t *testing.T) {
			store := redisstore.New(client, func(o *redisstore.Options) { o.KeyPrefix = name })
			must(t, direct.ScriptFlush(t.Context()).Err())
			requests := claimRequests(30)
			for i, a := range store.ClaimAll(t.Context(), requests) {
				if a.Err != nil || !a.Claimed || a.Entry.Owner != requests[i].Owner {
					t.Fatalf("answer %d is %+v, want it claimed by %s", i, a, requests[i].Owner)
				}
				must(t, store.Complete(t.Context(), completeRequest(requests[i].Key, requests[i].Owner, "1")))
			}
		})
	}
}
