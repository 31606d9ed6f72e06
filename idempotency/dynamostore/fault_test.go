package dynamostore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// transition is one method of a Store, brought to where it succeeds.
type transition struct {
	name      string
	operation string
	prepare   func(t testing.TB, store idempotency.Store)
	do        func(ctx context.Context, store idempotency.Store) error
	applied   func(item map[string]types.AttributeValue) bool
}

var errNotClaimed = errors.New("refused")

func claimOf(r idempotency.ClaimRequest) func(context.Context, idempotency.Store) error {
	return func(ctx context.Context, store idempotency.Store) error {
		result, err := store.Claim(ctx, r)
		if err == nil && !result.Claimed {
			return errNotClaimed
		}
		if err == nil && r.CountAttempts && result.Entry.Attempts != 1 {
			return errors.New("attempts: " + strconv.Itoa(result.Entry.Attempts))
		}
		return err
	}
}

func transitions() []transition {
	claimed := func(t testing.TB, store idempotency.Store) { mustClaim(t, store, claimRequest("k", "mine")) }
	claimedCounted := func(t testing.TB, store idempotency.Store) { mustClaim(t, store, counted(claimRequest("k", "mine"))) }
	nothing := func(testing.TB, idempotency.Store) {}
	has := func(name, value string) func(map[string]types.AttributeValue) bool {
		return func(item map[string]types.AttributeValue) bool { return attributes(item)[name] == value }
	}
	return []transition{
		{"claim", "PutItem", nothing, claimOf(claimRequest("k", "mine")), has("owner", "mine")},
		{"claim that counts", "UpdateItem", nothing, claimOf(counted(claimRequest("k", "mine"))), has("attempts", "N 1")},
		{"complete", "UpdateItem", claimed, func(ctx context.Context, store idempotency.Store) error {
			return store.Complete(ctx, idempotency.CompleteRequest{
				Key: "k", Owner: "mine", Now: now, Expiry: now.Add(time.Hour), Data: []byte("1")})
		}, has("data", "1")},
		{"release", "DeleteItem", claimed, func(ctx context.Context, store idempotency.Store) error {
			return store.Release(ctx, idempotency.ReleaseRequest{Key: "k", Owner: "mine", Now: now})
		}, func(item map[string]types.AttributeValue) bool { return item == nil }},
		{"release that counts", "UpdateItem", claimedCounted, func(ctx context.Context, store idempotency.Store) error {
			return store.Release(ctx, idempotency.ReleaseRequest{Key: "k", Owner: "mine", Now: now, CountAttempts: true, Unstarted: true})
		}, func(item map[string]types.AttributeValue) bool {
			return attributes(item)["in_progress_expiration"] == "N 0" && attributes(item)["attempts"] == "N 0"
		}},
		{"renew", "UpdateItem", claimed, func(ctx context.Context, store idempotency.Store) error {
			return store.Renew(ctx, idempotency.RenewRequest{
				Key: "k", Owner: "mine", NewOwner: "new", Now: now, Lease: now.Add(2 * time.Minute), Expiry: now.Add(time.Hour)})
		}, has("owner", "new")},
	}
}

