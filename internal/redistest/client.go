package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// patience is how long clients wait for a reply by themselves: longer than any test, so that it is contexts that end calls.
const patience = time.Minute

// GoRedis returns a client of go-redis for an address. It is closed when the test ends.
func GoRedis(t testing.TB, address string, optFns ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: address, ContextTimeoutEnabled: true, ReadTimeout: patience, PoolSize: 64}
	for _, f := range optFns {
		f(o)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Rueidis returns a client of rueidis for an address. It is closed when the test ends. It uses no cache on the client's
// side, which needs a server that InMemory is not.
func Rueidis(t testing.TB, address string, optFns ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{
		InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true, ConnWriteTimeout: patience,
	}
	for _, f := range optFns {
		f(&o)
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
