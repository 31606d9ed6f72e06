package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// markTransition is one method of Watermarks, brought to where it succeeds.
type markTransition struct {
	name      string
	operation string // that meets the faults
	refused   bool   // a second copy of the request is
	prepare   func(t testing.TB, w watermark.Store)
	do        func(ctx context.Context, w watermark.Store) error
	before    map[string]int // other requests
	applied   map[string]any
}

func markTransitions() []markTransition {
	claimed := func(t testing.TB, w watermark.Store) { mustClaimMark(t, w, markClaim("mine"), "") }
	claim := func(r watermark.ClaimRequest) func(context.Context, watermark.Store) error {
		return func(ctx context.Context, w watermark.Store) error {
			position, err := w.Claim(ctx, r)
			if err == nil && !position.IsZero() {
				return fmt.Errorf("position %q, want none", position)
			}
			return err
		}
	}
	advance := func(to string, release bool) func(context.Context, watermark.Store) error {
		return func(ctx context.Context, w watermark.Store) error {
			return w.Advance(ctx, markAdvance("mine", to, release))
		}
	}
	late := markClaim("mine")
	late.Now, late.Lease, late.Expiry = now.Add(3*time.Hour), now.Add(4*time.Hour), now.Add(5*time.Hour)
	released := "N 0"
	return []markTransition{
		{name: "claim", operation: "UpdateItem", refused: true, prepare: func(testing.TB, watermark.Store) {},
			do: claim(markClaim("mine")), applied: map[string]any{"owner": "mine"}},
		{name: "claim after the expiry", operation: "PutItem", refused: true,
			prepare: func(t testing.TB, w watermark.Store) {
				mustClaimMark(t, w, markClaim("other"), "")
				mustAdvanceMark(t, w, markAdvance("other", "9", true))
			},
			do: claim(late), before: map[string]int{"UpdateItem": 1}, applied: map[string]any{"owner": "mine"}},
		{name: "advance", operation: "UpdateItem", prepare: claimed, do: advance("5", false),
			applied: map[string]any{"data": "001:5/2147483647"}},
		{name: "advance and release", operation: "UpdateItem", refused: true, prepare: claimed, do: advance("5", true),
			applied: map[string]any{"data": "001:5/2147483647", "in_progress_expiration": released}},
		{name: "release", operation: "UpdateItem", refused: true, prepare: claimed, do: advance("", true),
			applied: map[string]any{"in_progress_expiration": released}},
		{name: "rewind", operation: "UpdateItem", prepare: claimed, do: func(ctx context.Context, w watermark.Store) error {
			return w.Rewind(ctx, watermark.RewindRequest{Key: "k", Now: now, To: place("3"), Expiry: now.Add(time.Hour)})
		}, applied: map[string]any{"data": "001:3/2147483647"}},
	}
}

// TestWatermarkFaults puts each fault into each transition. An error must be an undecided one, and what the store says must
// be what the table holds.
func TestWatermarkFaults(t *testing.T) {
	lose, drop, hide := dynamotest.LoseReply, dynamotest.Drop, dynamotest.HideItem
	conflict := dynamotest.Fail("TransactionConflictException", "Transaction is ongoing for the item")
	throttle := dynamotest.Throttle("TableWriteKeyRangeThroughputExceeded")
	for _, test := range []struct {
		name    string
		script  []dynamotest.Fault
		done    bool
		applied bool
		writes  int
		hidden  bool
	}{
		{name: "none", done: true, applied: true, writes: 1},
		{name: "reply lost", script: []dynamotest.Fault{lose}, done: true, applied: true, writes: 2},
		{name: "reply lost twice", script: []dynamotest.Fault{lose, lose}, done: true, applied: true, writes: 3},
		{name: "reply lost and item hidden", script: []dynamotest.Fault{lose, hide}, done: true, applied: true, writes: 2, hidden: true},
		{name: "every reply lost", script: []dynamotest.Fault{lose, lose, lose, lose}, applied: true, writes: 4},
		{name: "request lost", script: []dynamotest.Fault{drop}, done: true, applied: true, writes: 2},
		{name: "every request lost", script: []dynamotest.Fault{drop, drop, drop, drop}, writes: 4},
		{name: "500", script: []dynamotest.Fault{dynamotest.ServerError}, done: true, applied: true, writes: 2},
		{name: "throttled for good", script: []dynamotest.Fault{throttle, throttle, throttle, throttle}, writes: 4},
		{name: "conflict", script: []dynamotest.Fault{conflict}, done: true, applied: true, writes: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t)
			client := proxy.Client(t, dynamotest.ShortRetries)
			for _, transition := range markTransitions() {
				t.Run(transition.name, func(t *testing.T) {
					p := newPlanter(t, client, layouts()[0].options)
					w := newWatermarks(t, p)
					transition.prepare(t, w)
					proxy.Script(transition.operation, test.script...)
					proxy.Requests()
					err := transition.do(t.Context(), w)
					requests := proxy.Requests()
					item := attributes(p.item(t, "k"))

					want := map[string]int{transition.operation: test.writes}
					for operation, n := range transition.before {
						want[operation] += n
					}
					if test.hidden && transition.refused {
						want["GetItem"] = 1
					}
					if diff := cmp.Diff(want, requests); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
					if test.done && err != nil || !test.done && !isUndecided(err) {
						t.Errorf("error is %v; want none: %t, or an undecided one", err, test.done)
					}
					applied := true
					for name, value := range transition.applied {
						applied = applied && item[name] == value
					}
					if applied != test.applied {
						t.Errorf("applied is %t, want %t; the item is %v", applied, test.applied, item)
					}
				})
			}
		})
	}
}

