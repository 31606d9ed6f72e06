package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/internal/redistest"
)

// transition is one method of a Store, brought to where it succeeds.
type transition struct {
	name    string
	prepare func(t testing.TB, store *redisstore.Store, key string)
	do      func(ctx context.Context, store *redisstore.Store, key string) error
	applied func(fields map[string]string) bool
}

func transitions() []transition {
	nothing := func(testing.TB, *redisstore.Store, string) {}
	claimed := func(t testing.TB, store *redisstore.Store, key string) {
		mustClaim(t, store, claimRequest(key, "mine"))
	}
	claimedCounted := func(t testing.TB, store *redisstore.Store, key string) {
		mustClaim(t, store, counted(claimRequest(key, "mine")))
	}
	has := func(name, value string) func(map[string]string) bool {
		return func(fields map[string]string) bool { return fields[name] == value }
	}
	claim := func(ctx context.Context, store *redisstore.Store, r idempotency.ClaimRequest) error {
		result, err := store.Claim(ctx, r)
		switch {
		case err == nil && !result.Claimed:
			return errors.New("refused")
		case err == nil && r.CountAttempts && result.Entry.Attempts != 1:
			return errors.New("attempts: " + strconv.Itoa(result.Entry.Attempts))
		}
		return err
	}
	return []transition{
		{"claim", nothing, func(ctx context.Context, store *redisstore.Store, key string) error {
			return claim(ctx, store, claimRequest(key, "mine"))
		}, has("owner", "mine")},
		{"claim that counts", nothing, func(ctx context.Context, store *redisstore.Store, key string) error {
			return claim(ctx, store, counted(claimRequest(key, "mine")))
		}, has("attempts", "1")},
		{"complete", claimed, func(ctx context.Context, store *redisstore.Store, key string) error {
			return store.Complete(ctx, completeRequest(key, "mine", "1"))
		}, has("data", "1")},
		{"release", claimed, func(ctx context.Context, store *redisstore.Store, key string) error {
			return store.Release(ctx, idempotency.ReleaseRequest{Key: key, Owner: "mine", Now: now})
		}, func(fields map[string]string) bool { return len(fields) == 0 }},
		{"release that counts", claimedCounted, func(ctx context.Context, store *redisstore.Store, key string) error {
			return store.Release(ctx, idempotency.ReleaseRequest{Key: key, Owner: "mine", Now: now, CountAttempts: true, Unstarted: true})
		}, func(fields map[string]string) bool { return fields["lease"] == "0" && fields["attempts"] == "0" }},
		{"renew", claimed, func(ctx context.Context, store *redisstore.Store, key string) error {
			return store.Renew(ctx, renewRequest(key, "mine", "new"))
		}, has("owner", "new")},
		{"mark", nothing, func(ctx context.Context, store *redisstore.Store, key string) error {
			return errors.Join(store.MarkAll(ctx, []idempotency.MarkRequest{markRequest(key, "mine")})...)
		}, has("status", "COMPLETED")},
		{"marks in bulk", nothing, func(ctx context.Context, store *redisstore.Store, key string) error {
			return errors.Join(store.MarkAll(ctx, []idempotency.MarkRequest{markRequest(key, "mine"), markRequest(key+" 2", "mine")})...)
		}, has("owner", "mine")},
		{"claims in bulk", nothing, func(ctx context.Context, store *redisstore.Store, key string) error {
			var errs []error
			for _, a := range store.ClaimAll(ctx, []idempotency.ClaimRequest{
				claimRequest(key, "mine"), claimRequest(key+" 2", "mine"), claimRequest(key+" 3", "mine"),
			}) {
				if a.Err == nil && !a.Claimed {
					a.Err = errors.New("refused")
				}
				errs = append(errs, a.Err)
			}
			return errors.Join(errs...)
		}, has("owner", "mine")},
	}
}

// TestFaults puts each fault into each transition. An error must be an undecided one, and what the store says must be what
// the server holds.
func TestFaults(t *testing.T) {
	const (
		done      = iota // the store says it is done, and it is
		undecided        // an undecided error, and nothing is applied
		unknown          // an undecided error, although it is applied
	)
	lose, drop, hang := redistest.LoseReply, redistest.Drop, redistest.Hang
	address := redistest.Start(t)
	direct := redistest.GoRedis(t, address)
	for _, transition := range transitions() { // so that the server knows the scripts
		store := redisstore.New(goredisclient.New(direct))
		transition.prepare(t, store, transition.name)
		must(t, transition.do(t.Context(), store, transition.name))
	}
	for _, client := range clients {
		for _, test := range []struct {
			name    string
			script  []redistest.Fault
			always  redistest.Fault // what becomes of all further ones
			want    int
			scripts int // how many are sent; where it is never done, at least
		}{
			{"none", nil, redistest.Pass, done, 1},
			{"reply lost", []redistest.Fault{lose}, redistest.Pass, done, 2},
			{"reply lost twice", []redistest.Fault{lose, lose}, redistest.Pass, done, 3},
			{"request lost", []redistest.Fault{drop}, redistest.Pass, done, 2},
			{"every reply lost", nil, lose, unknown, 2},
			{"every request lost", nil, drop, undecided, 2},
			{"no reply", nil, hang, unknown, 1},
		} {
			t.Run(client.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				for _, transition := range transitions() {
					t.Run(transition.name, func(t *testing.T) {
						proxy := redistest.NewProxy(t, address)
						timeout := time.Second
						if test.want == done {
							timeout = time.Minute
						}
						store := redisstore.New(client.connect(t, proxy.Address, "", ""),
							func(o *redisstore.Options) { o.CallTimeout = timeout })
						key := t.Name()
						transition.prepare(t, store, key)
						proxy.Script(test.script...)
						proxy.Choose(func() redistest.Fault { return test.always })
						proxy.Scripts()
						err := transition.do(t.Context(), store, key)
						scripts := proxy.Scripts()
						applied := transition.applied(direct.HGetAll(t.Context(), "idempotency:"+key).Val())
						if test.want == done && err != nil || test.want != done && !isUndecided(err) {
							t.Errorf("error is %v; want none: %t, or an undecided one", err, test.want == done)
						}
						if want := test.want != undecided; applied != want {
							t.Errorf("applied is %t; want %t", applied, want)
						}
						if scripts < test.scripts || test.want == done && scripts > test.scripts {
							t.Errorf("%d requests with scripts, want %d", scripts, test.scripts)
						}
					})
				}
			})
		}
	}
}