// TestFaults puts each fault into each transition. An error must be an undecided one, and what the store says must be
// what the table holds.
func TestFaults(t *testing.T) {
	const (
		done      = iota // the store says it is done, and it is
		undecided        // an undecided error, and nothing is applied
		unknown          // an undecided error, although it is applied
	)
	lose, drop, hide := dynamotest.LoseReply, dynamotest.Drop, dynamotest.HideItem
	throttle := dynamotest.Throttle("TableWriteKeyRangeThroughputExceeded")
	conflict := dynamotest.Fail("TransactionConflictException", "Transaction is ongoing for the item")
	replica := dynamotest.Fail("ReplicatedWriteConflictException", "another Region is writing")
	for _, test := range []struct {
		name      string
		script    []dynamotest.Fault
		cancelled bool // the context ends once the request is applied; no reply comes
		want      int
		writes    int
		reads     int
		contains  string
	}{
		{name: "none", want: done, writes: 1},
		{name: "reply lost", script: []dynamotest.Fault{lose}, want: done, writes: 2},
		{name: "reply lost twice", script: []dynamotest.Fault{lose, lose}, want: done, writes: 3},
		{name: "reply lost and item hidden", script: []dynamotest.Fault{lose, hide}, want: done, writes: 2, reads: 1},
		{name: "every reply lost", script: []dynamotest.Fault{lose, lose, lose, lose}, want: unknown, writes: 4},
		{name: "request lost", script: []dynamotest.Fault{drop}, want: done, writes: 2},
		{name: "every request lost", script: []dynamotest.Fault{drop, drop, drop, drop}, want: undecided, writes: 4},
		{name: "500", script: []dynamotest.Fault{dynamotest.ServerError}, want: done, writes: 2},
		{name: "reply delayed", script: []dynamotest.Fault{dynamotest.DelayReply(20 * time.Millisecond)}, want: done, writes: 1},
		{name: "reply delayed past the context", cancelled: true, want: unknown, writes: 1, contains: "context canceled"},
		{name: "throttled once", script: []dynamotest.Fault{throttle}, want: done, writes: 2},
		{name: "throttled for good", script: []dynamotest.Fault{throttle, throttle, throttle, throttle}, want: undecided, writes: 4,
			contains: "TableWriteKeyRangeThroughputExceeded on arn:aws:dynamodb:us-east-1:123456789012:table/throttled"},
		{name: "conflict", script: []dynamotest.Fault{conflict, replica}, want: done, writes: 3},
		{name: "conflict for good", script: []dynamotest.Fault{conflict, conflict, conflict, replica, replica}, want: undecided, writes: 5,
			contains: "ReplicatedWriteConflictException"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t)
			client := proxy.Client(t, dynamotest.ShortRetries)
			for _, transition := range transitions() {
				if test.name == "reply lost and item hidden" && transition.name == "release" {
					continue // what is deleted is not in the way of a second delete: nothing is refused
				}
				t.Run(transition.name, func(t *testing.T) {
					p := newPlanter(t, client, layouts()[0].options)
					transition.prepare(t, p)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					script := test.script
					if test.cancelled {
						script = []dynamotest.Fault{func(x *dynamotest.Exchange) {
							_, _ = x.Forward()
							cancel()
							x.Wait(time.Minute)
						}}
					}
					proxy.Script(transition.operation, script...)
					proxy.Requests()
					err := transition.do(ctx, p)
					requests := proxy.Requests()
					applied := transition.applied(p.item(t, "k"))

					want := map[string]int{transition.operation: test.writes}
					if test.reads > 0 {
						want["GetItem"] = test.reads
					}
					if diff := cmp.Diff(want, requests); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
					if test.want == done && err != nil || test.want != done && !isUndecided(err) {
						t.Errorf("error is %v; want none: %t, or an undecided one", err, test.want == done)
					}
					if want := test.want != undecided; applied != want {
						t.Errorf("applied is %t; want %t", applied, want)
					}
					if test.contains != "" && !strings.Contains(err.Error(), test.contains) {
						t.Errorf("error is %v; want it to contain %q", err, test.contains)
					}
				})
			}
		})
	}
}

// TestOwnClaimWithDefaultRetries has the SDK's own retry, with the delays users have, meet the claim it made.
func TestOwnClaimWithDefaultRetries(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	proxy.Script("PutItem", dynamotest.LoseReply)
	proxy.Requests()
	got := mustClaim(t, p, claimRequest("k", "mine"))
	want := idempotency.ClaimResult{Claimed: true, Entry: idempotency.Entry{
		Status: idempotency.InProgress, Owner: "mine", Fingerprint: "f",
		Lease: now.Add(time.Minute), Expiry: now.Truncate(time.Second).Add(time.Hour),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"PutItem": 2}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestRetryQuota uses up the tokens that a client has for its retries. What fails then is transient, not a fault of the
// configuration.
func TestRetryQuota(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t, dynamotest.ShortRetries), layouts()[0].options)
	proxy.Random(1, func(*rand.Rand, string) dynamotest.Fault { return dynamotest.ServerError })
	defer proxy.Random(1, nil)
	for range 100 { // 500 tokens, 14 a retry
		_, err := p.Claim(t.Context(), claimRequest("k", "mine"))
		if !isUndecided(err) {
			t.Fatalf("error is %v; want an undecided one", err)
		}
		if strings.Contains(err.Error(), "retry quota exceeded") {
			return
		}
	}
	t.Error("the retry quota was never exceeded")
}