// TestWatermarkRefusedWithoutItem is about servers that do not say what stands in the way, and about what happens between
// the refusal and the read.
func TestWatermarkRefusedWithoutItem(t *testing.T) {
	release := func(t testing.TB, w watermark.Store) { mustAdvanceMark(t, w, markAdvance("other", "5", true)) }
	again := func(t testing.TB, w watermark.Store) { mustClaimMark(t, w, markClaim("third"), "5") }
	releaseThird := func(t testing.TB, w watermark.Store) { mustAdvanceMark(t, w, markAdvance("third", "6", true)) }
	for _, test := range []struct {
		name     string
		race     []func(testing.TB, watermark.Store) // before the first read, the second claim, the second read
		position string                              // empty: undecided, unless held
		held     bool
		requests map[string]int
	}{
		{name: "held", held: true, requests: map[string]int{"UpdateItem": 1, "GetItem": 1}},
		{name: "released meanwhile", race: []func(testing.TB, watermark.Store){release}, position: "5",
			requests: map[string]int{"UpdateItem": 2, "GetItem": 1}},
		{name: "released meanwhile and claimed", race: []func(testing.TB, watermark.Store){release, again}, held: true,
			requests: map[string]int{"UpdateItem": 2, "GetItem": 2}},
		{name: "released meanwhile twice", race: []func(testing.TB, watermark.Store){release, again, releaseThird},
			requests: map[string]int{"UpdateItem": 2, "GetItem": 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
			direct := newWatermarks(t, p)
			proxy := dynamotest.NewProxy(t)
			p.client = proxy.Client(t, dynamotest.ShortRetries)
			w := newWatermarks(t, p)
			mustClaimMark(t, direct, markClaim("other"), "")
			before := func(i int, f dynamotest.Fault) dynamotest.Fault {
				return func(x *dynamotest.Exchange) {
					if i < len(test.race) {
						test.race[i](t, direct)
					}
					f(x)
				}
			}
			proxy.Script("UpdateItem", dynamotest.HideItem, before(1, dynamotest.HideItem))
			proxy.Script("GetItem", before(0, (*dynamotest.Exchange).Pass), before(2, (*dynamotest.Exchange).Pass))
			got, err := w.Claim(t.Context(), markClaim("mine"))
			switch {
			case got != place(test.position):
				t.Errorf("position is %q, want %q", got, test.position)
			case test.position != "" && err != nil, test.held && !errors.Is(err, idempotency.ErrInProgress),
				test.position == "" && !test.held && !isUndecided(err):
				t.Errorf("error is %v", err)
			}
			if diff := cmp.Diff(test.requests, proxy.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// noQuota lets a client retry as often as there are faults.
func noQuota(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
		so.MaxAttempts, so.MaxBackoff, so.RateLimiter = 4, time.Millisecond, ratelimit.None
	})
}

// TestWatermarkUnderFaults has owners take a shard one after another while requests and replies get lost. What is
// acknowledged stays: each begins where the last advance that was acknowledged ended, or where one ended whose
// acknowledgement was lost, and none before.
func TestWatermarkUnderFaults(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	w := newWatermarks(t, newPlanter(t, proxy.Client(t, noQuota), layouts()[0].options))
	proxy.Random(11, func(chance *rand.Rand, operation string) dynamotest.Fault {
		return [...]dynamotest.Fault{
			nil, nil, dynamotest.LoseReply, dynamotest.LoseReply, dynamotest.Drop, dynamotest.HideItem,
		}[chance.IntN(6)]
	})
	defer proxy.Random(1, nil)
	at := now
	acknowledged, sent, claims := 0, 0, 0
	for round := range 150 {
		r := markClaim(fmt.Sprint("owner ", round))
		r.Now, r.Lease, r.Expiry = at, at.Add(time.Minute), at.Add(time.Hour)
		position, err := w.Claim(t.Context(), r)
		at = at.Add(time.Second)
		if err != nil {
			if !isUndecided(err) && !errors.Is(err, idempotency.ErrInProgress) {
				t.Fatalf("claim: %v", err)
			}
			at = at.Add(time.Minute)
			continue
		}
		claims++
		var reached int
		if !position.IsZero() {
			if _, err := fmt.Sscan(position.Sequence, &reached); err != nil {
				t.Fatal(err)
			}
		}
		if reached < acknowledged || reached > sent {
			t.Fatalf("owner %d begins at %d, want %d to %d", round, reached, acknowledged, sent)
		}
		for i := range 3 {
			sent = reached + i + 1
			a := markAdvance(r.Owner, fmt.Sprint(sent), i == 2)
			a.Now, a.Expiry = at, at.Add(time.Hour)
			err := w.Advance(t.Context(), a)
			if err == nil {
				acknowledged = sent
				continue
			}
			if !isUndecided(err) {
				t.Fatalf("advance by the owner: %v", err)
			}
			at = at.Add(time.Minute + 2*time.Second)
			break
		}
	}
	if claims < 20 || acknowledged < 50 {
		t.Errorf("%d claims and %d records are too few to say anything", claims, acknowledged)
	}
}

// TestWatermarkContradiction has writes refused that the item allows, which a writer without conditions can bring about.
// Nobody can say what happened then, and nothing is tried for ever.
func TestWatermarkContradiction(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	direct := newWatermarks(t, p)
	mustClaimMark(t, direct, markClaim("mine"), "")
	mustAdvanceMark(t, direct, markAdvance("mine", "5", false))
	proxy := dynamotest.NewProxy(t)
	p.client = proxy.Client(t, dynamotest.ShortRetries)
	w := newWatermarks(t, p)
	refuse := dynamotest.Fail("ConditionalCheckFailedException", "The conditional request failed")
	for _, test := range []struct {
		name     string
		script   []dynamotest.Fault
		do       func() error
		requests map[string]int
	}{
		{"advance", []dynamotest.Fault{refuse}, func() error { return w.Advance(t.Context(), markAdvance("mine", "6", true)) },
			map[string]int{"UpdateItem": 1, "GetItem": 1}},
		{"release", []dynamotest.Fault{refuse}, func() error { return w.Advance(t.Context(), markAdvance("mine", "", true)) },
			map[string]int{"UpdateItem": 1, "GetItem": 1}},
		{"release at an earlier position", []dynamotest.Fault{(*dynamotest.Exchange).Pass, refuse},
			func() error { return w.Advance(t.Context(), markAdvance("mine", "4", true)) },
			map[string]int{"UpdateItem": 2, "GetItem": 1}},
		{"rewind", []dynamotest.Fault{refuse}, func() error {
			return w.Rewind(t.Context(), watermark.RewindRequest{Key: "k", Now: now, Expiry: now.Add(time.Hour)})
		}, map[string]int{"UpdateItem": 1, "GetItem": 1}},
	} {
		proxy.Script("UpdateItem", test.script...)
		proxy.Requests()
		if err := test.do(); !isUndecided(err) || !strings.Contains(err.Error(), "the condition failed, but the item meets it") {
			t.Errorf("%s: error is %v, want one that tells the contradiction", test.name, err)
		}
		if diff := cmp.Diff(test.requests, proxy.Requests()); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", test.name, diff)
		}
	}
	mustClaimMark(t, direct, markClaim("mine"), "5") // as before
}
