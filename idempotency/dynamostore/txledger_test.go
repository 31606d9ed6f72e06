package dynamostore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// wire sees the requests of a client on their way, each attempt of the SDK.
type wire struct {
	next  dynamodb.HTTPClient
	renew bool // gives each transaction a client token of its own, as if the one before had expired

	mu     sync.Mutex
	bodies [][]byte // of the transactions
}

var clientToken = regexp.MustCompile(`"ClientRequestToken":"[^"]*"`)

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.bodies = append(w.bodies, body)
		w.mu.Unlock()
		if w.renew {
			body = clientToken.ReplaceAll(body, fmt.Appendf(nil, `"ClientRequestToken":%q`, rand.Text()))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return w.next.Do(r)
}

func (w *wire) on(o *dynamodb.Options) { w.next, o.HTTPClient = o.HTTPClient, w }

// ledger is a table of claims, one of accounts, and work that books in the second: an entry, which must not be there
// before, and the balance.
type ledger struct {
	planter         // past the proxy
	accounts string // name of the table
	proxy    *dynamotest.Proxy
	wire     *wire
	guard    *idempotency.Guard // through the proxy
	lease    time.Duration
	runs     int
}

// Short, since tests wait for their ends, and long for what is done within them.
const (
	ledgerLease   = time.Second
	ledgerTimeout = time.Second // of a call
)

func newLedger(t testing.TB, l layout, clientOptions ...func(*dynamodb.Options)) *ledger {
	t.Helper()
	direct := dynamotest.Client(t)
	g := &ledger{
		planter: newPlanter(t, direct, l.options), accounts: dynamotest.Table(t, direct), proxy: dynamotest.NewProxy(t),
		wire: &wire{}, lease: ledgerLease,
	}
	client := g.proxy.Client(t, append(clientOptions, dynamotest.ShortRetries, g.wire.on)...)
	g.guard = g.newGuard(t, client)
	return g
}

func (l *ledger) newGuard(t testing.TB, client *dynamodb.Client) *idempotency.Guard {
	t.Helper()
	store := dynamostore.New(client, l.table, func(o *dynamostore.Options) {
		*o = l.options
		o.CallTimeout = ledgerTimeout
	})
	guard, err := idempotency.New("ns", store, func(o *idempotency.Options) {
		o.Lease, o.Skew, o.Wait = l.lease, time.Millisecond, 20*time.Second
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func (l *ledger) entry() types.Put {
	return types.Put{
		TableName: aws.String(l.accounts), Item: map[string]types.AttributeValue{"id": s("entry"), "text": s("one"), "more": s("two"), "last": n(3)},
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (l *ledger) balance() types.Update {
	return types.Update{
		TableName: aws.String(l.accounts), Key: map[string]types.AttributeValue{"id": s("balance")},
		UpdateExpression:          aws.String("ADD amount :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":amount": n(1)},
	}
}

func (l *ledger) book(ctx context.Context) (int, error) {
	l.runs++
	tx := dynamostore.Tx(ctx)
	if err := tx.Put(l.entry()); err != nil {
		return 0, err
	}
	return 42, tx.Update(l.balance())
}

// do does the work of one key, and again if it was done before its lease ended.
func (l *ledger) do(ctx context.Context, guard *idempotency.Guard) (idempotency.Result[int], error) {
	return idempotency.Do(ctx, guard, "k", l.book)
}

func (l *ledger) account(t testing.TB, id string) map[string]any {
	t.Helper()
	out, err := l.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(l.accounts), Key: map[string]types.AttributeValue{"id": s(id)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return attributes(out.Item)
}

// applied reports whether the completion and the work's writes are there, and fails the test if it is some of them only.
func (l *ledger) applied(t testing.TB) bool {
	t.Helper()
	completed := attributes(l.item(t, "ns#k"))[l.options.StatusAttribute] == "COMPLETED"
	booked, balance := l.account(t, "entry")["text"] == "one", l.account(t, "balance")["amount"]
	if all := completed && booked && balance == "N 1"; all || !completed && !booked && balance == nil {
		return all
	}
	t.Errorf("completed: %t, booked: %t, balance: %v; want all or nothing, and 1", completed, booked, balance)
	return completed
}

// finish does the work again, without faults, until it is done, and checks that all of it is there once.
func (l *ledger) finish(t testing.TB) {
	t.Helper()
	done := l.applied(t)
	runs := l.runs
	result, err := l.do(t.Context(), l.newGuard(t, l.client))
	if err != nil || result.Value != 42 {
		t.Errorf("again: %+v, %v; want 42", result, err)
	}
	if ran := l.runs - runs; done && ran != 0 || !done && ran != 1 || result.Replayed != done {
		t.Errorf("again: the work ran %d times, replayed: %t; want it to run if it was not done, which was %t", ran, result.Replayed, done)
	}
	if !l.applied(t) {
		t.Error("the work is done, but nothing is there")
	}
}

// cancel answers that a transaction is cancelled for these reasons, one an action. The request does not reach the server.
func cancel(codes ...string) dynamotest.Fault {
	reasons := make([]string, len(codes))
	for i, code := range codes {
		reasons[i] = `{"Code":` + strconv.Quote(code) + `,"Message":"as scripted"}`
	}
	return func(x *dynamotest.Exchange) {
		x.Answer(dynamotest.Reply{Status: http.StatusBadRequest, Body: fmt.Appendf(nil,
			`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[%s]}`,
			strings.Join(reasons, ","))})
	}
}

var reasonItem = regexp.MustCompile(`"Item":\{.*?\}\}`)

// hideItems takes the items out of the reasons of a cancelled transaction.
func hideItems(x *dynamotest.Exchange) {
	reply, err := x.Forward()
	if err != nil {
		x.Reset()
		return
	}
	reply.Body = reasonItem.ReplaceAll(reply.Body, []byte(`"Hidden":0`))
	x.Answer(reply)
}

func (l *ledger) expectRequests(t testing.TB, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, l.proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