// TestRefusedWithoutItem is about servers that do not say what stands in the way.
func TestRefusedWithoutItem(t *testing.T) {
	for _, test := range []struct {
		name     string
		counted  bool
		prepare  func(t testing.TB, p planter)
		race     []func(t testing.TB, p planter) // before the first read, the second claim, the second read
		want     string
		requests map[string]int
	}{
		{name: "held", prepare: claimOther, want: "held by other", requests: map[string]int{"PutItem": 1, "GetItem": 1}},
		{name: "held, counted", counted: true, prepare: claimOther, want: "held by other",
			requests: map[string]int{"UpdateItem": 1, "GetItem": 1}},
		{name: "gone meanwhile", prepare: claimOther, race: []func(testing.TB, planter){releaseOther}, want: "claimed",
			requests: map[string]int{"PutItem": 2, "GetItem": 1}},
		{name: "gone meanwhile, counted", counted: true, prepare: claimOther, race: []func(testing.TB, planter){releaseOther},
			want: "claimed", requests: map[string]int{"UpdateItem": 2, "GetItem": 1}},
		{name: "gone meanwhile and back", prepare: claimOther,
			race: []func(testing.TB, planter){releaseOther, claimOther, nil},
			want: "held by other", requests: map[string]int{"PutItem": 2, "GetItem": 2}},
		{name: "gone meanwhile twice", prepare: claimOther,
			race: []func(testing.TB, planter){releaseOther, claimOther, releaseOther},
			want: "undecided", requests: map[string]int{"PutItem": 2, "GetItem": 2}},
		{name: "completed meanwhile", prepare: claimOther, race: []func(testing.TB, planter){completeOther},
			want: "completed by other", requests: map[string]int{"PutItem": 1, "GetItem": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			direct := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
			proxy := dynamotest.NewProxy(t)
			store := dynamostore.New(proxy.Client(t, dynamotest.ShortRetries), direct.table)
			test.prepare(t, direct)
			before := func(i int, f dynamotest.Fault) dynamotest.Fault {
				return func(x *dynamotest.Exchange) {
					if i < len(test.race) && test.race[i] != nil {
						test.race[i](t, direct)
					}
					f(x)
				}
			}
			for _, operation := range []string{"PutItem", "UpdateItem"} {
				proxy.Script(operation, dynamotest.HideItem, before(1, dynamotest.HideItem))
			}
			proxy.Script("GetItem", before(0, (*dynamotest.Exchange).Pass), before(2, (*dynamotest.Exchange).Pass))

			r := claimRequest("k", "mine")
			r.CountAttempts = test.counted
			result, err := store.Claim(t.Context(), r)
			got := "claimed"
			switch {
			case isUndecided(err):
				got = "undecided"
			case err != nil:
				got = err.Error()
			case !result.Claimed && result.Entry.Status == idempotency.Completed:
				got = "completed by " + result.Entry.Owner
			case !result.Claimed:
				got = "held by " + result.Entry.Owner
			}
			if got != test.want {
				t.Errorf("Claim = %+v, %v, which is %s; want %s", result, err, got, test.want)
			}
			if diff := cmp.Diff(test.requests, proxy.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func claimOther(t testing.TB, p planter) { mustClaim(t, p, claimRequest("k", "other")) }

func releaseOther(t testing.TB, p planter) {
	if err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: "k", Owner: "other", Now: now}); err != nil {
		t.Error(err)
	}
}

func completeOther(t testing.TB, p planter) {
	err := p.Complete(t.Context(), idempotency.CompleteRequest{Key: "k", Owner: "other", Now: now, Expiry: now.Add(time.Hour)})
	if err != nil {
		t.Error(err)
	}
}

// TestOneWinnerUnderFaults has 64 claimants of one key lose requests and replies. One of them at most is told that it
// has the key, and that one has it.
func TestOneWinnerUnderFaults(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t, dynamotest.ShortRetries), layouts()[0].options)
	proxy.Random(7, func(chance *rand.Rand, operation string) dynamotest.Fault {
		switch {
		case operation != "PutItem":
			return nil
		case chance.IntN(4) == 0:
			return dynamotest.LoseReply
		case chance.IntN(4) == 0:
			return dynamotest.Drop
		}
		return nil
	})
	for round := range 5 {
		key := strconv.Itoa(round)
		var mu sync.Mutex
		var winners []string
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				r := claimRequest(key, strconv.Itoa(i))
				result, err := p.Claim(t.Context(), r)
				if err != nil && !isUndecided(err) {
					t.Errorf("error is %v; want an undecided one", err)
				}
				if result.Claimed {
					mu.Lock()
					defer mu.Unlock()
					winners = append(winners, r.Owner)
				}
			})
		}
		wg.Wait()
		owner, _ := attributes(p.item(t, key))["owner"].(string)
		if len(winners) > 1 || len(winners) == 1 && winners[0] != owner || owner == "" {
			t.Errorf("winners are %q, the owner in the table is %q; want at most one, the same", winners, owner)
		}
	}
}

// TestReadDenied has the reply of a claim get lost, a server that does not say what refused the second one, and a function
// that may not read. The first claim was applied, so nothing says that the store is unusable: the claim is undecided, and
// the guard gives it back.
func TestReadDenied(t *testing.T) {
	t.Parallel()
	direct := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	proxy := dynamotest.NewProxy(t)
	guard, err := idempotency.New("orders", dynamostore.New(proxy.Client(t, dynamotest.ShortRetries), direct.table))
	if err != nil {
		t.Fatal(err)
	}
	proxy.Script("PutItem", dynamotest.LoseReply, dynamotest.HideItem)
	proxy.Script("GetItem", dynamotest.Fail("AccessDeniedException", "not authorized to perform: dynamodb:GetItem"))
	_, err = guard.Claim(t.Context(), idempotency.Request{Key: "k"})
	if !isUndecided(err) || !strings.Contains(err.Error(), "GetItem") || !strings.Contains(err.Error(), "not authorized") {
		t.Errorf("error is %v; want an undecided one that says what is denied", err)
	}
	if diff := cmp.Diff(map[string]int{"PutItem": 2, "GetItem": 1, "DeleteItem": 1}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if item := direct.item(t, "orders#k"); item != nil {
		t.Errorf("the table holds %v; want the claim to be released", attributes(item))
	}
}
