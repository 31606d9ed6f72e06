package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/internal/redistest"
)

// TestHash holds the layout that other versions read, and when the server may delete what. The numbers are written out.
// The caller's clock is years away from the server's.
func TestHash(t *testing.T) {
	at := time.Date(2021, 3, 14, 13, 45, 7, 123_456_789, time.UTC)
	direct := redistest.GoRedis(t, redistest.Start(t))
	store := redisstore.New(goredisclient.New(direct), func(o *redisstore.Options) { o.KeyPrefix = "p:" })
	check := func(what string, ttl time.Duration, want map[string]string) {
		t.Helper()
		got, err := direct.HGetAll(t.Context(), "p:ns#1").Result()
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hash after %s (-want +got):\n%s", what, diff)
		}
		left, err := direct.PTTL(t.Context(), "p:ns#1").Result()
		must(t, err)
		if len(want) > 0 && (left > ttl || left < ttl-30*time.Second) {
			t.Errorf("after %s the server deletes the key in %v, want %v", what, left, ttl)
		}
	}
	r := idempotency.ClaimRequest{
		Key: "ns#1", Owner: "a", Fingerprint: "f", Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour), CountAttempts: true,
	}
	mustClaim(t, store, r)
	// To the end of the second in which it expires, and a minute.
	const hour = time.Hour + time.Minute + time.Second
	held := map[string]string{
		"status": "INPROGRESS", "owner": "a", "fingerprint": "f", "attempts": "1", "lease": "1615729567123", "expiry": "1615733107",
	}
	check("a claim that counts", hour, held)

	must(t, store.Release(t.Context(), idempotency.ReleaseRequest{Key: r.Key, Owner: "a", Now: at, CountAttempts: true}))
	check("a release that counts", hour, map[string]string{
		"status": "INPROGRESS", "attempts": "1", "lease": "0", "expiry": "1615733107",
	})

	r.Owner, r.Fingerprint = "b", ""
	mustClaim(t, store, r)
	check("a second claim, without a fingerprint", hour, map[string]string{
		"status": "INPROGRESS", "owner": "b", "attempts": "2", "lease": "1615729567123", "expiry": "1615733107",
	})

	must(t, store.Renew(t.Context(), idempotency.RenewRequest{
		Key: r.Key, Owner: "b", NewOwner: "c", Now: at, Lease: at.Add(2 * time.Minute), Expiry: at.Add(2 * time.Hour),
	}))
	check("a renewal", hour+time.Hour, map[string]string{
		"status": "INPROGRESS", "owner": "c", "attempts": "2", "lease": "1615729627123", "expiry": "1615736707",
	})

	must(t, store.Complete(t.Context(), idempotency.CompleteRequest{
		Key: r.Key, Owner: "c", Now: at, Expiry: at.Add(24 * time.Hour), Data: []byte(`{"a":1}`),
	}))
	check("a completion", hour+23*time.Hour, map[string]string{
		"status": "COMPLETED", "owner": "c", "data": `{"a":1}`, "expiry": "1615815907",
	})

	r.Owner, r.CountAttempts, r.Skew = "d", false, time.Hour
	r.Now = at.Add(25 * time.Hour)
	r.Lease, r.Expiry = r.Now.Add(3*time.Hour), r.Now.Add(time.Hour)
	mustClaim(t, store, r)
	check("a claim after the expiry, whose lease ends last", 4*time.Hour+time.Minute, map[string]string{
		"status": "INPROGRESS", "owner": "d", "lease": "1615830307123", "expiry": "1615823107",
	})
	must(t, store.Release(t.Context(), idempotency.ReleaseRequest{Key: r.Key, Owner: "d", Now: r.Now}))
	check("a release", 0, map[string]string{})
}

// TestExpiryInThePast has expiries in the caller's past. What the server deletes is not what decides, so it
// keeps the entry for a minute.
func TestExpiryInThePast(t *testing.T) {
	direct := redistest.GoRedis(t, redistest.Start(t))
	store := redisstore.New(goredisclient.New(direct))
	r := claimRequest("k", "a")
	r.Lease, r.Expiry = now.Add(-time.Hour), now.Add(-time.Minute)
	mustClaim(t, store, r)
	if left := direct.PTTL(t.Context(), "idempotency:k").Val(); left <= 30*time.Second || left > time.Minute {
		t.Errorf("the server deletes the key in %v, want a minute", left)
	}
}