// TestCallsEnd has a server that does not answer. The caller's context ends a call, and so does the timeout.
func TestCallsEnd(t *testing.T) {
	for _, client := range clients {
		for _, test := range []struct {
			name               string
			context, ofTheCall time.Duration
		}{
			{"context", 100 * time.Millisecond, time.Hour},
			{"timeout", time.Hour, 100 * time.Millisecond},
		} {
			t.Run(client.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				proxy := redistest.NewProxy(t, redistest.Start(t))
				store := redisstore.New(client.connect(t, proxy.Address, "", ""),
					func(o *redisstore.Options) { o.CallTimeout = test.ofTheCall })
				proxy.Choose(func() redistest.Fault { return redistest.Hang })
				ctx, cancel := context.WithTimeout(t.Context(), test.context)
				defer cancel()
				start := time.Now()
				errs := transitionErrors(ctx, store)
				for i, a := range store.ClaimAll(ctx, claimRequests(3)) {
					errs[fmt.Sprint("claim in bulk ", i)] = a.Err
				}
				for what, err := range errs {
					if !isUndecided(err) {
						t.Errorf("%s: error is %v; want an undecided one", what, err)
					}
				}
				// The clients themselves would wait for a minute, each time.
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("five calls took %v, want less than a second", took)
				}
			})
		}
	}
}

// TestOneWinnerUnderFaults has 32 claimants of one key lose requests and replies. One of them at most is told that it has
// the key, and that one has it.
func TestOneWinnerUnderFaults(t *testing.T) {
	address := redistest.Start(t)
	direct := redistest.GoRedis(t, address)
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, address)
			store := redisstore.New(client.connect(t, proxy.Address, "", ""))
			chance := rand.New(rand.NewPCG(7, 7))
			proxy.Choose(func() redistest.Fault { // one at a time: see Proxy
				return []redistest.Fault{redistest.LoseReply, redistest.Drop, redistest.Pass, redistest.Pass}[chance.IntN(4)]
			})
			for round := range 5 {
				key := fmt.Sprint(client.name, round)
				var mu sync.Mutex
				var winners []string
				var wg sync.WaitGroup
				for i := range 32 {
					wg.Go(func() {
						result, err := store.Claim(t.Context(), claimRequest(key, strconv.Itoa(i)))
						if err != nil && !isUndecided(err) {
							t.Errorf("error is %v; want an undecided one", err)
						}
						if result.Claimed {
							mu.Lock()
							defer mu.Unlock()
							winners = append(winners, strconv.Itoa(i))
						}
					})
				}
				wg.Wait()
				owner := direct.HGet(t.Context(), "idempotency:"+key, "owner").Val()
				if len(winners) > 1 || len(winners) == 1 && winners[0] != owner || owner == "" {
					t.Errorf("winners are %q, the owner on the server is %q; want at most one, the same", winners, owner)
				}
			}
		})
	}
}

// TestRedelivery delivers records three times while the replies to a tenth of the requests get lost, and the server
// forgets its scripts. Every record is processed, and once.
func TestRedelivery(t *testing.T) {
	const records, deliveries = 100, 3
	address := redistest.Start(t)
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, address)
			store := redisstore.New(client.connect(t, proxy.Address, "", ""))
			guard, err := idempotency.New(client.name, store)
			must(t, err)
			var lost int
			chance := rand.New(rand.NewPCG(11, 11))
			proxy.Choose(func() redistest.Fault {
				if chance.IntN(10) > 0 {
					return redistest.Pass
				}
				lost++
				return redistest.LoseReply
			})
			direct := redistest.GoRedis(t, address, func(o *redis.Options) { o.PoolSize = 1 })
			var mu sync.Mutex
			ran := map[int]int{}
			for delivery := range deliveries {
				var group errgroup.Group
				group.SetLimit(8)
				for record := range records {
					group.Go(func() error {
						_, err := idempotency.Do(t.Context(), guard, strconv.Itoa(record), func(context.Context) (int, error) {
							mu.Lock()
							defer mu.Unlock()
							ran[record]++
							return record, nil
						})
						if err != nil && delivery == deliveries-1 {
							return fmt.Errorf("record %d: %w", record, err)
						}
						return nil
					})
				}
				if err := group.Wait(); err != nil {
					t.Error(err)
				}
				must(t, direct.ScriptFlush(t.Context()).Err())
			}
			proxy.Choose(nil)
			for record := range records {
				if ran[record] != 1 {
					t.Errorf("record %d ran %d times, want once", record, ran[record])
				}
			}
			if lost == 0 {
				t.Error("no reply was lost")
			}
		})
	}
}
