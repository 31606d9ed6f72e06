package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// TestCommit counts the requests of work with a transaction, in every layout: as many as without one.
func TestCommit(t *testing.T) {
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			g := newLedger(t, l)
			claim := "PutItem"
			if l.options.SortKeyAttribute != "" {
				claim = "UpdateItem"
			}
			result, err := g.do(t.Context(), g.guard)
			if err != nil || result.Value != 42 || result.Replayed {
				t.Fatalf("%+v, %v; want 42, done now", result, err)
			}
			g.expectRequests(t, map[string]int{claim: 1, "TransactWriteItems": 1})
			g.finish(t)

			result, err = g.do(t.Context(), g.guard)
			if err != nil || result.Value != 42 || !result.Replayed {
				t.Errorf("%+v, %v; want 42, replayed", result, err)
			}
			g.expectRequests(t, map[string]int{claim: 1})

			// Work that has asked for its transaction and put nothing into it is completed as any other, and that which
			// fails drops what it has collected.
			_, err = idempotency.Do(t.Context(), g.guard, "empty", func(ctx context.Context) (int, error) {
				dynamostore.Tx(ctx)
				return 1, nil
			})
			if err != nil {
				t.Error(err)
			}
			_, err = idempotency.Do(t.Context(), g.guard, "fails", func(ctx context.Context) (int, error) {
				if err := dynamostore.Tx(ctx).Update(g.balance()); err != nil {
					t.Error(err)
				}
				return 1, errors.New("no")
			})
			if err == nil || err.Error() != "no" {
				t.Errorf("error is %v; want the work's", err)
			}
			want := map[string]int{"PutItem": 2, "UpdateItem": 1, "DeleteItem": 1}
			if claim == "UpdateItem" {
				want = map[string]int{"UpdateItem": 3, "DeleteItem": 1}
			}
			g.expectRequests(t, want)
			g.finish(t)
		})
	}
}