// TestFarFuture has times as far away as time.Duration goes.
func TestFarFuture(t *testing.T) {
	store := redisstore.New(goredisclient.New(redistest.GoRedis(t, redistest.Start(t))))
	r := claimRequest("k", "a")
	r.Lease, r.Expiry = now.AddDate(300, 0, 0), now.AddDate(400, 0, 0)
	mustClaim(t, store, r)
	c := completeRequest("k", "a", "1")
	c.Expiry = r.Expiry
	must(t, store.Complete(t.Context(), c))
	again := claimRequest("k", "b")
	again.Now = now.AddDate(399, 0, 0)
	result, err := store.Claim(t.Context(), again)
	if err != nil || result.Claimed || !result.Entry.Expiry.Equal(time.Unix(r.Expiry.Unix(), 0)) {
		t.Errorf("Claim = %+v, %v; want it refused by what expires at %v", result, err, r.Expiry)
	}
}

// TestForeignEntries plants what this package never writes. It is neither claimed nor replayed nor changed, and the error
// names the key and what it is.
func TestForeignEntries(t *testing.T) {
	direct := redistest.GoRedis(t, redistest.Start(t))
	store := redisstore.New(goredisclient.New(direct))
	past := now.Add(-time.Hour)
	for _, test := range []struct {
		name  string
		plant func(ctx context.Context, key string) error
		want  string
	}{
		{"string", func(ctx context.Context, key string) error { return direct.Set(ctx, key, "x", 0).Err() },
			"holds a string, want a hash"},
		{"list", func(ctx context.Context, key string) error { return direct.LPush(ctx, key, "x").Err() },
			"holds a list, want a hash"},
		{"other hash", hash(direct, "a", "b"), `field status is "", want INPROGRESS or COMPLETED`},
		{"unknown status", hash(direct, "status", "EXPIRED", "expiry", past.Unix()),
			`field status is "EXPIRED", want INPROGRESS or COMPLETED`},
		{"no expiry", hash(direct, "status", "COMPLETED"), "status is COMPLETED and field expiry is missing, want epoch seconds"},
		{"neither lease nor expiry", hash(direct, "status", "INPROGRESS"),
			"status is INPROGRESS and field expiry is missing, want epoch seconds"},
		{"expiry with a fraction", hash(direct, "status", "COMPLETED", "expiry", "1.5"), `field expiry is "1.5", want a whole number`},
		{"lease in hexadecimal", hash(direct, "status", "INPROGRESS", "owner", "other", "lease", "0x10", "expiry", past.Unix()),
			`field lease is "0x10", want a whole number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, test.plant(t.Context(), "idempotency:"+test.name))
			before := direct.Dump(t.Context(), "idempotency:"+test.name).Val()
			result, claimErr := store.Claim(t.Context(), claimRequest(test.name, "mine"))
			if result.Claimed {
				t.Error("it was claimed")
			}
			for what, err := range map[string]error{
				"claim":    claimErr,
				"complete": store.Complete(t.Context(), completeRequest(test.name, "mine", "1")),
				"release":  store.Release(t.Context(), idempotency.ReleaseRequest{Key: test.name, Owner: "mine", Now: past}),
				"renew":    store.Renew(t.Context(), renewRequest(test.name, "mine", "new")),
			} {
				if !isUndecided(err) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "idempotency:"+test.name) {
					t.Errorf("%s: error is %v; want an undecided one that names the key and says %q", what, err, test.want)
				}
			}
			if after := direct.Dump(t.Context(), "idempotency:"+test.name).Val(); after != before {
				t.Errorf("what is held has changed")
			}
		})
	}
}

func hash(direct *redis.Client, pairs ...any) func(context.Context, string) error {
	return func(ctx context.Context, key string) error { return direct.HSet(ctx, key, pairs...).Err() }
}
