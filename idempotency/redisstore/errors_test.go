package redisstore_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/internal/redistest"
)

// isUndecided reports whether err is one that leaves it open what happened.
func isUndecided(err error) bool {
	if err == nil {
		return false
	}
	for _, decided := range []error{
		idempotency.ErrInProgress, idempotency.ErrClaimLost, idempotency.ErrAlreadyCompleted, idempotency.ErrResultNotStored,
		idempotency.ErrStoreFull, idempotency.ErrStoreUnusable, idempotency.ErrLeaseTooShort,
	} {
		if errors.Is(err, decided) {
			return false
		}
	}
	return true
}

// transitionErrors returns what each method says of a key that is absent.
func transitionErrors(ctx context.Context, store *redisstore.Store) map[string]error {
	_, claim := store.Claim(ctx, claimRequest("k", "mine"))
	return map[string]error{
		"claim":    claim,
		"complete": store.Complete(ctx, completeRequest("k", "mine", "1")),
		"release":  store.Release(ctx, idempotency.ReleaseRequest{Key: "k", Owner: "mine", Now: now}),
		"renew":    store.Renew(ctx, renewRequest("k", "mine", "new")),
	}
}

func TestUnusable(t *testing.T) {
	for _, client := range clients {
		for _, test := range []struct {
			name string
			// rule is a command that the server gets once the store's client is connected.
			rule []any
			want string
		}{
			{"no permission for scripts", []any{"ACL", "SETUSER", "someone", "-@scripting"}, "NOPERM"},
			{"no permission for the key", []any{"ACL", "SETUSER", "someone", "resetkeys", "~other:*"}, "NOPERM"},
			{"no permission for what the scripts run", []any{"ACL", "SETUSER", "someone", "-hgetall", "-hmget"}, "can't run this command"},
		} {
			t.Run(client.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				address := redistest.Start(t)
				direct := redistest.GoRedis(t, address)
				command(t, direct, "ACL", "SETUSER", "someone", "on", ">secret", "~*", "+@all")
				store := redisstore.New(client.connect(t, address, "someone", "secret"))
				mustClaim(t, store, claimRequest("before", "mine"))
				command(t, direct, test.rule...)
				for what, err := range transitionErrors(t.Context(), store) {
					if !errors.Is(err, idempotency.ErrStoreUnusable) || !strings.Contains(err.Error(), test.want) ||
						!strings.Contains(err.Error(), `key "idempotency:k"`) {
						t.Errorf("%s: error is %v; want %v that says %s and names the key", what, err, idempotency.ErrStoreUnusable, test.want)
					}
				}
			})
		}
	}
}

// TestPermissions has a user that may do what the package's comment says, and no more.
func TestPermissions(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	must(t, err)
	_, rule, _ := strings.Cut(string(source), "ACL SETUSER ")
	rule, _, found := strings.Cut(rule, "\n")
	if !found {
		t.Fatal("the package's comment has no ACL rule")
	}
	setUser := []any{"ACL", "SETUSER"}
	for _, word := range strings.Fields(rule) {
		setUser = append(setUser, word)
	}
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t)
			direct := redistest.GoRedis(t, address)
			command(t, direct, setUser...)
			for _, transition := range transitions() {
				store := redisstore.New(client.connect(t, address, "orders", "password"))
				transition.prepare(t, store, transition.name)
				if err := transition.do(t.Context(), store, transition.name); err != nil {
					t.Errorf("%s: %v", transition.name, err)
				}
			}
			// A takeover, and what is of another layout, need the rest.
			store := redisstore.New(client.connect(t, address, "orders", "password"))
			late := claimRequest("claim", "next")
			late.Now, late.Lease, late.Expiry = now.Add(2*time.Minute), now.Add(3*time.Minute), now.Add(time.Hour)
			mustClaim(t, store, late)
			must(t, direct.Set(t.Context(), "idempotency:text", "x", 0).Err())
			must(t, direct.HSet(t.Context(), "idempotency:other", "a", "b").Err())
			for key, want := range map[string]string{"text": "holds a string", "other": "field status"} {
				if err := store.Complete(t.Context(), completeRequest(key, "mine", "1")); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want it to say %q", key, err, want)
				}
			}
		})
	}
}

// A client of go-redis connects with the first call, one of rueidis when it is made.
func TestPassword(t *testing.T) {
	address := redistest.Start(t, "--requirepass", "secret")
	for _, test := range []struct{ name, user, password, want string }{
		{"wrong", "", "guess", "WRONGPASS"},
		{"wrong user", "nobody", "secret", "WRONGPASS"},
		{"missing", "", "", "auth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := redisstore.New(clients[0].connect(t, address, test.user, test.password))
			for what, err := range transitionErrors(t.Context(), store) {
				if !errors.Is(err, idempotency.ErrStoreUnusable) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.want)) {
					t.Errorf("%s: error is %v; want %v that says %s", what, err, idempotency.ErrStoreUnusable, test.want)
				}
			}
		})
	}
	mustClaim(t, redisstore.New(clients[0].connect(t, address, "", "secret")), claimRequest("k", "mine"))
}