// TestCommitFaults puts faults around the commit. Whatever happens, the completion and the work's writes are both there or
// both absent, the caller is told the truth, and the work is done once in the end.
//
// Conflicts, throttling and an expired client token are scripted: the server knows none of them.
func TestCommitFaults(t *testing.T) {
	lose, drop := dynamotest.LoseReply, dynamotest.Drop
	throttle := dynamotest.Throttle("TableWriteKeyRangeThroughputExceeded")
	conflict := cancel("None", "TransactionConflict", "None")
	repeat := func(f dynamotest.Fault, n int) []dynamotest.Fault { return slices.Repeat([]dynamotest.Fault{f}, n) }
	for _, test := range []struct {
		name    string
		script  []dynamotest.Fault // of the transaction
		reads   []dynamotest.Fault
		renew   bool // the token
		want    error
		applied bool
		free    bool // the claim is released
		commits int
		read    int
		release int
	}{
		{name: "reply lost", script: repeat(lose, 1), applied: true, commits: 2},
		{name: "reply lost twice", script: repeat(lose, 2), applied: true, commits: 3},
		{name: "reply lost, token expired", script: repeat(lose, 1), renew: true, applied: true, commits: 2},
		{name: "reply lost, token expired, items hidden", script: []dynamotest.Fault{lose, hideItems}, renew: true, applied: true,
			commits: 2, read: 1},
		{name: "reply lost, token expired, only another reason told", renew: true, applied: true, commits: 2, release: 1,
			script: []dynamotest.Fault{lose, cancel("ConditionalCheckFailed", "None", "None")}},
		{name: "every reply lost", script: repeat(lose, 4), applied: true, commits: 4, read: 1},
		{name: "every reply lost, read as well", script: repeat(lose, 12), reads: repeat(drop, 12), want: idempotency.ErrTransactionUndecided,
			applied: true, commits: 12, read: 12},
		{name: "every reply lost, token expired each time", script: repeat(lose, 4), renew: true, applied: true, commits: 4, read: 1},
		{name: "request lost", script: repeat(drop, 1), applied: true, commits: 2},
		{name: "every request lost at first", script: repeat(drop, 4), applied: true, commits: 5, read: 1},
		{name: "every request lost", script: repeat(drop, 12), want: idempotency.ErrTransactionUndecided, commits: 12, read: 3},
		{name: "500", script: repeat(dynamotest.ServerError, 1), applied: true, commits: 2},
		{name: "reply delayed past the call", script: repeat(dynamotest.DelayReply(ledgerTimeout+100*time.Millisecond), 1), applied: true, commits: 1, read: 1},
		{name: "conflict", script: repeat(conflict, 2), applied: true, commits: 3},
		{name: "throttled in part", script: []dynamotest.Fault{cancel("ThrottlingError", "None", "ProvisionedThroughputExceeded")},
			applied: true, commits: 2},
		{name: "throttled", script: repeat(throttle, 5), applied: true, commits: 6},
		{name: "in progress under the token", applied: true, commits: 2,
			script: []dynamotest.Fault{dynamotest.Fail("TransactionInProgressException", "in progress")}},
		{name: "parameter mismatch", want: idempotency.ErrTransactionUndecided, commits: 3, read: 3,
			script: repeat(dynamotest.Fail("IdempotentParameterMismatchException", "mismatch"), 3)},
		{name: "parameter mismatch, applied", applied: true, commits: 2, read: 1,
			script: []dynamotest.Fault{lose, dynamotest.Fail("IdempotentParameterMismatchException", "mismatch")}},
		{name: "condition failed", script: []dynamotest.Fault{cancel("ConditionalCheckFailed", "TransactionConflict", "None")},
			want: idempotency.ErrTransactionCancelled, free: true, commits: 1, release: 1},
		{name: "unknown reason", script: []dynamotest.Fault{cancel("None", "Unheard", "None")},
			want: idempotency.ErrTransactionCancelled, free: true, commits: 1, release: 1},
		{name: "no reasons", script: []dynamotest.Fault{cancel()},
			want: idempotency.ErrTransactionCancelled, free: true, commits: 1, release: 1},
		{name: "denied", script: []dynamotest.Fault{dynamotest.Fail("AccessDeniedException", "not authorized")},
			want: idempotency.ErrTransactionCancelled, free: true, commits: 1, release: 1},
		{name: "result refused", applied: true, commits: 2, script: []dynamotest.Fault{cancel("None", "None", "ValidationError")}},
		{name: "refused with and without the result", commits: 2, release: 1, free: true, want: idempotency.ErrTransactionCancelled,
			script: repeat(dynamotest.Fail("ValidationException", "One or more parameter values were invalid"), 2)},
	} {
		for _, client := range []struct {
			name    string
			options []func(*dynamodb.Options)
		}{{"SDK", nil}, {"ClientOptions", []func(*dynamodb.Options){dynamostore.ClientOptions}}} {
			t.Run(test.name+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				g := newLedger(t, layouts()[0], client.options...)
				g.wire.renew = test.renew
				g.proxy.Script("TransactWriteItems", test.script...)
				g.proxy.Script("GetItem", test.reads...)
				result, err := g.do(t.Context(), g.guard)
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("error is %v; want %v", err, test.want)
				}
				if want := test.want == idempotency.ErrTransactionUndecided; result.Unrecorded != want {
					t.Errorf("unrecorded is %t; want %t", result.Unrecorded, want)
				}
				want := map[string]int{"PutItem": 1, "TransactWriteItems": test.commits}
				if test.read > 0 {
					want["GetItem"] = test.read
				}
				if test.release > 0 {
					want["DeleteItem"] = test.release
				}
				g.expectRequests(t, want)
				if got := g.applied(t); got != test.applied {
					t.Errorf("applied is %t; want %t", got, test.applied)
				}
				if got := g.item(t, "ns#k") == nil; got != test.free {
					t.Errorf("the claim is released: %t; want %t", got, test.free)
				}
				// One token, one body.
				bodies := map[string][]byte{}
				for _, body := range g.wire.bodies {
					token := string(clientToken.Find(body))
					if first, ok := bodies[token]; ok && !bytes.Equal(first, body) {
						t.Errorf("under %s came\n%s\nand\n%s", token, first, body)
					}
					bodies[token] = body
				}
				if strings.HasPrefix(test.name, "result refused") {
					return // what is done has no result to replay
				}
				g.finish(t)
			})
		}
	}
}

