package dynamostore_test

import (
	"errors"
	"fmt"
	"strings"
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

// TestRequests counts what each way through the store costs when nothing goes wrong.
func TestRequests(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			p := newPlanter(t, client, l.options)
			complete := func(owner string) error {
				return p.Complete(t.Context(), idempotency.CompleteRequest{
					Key: "k", Owner: owner, Now: now, Expiry: now.Add(time.Hour), Data: []byte("1")})
			}
			release := func(owner string, counted bool) error {
				return p.Release(t.Context(), idempotency.ReleaseRequest{
					Key: "k", Owner: owner, Now: now, CountAttempts: counted})
			}
			expect := func(what string, want map[string]int, err, wantErr error) {
				t.Helper()
				if !errors.Is(err, wantErr) {
					t.Fatalf("%s: error is %v; want %v", what, err, wantErr)
				}
				if diff := cmp.Diff(want, proxy.Requests()); diff != "" {
					t.Errorf("requests of %s (-want +got):\n%s", what, diff)
				}
			}
			claim := func(owner string) error { return claimOf(claimRequest("k", owner))(t.Context(), p) }
			claimed := map[string]int{"PutItem": 1}
			if l.options.SortKeyAttribute != "" {
				claimed = map[string]int{"UpdateItem": 1}
			}
			proxy.Requests()

			expect("a claim", claimed, claim("a"), nil)
			expect("a conflict", claimed, claim("b"), errNotClaimed)
			expect("a release by another", map[string]int{"DeleteItem": 1}, release("b", false), idempotency.ErrClaimLost)
			expect("a release", map[string]int{"DeleteItem": 1}, release("a", false), nil)
			expect("a second release", map[string]int{"DeleteItem": 1}, release("a", false), nil)
			expect("a claim", claimed, claim("c"), nil)
			expect("a completion by another", map[string]int{"UpdateItem": 1}, complete("b"), idempotency.ErrClaimLost)
			expect("a completion", map[string]int{"UpdateItem": 1}, complete("c"), nil)
			expect("a second completion", map[string]int{"UpdateItem": 1}, complete("c"), nil)
			expect("a replay", claimed, claim("d"), errNotClaimed)

			r := counted(claimRequest("k2", "a"))
			mustClaim(t, p, r)
			expect("a claim that counts", map[string]int{"UpdateItem": 1}, nil, nil)
			err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: "k2", Owner: "a", Now: now, CountAttempts: true})
			expect("a release that counts", map[string]int{"UpdateItem": 1}, err, nil)

			// The count of an expired claim ends with it, at the cost of a write.
			r.Owner, r.Now = "b", now.Add(2*time.Hour)
			r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
			if got := mustClaim(t, p, r).Entry.Attempts; got != 1 {
				t.Errorf("attempts after the expiry are %d; want 1", got)
			}
			expect("a claim that counts after the expiry", map[string]int{"UpdateItem": 1, "PutItem": 1}, nil, nil)
		})
	}
}

// TestResultTooLarge completes without the result rather than not at all, whoever finds it too large.
func TestResultTooLarge(t *testing.T) {
	const limit = 400 * 1024
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	for _, l := range layouts()[:2] {
		p := newPlanter(t, client, l.options)
		for _, test := range []struct {
			name   string
			data   []byte
			stored bool
			writes int
			want   string
		}{
			{"fits", text(limit - 400), true, 1, ""},
			{"told by the server", text(limit - 150), false, 2, "bytes, and an item with all its attributes at most 409600"},
			{"told without a request", text(limit + 1), false, 1, "the result has 409601 bytes"},
			{"not text", []byte("\"\xff\""), false, 1, "3 bytes are not valid UTF-8"},
			{"not JSON", []byte("done"), false, 1, "4 bytes are not JSON"},
			{"not even that", []byte{}, false, 1, "0 bytes are not JSON"},
			{"none", nil, false, 1, ""},
		} {
			t.Run(l.name+"/"+test.name, func(t *testing.T) {
				r := claimRequest(test.name, "mine")
				r.Fingerprint = strings.Repeat("f", 200)
				mustClaim(t, p, r)
				complete := idempotency.CompleteRequest{
					Key: r.Key, Owner: "mine", Now: now, Expiry: now.Add(time.Hour), Data: test.data}
				proxy.Requests()
				err := p.Complete(t.Context(), complete)
				if test.want == "" && err != nil || test.want != "" && !errors.Is(err, idempotency.ErrResultNotStored) ||
					err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("error is %v; want it to contain %q", err, test.want)
				}
				if diff := cmp.Diff(map[string]int{"UpdateItem": test.writes}, proxy.Requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				item := p.item(t, r.Key)
				if got := attributes(item)[l.options.StatusAttribute]; got != "COMPLETED" {
					t.Errorf("status is %v; want COMPLETED", got)
				}
				if _, ok := item[l.options.DataAttribute]; ok != test.stored {
					t.Errorf("result is stored: %t; want %t", ok, test.stored)
				}
			})
		}
	}
}