// TestReplica has a primary become a replica, as it does in a failover. That heals, so the store is not unusable.
func TestReplica(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			primary, address := redistest.Start(t), redistest.Start(t)
			store := redisstore.New(client.connect(t, address, "", ""), func(o *redisstore.Options) { o.CallTimeout = time.Second })
			mustClaim(t, store, claimRequest("before", "mine"))
			direct := redistest.GoRedis(t, address)
			host, port, err := net.SplitHostPort(primary)
			must(t, err)
			command(t, direct, "CONFIG", "SET", "replica-serve-stale-data", "yes")
			command(t, direct, "REPLICAOF", host, port)
			_, err = store.Claim(t.Context(), claimRequest("k", "mine"))
			if !isUndecided(err) || !strings.Contains(err.Error(), "READONLY") || !strings.Contains(err.Error(), "want the primary") {
				t.Errorf("error is %v; want an undecided one that says READONLY", err)
			}
			command(t, direct, "REPLICAOF", "NO", "ONE")
			mustClaim(t, store, claimRequest("after", "mine"))
		})
	}
}

func TestServerGone(t *testing.T) {
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			var store *redisstore.Store
			t.Run("alive", func(t2 *testing.T) {
				store = redisstore.New(client.connect(t, redistest.Start(t2), "", ""),
					func(o *redisstore.Options) { o.CallTimeout = 300 * time.Millisecond })
				mustClaim(t2, store, claimRequest("before", "mine"))
			})
			for what, err := range transitionErrors(t.Context(), store) {
				if !isUndecided(err) {
					t.Errorf("%s: error is %v; want an undecided one", what, err)
				}
			}
		})
	}
}

// scripted answers as it is told.
type scripted struct {
	replies []redisstore.Reply
	names   []string
}

func (s *scripted) Do(_ context.Context, c redisstore.Command) ([]string, error) {
	s.names = append(s.names, c.Name)
	r := s.replies[0]
	s.replies = s.replies[1:]
	return r.Values, r.Err
}

// TestReplies has replies that only other servers, or none, give.
func TestReplies(t *testing.T) {
	failed := func(text string) redisstore.Reply { return redisstore.Reply{Err: errors.New(text)} }
	for _, test := range []struct {
		name    string
		replies []redisstore.Reply
		want    error  // nil: an undecided one
		says    string // part of it
	}{
		{"full before version 7", []redisstore.Reply{failed(
			"ERR Error running script (call to f_0): @user_script:5: -OOM command not allowed when used memory > 'maxmemory'.")},
			idempotency.ErrStoreFull, "OOM"},
		{"full", []redisstore.Reply{failed("-OOM command not allowed")}, idempotency.ErrStoreFull, "OOM"},
		{"a word that begins alike", []redisstore.Reply{failed("dial tcp: lookup OOMPH: no such host")}, nil, "OOMPH"},
		{"unknown script twice", []redisstore.Reply{failed("NOSCRIPT No"), failed("NOSCRIPT No")}, nil, "NOSCRIPT"},
		{"no values", []redisstore.Reply{{}}, nil, "the script's reply is []"},
		{"another script's", []redisstore.Reply{{Values: []string{"OK"}}}, nil, `the script's reply is ["OK"]`},
		{"too few values", []redisstore.Reply{{Values: []string{"done"}}}, nil, `the script's reply is ["done"]`},
		{"no count", []redisstore.Reply{{Values: []string{"done", "0", "many"}}}, nil, "many"},
		{"half a pair", []redisstore.Reply{{Values: []string{"held", "status"}}}, nil, `the script's reply is ["held" "status"]`},
		{"held by nothing", []redisstore.Reply{{Values: []string{"held"}}}, nil, "the script's reply is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := redisstore.New(&scripted{replies: test.replies}).Claim(t.Context(), claimRequest("k", "mine"))
			if result.Claimed || test.want == nil && !isUndecided(err) || !errors.Is(err, test.want) && test.want != nil {
				t.Fatalf("Claim = %+v, %v; want %v, or an undecided error", result, err, test.want)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), `key "idempotency:k"`) {
				t.Errorf("error is %v; want it to say %q and to name the key", err, test.says)
			}
		})
	}
}

func TestUnknownScript(t *testing.T) {
	client := &scripted{replies: []redisstore.Reply{
		{Err: errors.New("NOSCRIPT No matching script. Please use EVAL.")},
		{Values: []string{"done", "0", "0"}}, {Values: []string{"done", "0", "0"}},
	}}
	store := redisstore.New(client)
	mustClaim(t, store, claimRequest("k", "mine"))
	mustClaim(t, store, claimRequest("k", "mine"))
	if diff := cmp.Diff([]string{"EVALSHA", "EVAL", "EVALSHA"}, client.names); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		client redisstore.Client
		with   func(*redisstore.Options)
		want   string // empty: none
	}{
		{"defaults", &scripted{}, nil, ""},
		{"no client", nil, nil, "client is nil"},
		{"nil client", (*scripted)(nil), nil, "client is nil"},
		{"adapter of nil", goredisclient.New(nil), nil, "client is nil"},
		{"negative timeout", &scripted{}, func(o *redisstore.Options) { o.CallTimeout = -1 },
			"Options.CallTimeout is -1ns, want more than 0, or 0 for 3s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := redisstore.New(test.client, test.with)
			err := store.Validate()
			if test.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate: error is %v, want %q", err, test.want)
			}
			for what, got := range transitionErrors(t.Context(), store) {
				if !errors.Is(got, err) {
					t.Errorf("%s: error is %v, want %v", what, got, err)
				}
			}
			if _, got := idempotency.New("orders", store); !errors.Is(got, err) {
				t.Errorf("idempotency.New: error is %v, want %v", got, err)
			}
		})
	}
}