// TestCommitOfALostClaim has others meddle with the claim before the commit: nothing of the transaction is applied.
func TestCommitOfALostClaim(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		meddle func(t testing.TB, g *ledger)
		want   string
	}{
		{"taken over", func(t testing.TB, g *ledger) {
			g.Plant(t, "ns#k", idempotency.Entry{Status: idempotency.InProgress, Owner: "other", Lease: time.Now().Add(time.Second), Expiry: time.Now().Add(time.Hour)})
		}, "it is INPROGRESS under another owner"},
		{"completed by another", func(t testing.TB, g *ledger) {
			g.Plant(t, "ns#k", idempotency.Entry{Status: idempotency.Completed, Owner: "other", Expiry: time.Now().Add(time.Hour)})
		}, "it is COMPLETED under another owner"},
		{"deleted by hand", func(t testing.TB, g *ledger) {
			_, err := g.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &g.table, Key: g.key("ns#k")})
			if err != nil {
				t.Error(err)
			}
		}, "it is gone"},
	} {
		for _, fault := range []dynamotest.Fault{nil, hideItems, dynamotest.DelayReply(ledgerTimeout + 100*time.Millisecond)} {
			g := newLedger(t, layouts()[0])
			g.proxy.Script("TransactWriteItems", func(x *dynamotest.Exchange) {
				test.meddle(t, g)
				if fault == nil {
					fault = (*dynamotest.Exchange).Pass
				}
				fault(x)
			})
			_, err := g.do(t.Context(), g.guard)
			if !errors.Is(err, idempotency.ErrClaimLost) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error is %v; want ErrClaimLost and %q", test.name, err, test.want)
			}
			if entry := g.account(t, "entry"); len(entry) > 0 {
				t.Errorf("%s: booked %v; want nothing", test.name, entry)
			}
			if n := g.proxy.Requests()["DeleteItem"]; n != 0 {
				t.Errorf("%s: %d releases; want none of what is another's", test.name, n)
			}
		}
	}
}

// TestCommitResultTooLarge stores the writes and the completion without a result that does not fit, whoever finds it.
func TestCommitResultTooLarge(t *testing.T) {
	const limit = 400 * 1024
	for _, test := range []struct {
		name    string
		size    int
		commits int
	}{{"fits", limit - 400, 1}, {"told by the server", limit - 67, 2}, {"told without a request", limit + 1, 1}} {
		g := newLedger(t, layouts()[0])
		work := func(ctx context.Context) (string, error) {
			_, err := g.book(ctx)
			return string(text(test.size))[2:test.size], err
		}
		if _, err := idempotency.Do(t.Context(), g.guard, "k", work); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		g.expectRequests(t, map[string]int{"PutItem": 1, "TransactWriteItems": test.commits})
		if !g.applied(t) {
			t.Errorf("%s: nothing is there", test.name)
		}
		_, err := idempotency.Do(t.Context(), g.guard, "k", work)
		if stored := test.name == "fits"; stored && err != nil || !stored && !errors.Is(err, idempotency.ErrResultNotStored) {
			t.Errorf("%s: the replay's error is %v; want ErrResultNotStored unless it fits", test.name, err)
		}
		if g.runs != 1 {
			t.Errorf("%s: the work ran %d times", test.name, g.runs)
		}
	}
}