// TestResultRefused has a server that has other reasons not to take a result. What it refuses without one as well is
// undecided.
func TestResultRefused(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	refuse := dynamotest.Fail("ValidationException", "One or more parameter values were invalid")
	for i, faults := range [][]dynamotest.Fault{{refuse}, {refuse, refuse}} {
		r := claimRequest(strings.Repeat("k", i+1), "mine")
		mustClaim(t, p, r)
		proxy.Script("UpdateItem", faults...)
		proxy.Requests()
		err := p.Complete(t.Context(), idempotency.CompleteRequest{
			Key: r.Key, Owner: "mine", Now: now, Expiry: now.Add(time.Hour), Data: []byte("1")})
		if i == 0 && (!errors.Is(err, idempotency.ErrResultNotStored) || !strings.Contains(err.Error(), "parameter values were invalid")) ||
			i == 1 && !isUndecided(err) {
			t.Errorf("refused %d times: error is %v; want ErrResultNotStored if once, undecided if twice", i+1, err)
		}
		if diff := cmp.Diff(map[string]int{"UpdateItem": 2}, proxy.Requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		want := []string{"COMPLETED", "INPROGRESS"}[i]
		if got := attributes(p.item(t, r.Key))["status"]; got != want {
			t.Errorf("refused %d times: status is %v; want %s", i+1, got, want)
		}
	}
}

// text returns a JSON string of size bytes.
func text(size int) []byte { return []byte(`"` + strings.Repeat("x", size-2) + `"`) }

// TestUnusable has tables and permissions that no request can succeed with. The error says so in the same words for
// every key.
func TestUnusable(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	sorted := func(o *dynamostore.Options) { o.SortKeyAttribute = "sk" }
	numbered := func(o *dynamostore.Options) { o.KeyAttribute = "n" }
	keyOf := func(name string, kind types.ScalarAttributeType) string {
		table := "oncekit-test-unusable-" + name + fmt.Sprint(time.Now().UnixNano())
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(name), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(name), AttributeType: kind}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		})
		return table
	}
	plain := dynamotest.Table(t, client)
	denied := dynamotest.Fail("AccessDeniedException", "User: arn:aws:sts::1:assumed-role/r is not authorized to perform")
	for _, test := range []struct {
		name    string
		table   string
		options func(*dynamostore.Options)
		fault   dynamotest.Fault
		want    string
	}{
		{name: "unknown table", table: "no-such-table", want: "ResourceNotFoundException"},
		{name: "other key", table: keyOf("pk", "S"), want: "with key id (S)"},
		{name: "key is a number", table: keyOf("n", "N"), options: numbered, want: "with key n (S)"},
		{name: "no sort key", table: plain, options: sorted, want: "with key id (S), sk (S)"},
		{name: "access denied", table: plain, fault: denied, want: "AccessDeniedException"},
		{name: "unknown credentials", table: plain, want: "UnrecognizedClientException",
			fault: dynamotest.Fail("UnrecognizedClientException", "The security token included in the request is invalid.")},
		{name: "no credentials", table: plain, want: "MissingAuthenticationTokenException",
			fault: dynamotest.Fail("MissingAuthenticationTokenException", "Request is missing Authentication Token")},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := dynamostore.New(client, test.table, test.options)
			for _, transition := range transitions() {
				operation := transition.operation
				if operation == "PutItem" && test.name == "no sort key" {
					operation = "UpdateItem"
				}
				proxy.Script(operation, test.fault)
				proxy.Requests()
				err := transition.do(t.Context(), store)
				for _, want := range []string{`table "` + test.table + `"`, "dynamodb:" + operation, test.want} {
					if !errors.Is(err, idempotency.ErrStoreUnusable) || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: error is %v; want an ErrStoreUnusable with %s", transition.name, err, want)
					}
				}
				if requests := proxy.Requests(); requests[operation] != 1 || len(requests) != 1 {
					t.Errorf("%s: requests are %v; want one %s", transition.name, requests, operation)
				}
			}
		})
	}
}

// TestErrorsNameTheKey has errors about one record name all of its item's key.
func TestErrorsNameTheKey(t *testing.T) {
	client := dynamotest.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			p := newPlanter(t, client, l.options)
			want := fmt.Sprintf("table %q, %s=%q", p.table, l.options.KeyAttribute, "k")
			long := strings.Repeat("k", 3000)
			wantLong := fmt.Sprintf("table %q, %s=%q", p.table, l.options.KeyAttribute, long)
			if l.options.SortKeyAttribute != "" {
				at := func(key string) string {
					return fmt.Sprintf("table %q, %s=%q, %s=%q",
						p.table, l.options.KeyAttribute, partitionOf(l.options, key), l.options.SortKeyAttribute, key)
				}
				want, wantLong = at("k"), at(long)
			}
			err := p.Complete(t.Context(), idempotency.CompleteRequest{Key: "k", Owner: "a", Now: now, Expiry: now})
			if !errors.Is(err, idempotency.ErrClaimLost) || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v; want an ErrClaimLost with %s", err, want)
			}
			// DynamoDB refuses this key, and would take another one.
			if _, err := p.Claim(t.Context(), claimRequest(long, "a")); !isUndecided(err) || !strings.Contains(err.Error(), wantLong) {
				t.Errorf("error is %v; want an undecided one with the key", err)
			}
		})
	}
}
