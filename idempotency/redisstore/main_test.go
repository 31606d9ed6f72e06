package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/idempotency/redisstore/rueidisclient"
	"github.com/oncekit/oncekit/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var servers = []struct {
	name  string
	start func(t testing.TB) string
}{
	{"in memory", redistest.InMemory},
	{"server", func(t testing.TB) string { return redistest.Start(t) }},
}

var clients = []struct {
	name string
	// connect returns a client as a user with this name and password, empty: without.
	connect func(t testing.TB, address, user, password string) redisstore.Client
}{
	{"go-redis", func(t testing.TB, address, user, password string) redisstore.Client {
		return goredisclient.New(redistest.GoRedis(t, address, func(o *redis.Options) { o.Username, o.Password = user, password }))
	}},
	{"rueidis", func(t testing.TB, address, user, password string) redisstore.Client {
		return rueidisclient.New(redistest.Rueidis(t, address, func(o *rueidis.ClientOption) { o.Username, o.Password = user, password }))
	}},
}

// now is a whole second and some milliseconds.
var now = time.Unix(time.Now().Unix(), 123_000_000)

func claimRequest(key, owner string) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: key, Owner: owner, Fingerprint: "f", Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour),
		Skew: time.Second,
	}
}

func counted(r idempotency.ClaimRequest) idempotency.ClaimRequest {
	r.CountAttempts = true
	return r
}

func completeRequest(key, owner, data string) idempotency.CompleteRequest {
	return idempotency.CompleteRequest{Key: key, Owner: owner, Now: now, Expiry: now.Add(time.Hour), Data: []byte(data)}
}

func renewRequest(key, owner, newOwner string) idempotency.RenewRequest {
	return idempotency.RenewRequest{
		Key: key, Owner: owner, NewOwner: newOwner, Now: now, Lease: now.Add(2 * time.Minute), Expiry: now.Add(2 * time.Hour),
	}
}

func mustClaim(t testing.TB, store idempotency.Store, r idempotency.ClaimRequest) idempotency.ClaimResult {
	t.Helper()
	result, err := store.Claim(t.Context(), r)
	if err != nil || !result.Claimed {
		t.Fatalf("Claim = %+v, %v; want it claimed", result, err)
	}
	return result
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command sends a command that tests need and stores do not.
func command(t testing.TB, client *redis.Client, args ...any) any {
	t.Helper()
	reply, err := client.Do(context.WithoutCancel(t.Context()), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}
