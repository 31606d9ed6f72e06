package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/internal/redistest"
)

// commands notes the commands that go out one at a time.
type commands struct {
	redisstore.Client
	keys []string
}

func (c *commands) Do(ctx context.Context, command redisstore.Command) ([]string, error) {
	c.keys = append(c.keys, command.Name+" "+command.Key)
	return c.Client.Do(ctx, command)
}

// TestGuardRequests counts what work under a key costs once the server knows the scripts: two commands that run it, one
// that replays it or finds it in progress, two that fail it.
func TestGuardRequests(t *testing.T) {
	address := redistest.Start(t)
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			sent := &commands{Client: client.connect(t, address, "", "")}
			guard, err := idempotency.New(client.name, redisstore.New(sent))
			must(t, err)
			failed := errors.New("no")
			do := func(key string, want error, work func() error) {
				t.Helper()
				_, err := idempotency.Do(t.Context(), guard, key, func(context.Context) (int, error) { return 1, work() })
				if !errors.Is(err, want) {
					t.Errorf("%s: error is %v, want %v", key, err, want)
				}
			}
			succeed, fail := func() error { return nil }, func() error { return failed }
			check := func(what string, n int, key string) {
				t.Helper()
				var want []string
				for range n {
					want = append(want, "EVALSHA idempotency:"+client.name+"#"+key)
				}
				if diff := cmp.Diff(want, sent.keys); diff != "" {
					t.Errorf("commands of %s (-want +got):\n%s", what, diff)
				}
				sent.keys = nil
			}
			do("warm", nil, succeed)
			do("warm 2", failed, fail)
			sent.keys = nil

			do("k1", nil, succeed)
			check("a first run", 2, "k1")
			do("k1", nil, fail)
			check("a replay", 1, "k1")
			do("k2", failed, fail)
			check("a failure", 2, "k2")
			do("k3", nil, func() error {
				check("a claim", 1, "k3")
				do("k3", idempotency.ErrInProgress, fail)
				check("a conflict", 1, "k3")
				return nil
			})
			check("a completion", 1, "k3")
		})
	}
}
