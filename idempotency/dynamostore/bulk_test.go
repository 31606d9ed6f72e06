package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// bulkClaims returns claims of n keys by one owner each.
func bulkClaims(owner string, n int) []idempotency.ClaimRequest {
	requests := make([]idempotency.ClaimRequest, n)
	for i := range requests {
		requests[i] = claimRequest(fmt.Sprintf("orders#%04d", i), fmt.Sprint(owner, i))
	}
	return requests
}

// later returns the claims as they are made when those have run out.
func later(requests []idempotency.ClaimRequest, owner string) []idempotency.ClaimRequest {
	requests = bulkClaims(owner, len(requests))
	for i := range requests {
		r := &requests[i]
		r.Now = now.Add(2 * time.Minute)
		r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
	}
	return requests
}

func asked(requests []idempotency.ClaimRequest) []idempotency.ClaimRequest {
	for i := range requests {
		requests[i].AskFirst = true
	}
	return requests
}

func bulkCompletions(claims []idempotency.ClaimRequest) []idempotency.CompleteRequest {
	requests := make([]idempotency.CompleteRequest, len(claims))
	for i, r := range claims {
		requests[i] = idempotency.CompleteRequest{
			Key: r.Key, Owner: r.Owner, Now: r.Now, Expiry: r.Expiry, Data: fmt.Append(nil, i)}
	}
	return requests
}

func bulkReleases(claims []idempotency.ClaimRequest) []idempotency.ReleaseRequest {
	requests := make([]idempotency.ReleaseRequest, len(claims))
	for i, r := range claims {
		requests[i] = idempotency.ReleaseRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, CountAttempts: r.CountAttempts}
	}
	return requests
}

func bulkRenewals(claims []idempotency.ClaimRequest) []idempotency.RenewRequest {
	requests := make([]idempotency.RenewRequest, len(claims))
	for i, r := range claims {
		requests[i] = idempotency.RenewRequest{
			Key: r.Key, Owner: r.Owner, NewOwner: r.Owner + "'", Now: r.Now, Lease: r.Lease.Add(time.Minute), Expiry: r.Expiry}
	}
	return requests
}

// summary counts answers by what they say.
func summary(answers []idempotency.ClaimAnswer) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		switch {
		case a.Err != nil && isUndecided(a.Err):
			counts["undecided"]++
		case a.Err != nil:
			counts[a.Err.Error()]++
		case a.TookOver:
			counts["taken over"]++
		case a.Claimed:
			counts["claimed"]++
		default:
			counts[a.Entry.Status.String()]++
		}
	}
	return counts
}

func summaryOf(errs []error) map[string]int {
	counts := make(map[string]int)
	for _, err := range errs {
		switch {
		case err == nil:
			counts["done"]++
		case errors.Is(err, idempotency.ErrClaimLost):
			counts["lost"]++
		case errors.Is(err, idempotency.ErrAlreadyCompleted):
			counts["completed"]++
		case errors.Is(err, idempotency.ErrResultNotStored):
			counts["no result"]++
		case isUndecided(err):
			counts["undecided"]++
		default:
			counts[err.Error()]++
		}
	}
	return counts
}

// TestBulkRequests counts what each way through the bulk methods costs when nothing goes wrong, for 150 records.
func TestBulkRequests(t *testing.T) {
	const (
		n     = 150
		calls = 6
		reads = 2
	)
	type counts = map[string]int
	for _, l := range layouts() {
		if strings.Contains(l.options.SortKeyAttribute, ".") {
			continue // the tests' server takes a quoted name with a dot for a path, and refuses: the single calls do it then
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t)
			p := newPlanter(t, proxy.Client(t), l.options)
			expect := func(what string, want, got, requests counts) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("answers of %s (-want +got):\n%s", what, diff)
				}
				if diff := cmp.Diff(requests, proxy.Requests()); diff != "" {
					t.Errorf("requests of %s (-want +got):\n%s", what, diff)
				}
			}
			if l.options.SortKeyAttribute != "" {
				// Whether the table has the sort key is found out with the first claims, by reading them.
				proxy.Requests()
				r := []idempotency.ClaimRequest{claimRequest("first#1", "a")}
				expect("the first claim", counts{"claimed": 1}, summary(p.ClaimAll(t.Context(), r)),
					counts{"BatchGetItem": 1, "BatchExecuteStatement": 1})
			}
			proxy.Requests()
			a := bulkClaims("a", n)
			expect("claims", counts{"claimed": n}, summary(p.ClaimAll(t.Context(), a)), counts{"BatchExecuteStatement": calls})
			expect("conflicts", counts{"INPROGRESS": n}, summary(p.ClaimAll(t.Context(), bulkClaims("b", n))),
				counts{"BatchExecuteStatement": calls, "BatchGetItem": reads})
			expect("renewals", counts{"done": n}, summaryOf(p.RenewAll(t.Context(), bulkRenewals(a))), counts{"BatchExecuteStatement": calls})
			for i := range a {
				a[i].Owner += "'"
			}
			expect("releases", counts{"done": n}, summaryOf(p.ReleaseAll(t.Context(), bulkReleases(a))), counts{"BatchExecuteStatement": calls})
			expect("releases of what is absent", counts{"done": n}, summaryOf(p.ReleaseAll(t.Context(), bulkReleases(a))),
				counts{"BatchExecuteStatement": calls})
			expect("claims of what was released", counts{"claimed": n}, summary(p.ClaimAll(t.Context(), a)),
				counts{"BatchExecuteStatement": calls})
			b := later(a, "b")
			expect("takeovers", counts{"taken over": n}, summary(p.ClaimAll(t.Context(), b)),
				counts{"BatchExecuteStatement": 2 * calls, "BatchGetItem": reads})
			expect("lost completions", counts{"lost": n}, summaryOf(p.CompleteAll(t.Context(), bulkCompletions(a))),
				counts{"BatchExecuteStatement": calls, "BatchGetItem": reads})
			expect("completions", counts{"done": n}, summaryOf(p.CompleteAll(t.Context(), bulkCompletions(b))),
				counts{"BatchExecuteStatement": calls})
			expect("second completions", counts{"done": n}, summaryOf(p.CompleteAll(t.Context(), bulkCompletions(b))),
				counts{"BatchExecuteStatement": calls, "BatchGetItem": reads})
			expect("releases of what is completed", counts{"completed": n}, summaryOf(p.ReleaseAll(t.Context(), bulkReleases(b))),
				counts{"BatchExecuteStatement": calls, "BatchGetItem": reads})
			expect("unknown duplicates", counts{"COMPLETED": n}, summary(p.ClaimAll(t.Context(), bulkClaims("c", n))),
				counts{"BatchExecuteStatement": calls, "BatchGetItem": reads})
			expect("known replays", counts{"COMPLETED": n}, summary(p.ClaimAll(t.Context(), asked(bulkClaims("c", n)))),
				counts{"BatchGetItem": reads})

			mixed := bulkClaims("d", n+100)
			asked(mixed[n-100:])
			expect("claims that ask first and that do not", counts{"COMPLETED": n, "claimed": 100},
				summary(p.ClaimAll(t.Context(), mixed)),
				counts{"BatchGetItem": 2 + 1, "BatchExecuteStatement": 50/25 + 100/25})
		})
	}
}

// TestSingleClaimAsksFirst counts requests of single claims that ask first.
func TestSingleClaimAsksFirst(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	r := claimRequest("k", "a")
	r.AskFirst = true
	for _, test := range []struct {
		name string
		now  time.Time
		done bool // whether the key is completed afterwards
		want map[string]int
	}{
		{"absent", now, false, map[string]int{"GetItem": 1, "PutItem": 1}},
		{"held", now, false, map[string]int{"GetItem": 1}},
		{"lease over", now.Add(2 * time.Minute), true, map[string]int{"GetItem": 1, "PutItem": 1}},
		{"completed", now.Add(2 * time.Minute), false, map[string]int{"GetItem": 1}},
	} {
		proxy.Requests()
		r.Owner = test.name
		r.Now, r.Lease, r.Expiry = test.now, test.now.Add(time.Minute), test.now.Add(time.Hour)
		got, err := p.Claim(t.Context(), r)
		if want := test.want["PutItem"] == 1; err != nil || got.Claimed != want {
			t.Errorf("%s: Claim = %+v, %v; want claimed: %t", test.name, got, err, want)
		}
		if diff := cmp.Diff(test.want, proxy.Requests()); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", test.name, diff)
		}
		if test.done {
			if err := p.Complete(t.Context(), bulkCompletions([]idempotency.ClaimRequest{r})[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	proxy.Script("GetItem", dynamotest.Fail("AccessDeniedException", "not authorized to perform: dynamodb:GetItem"))
	other := claimRequest("other", "a")
	other.AskFirst = true
	mustClaim(t, p, other)
}

// TestBulkItems has the bulk methods leave the items that the single ones leave.
func TestBulkItems(t *testing.T) {
	client := dynamotest.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			one, many := newPlanter(t, client, l.options), newPlanter(t, client, l.options)
			r := claimRequest("orders#1", "a")
			both := func(what string, single func(p planter), bulk func(p planter)) {
				t.Helper()
				single(one)
				bulk(many)
				want, got := attributes(one.item(t, r.Key)), attributes(many.item(t, r.Key))
				if l.options.LeaseAttribute != "" && want[l.options.StatusAttribute] == "COMPLETED" && got[l.options.LeaseAttribute] == "N 0" {
					delete(got, l.options.LeaseAttribute) // the lease of a completion means nothing
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("item after %s (-single +bulk):\n%s", what, diff)
				}
			}
			claim := func() {
				t.Helper()
				both(fmt.Sprintf("a claim that counts: %t", r.CountAttempts),
					func(p planter) { mustClaim(t, p, r) },
					func(p planter) {
						if got := p.ClaimAll(t.Context(), []idempotency.ClaimRequest{r})[0]; !got.Claimed {
							t.Fatalf("ClaimAll = %+v; want it claimed", got)
						}
					})
			}
			settle := func(what string, single func(p planter) error, bulk func(p planter) []error) {
				t.Helper()
				both(what, func(p planter) {
					if err := single(p); err != nil {
						t.Fatal(err)
					}
				}, func(p planter) {
					if err := bulk(p)[0]; err != nil {
						t.Fatal(err)
					}
				})
			}
			next := func(owner string, d time.Duration) {
				r.Owner, r.Now = owner, r.Now.Add(d)
				r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
			}
			complete := func() {
				t.Helper()
				c := idempotency.CompleteRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, Expiry: r.Expiry, Data: []byte(`{"a":1}`)}
				settle("a completion", func(p planter) error { return p.Complete(t.Context(), c) },
					func(p planter) []error { return p.CompleteAll(t.Context(), []idempotency.CompleteRequest{c}) })
			}
			release := func() {
				t.Helper()
				rel := bulkReleases([]idempotency.ClaimRequest{r})
				settle("a release", func(p planter) error { return p.Release(t.Context(), rel[0]) },
					func(p planter) []error { return p.ReleaseAll(t.Context(), rel) })
			}

			claim()
			next("b", 2*time.Minute)
			claim() // takes over
			renewal := bulkRenewals([]idempotency.ClaimRequest{r})
			settle("a renewal", func(p planter) error { return p.Renew(t.Context(), renewal[0]) },
				func(p planter) []error { return p.RenewAll(t.Context(), renewal) })
			r.Owner = renewal[0].NewOwner
			complete()
			next("c", 2*time.Hour)
			r.Fingerprint = ""
			claim() // of an expired completion, whose result and fingerprint must go
			release()
			r.CountAttempts = true
			claim()
			next("d", 2*time.Minute)
			claim()
			release()
			next("e", time.Second)
			claim()
			complete()
			next("f", 2*time.Hour)
			claim()
			next("g", 2*time.Hour)
			claim() // the count ends with the entry
			next("h", 2*time.Minute)
			r.CountAttempts = false
			claim() // the count goes
			complete()
		})
	}
}

// TestBulkMixedBag has requests that a call for many cannot do stand among those that it can.
func TestBulkMixedBag(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	store := dynamostore.New(&meddler{Client: proxy.Client(t), see: func(r types.BatchStatementRequest) {
		for _, parameter := range r.Parameters {
			if text, ok := parameter.(*types.AttributeValueMemberS); ok && (text.Value == "" || strings.HasPrefix(text.Value, "kkk")) {
				t.Errorf("a key of %d bytes is in a call for many, which DynamoDB refuses as a whole", len(text.Value))
			}
		}
	}}, p.table)
	bag := bulkClaims("a", 10)
	bag[2].Key, bag[5].Key = "", strings.Repeat("k", 3000)
	proxy.Requests()
	answers := store.ClaimAll(t.Context(), bag)
	if diff := cmp.Diff(map[string]int{"claimed": 8, "undecided": 2}, summary(answers)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	// Those two do not spoil the call of the others.
	if diff := cmp.Diff(map[string]int{"BatchExecuteStatement": 1, "PutItem": 2}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, i := range []int{2, 5} {
		if answers[i].Err == nil || !strings.Contains(answers[i].Err.Error(), "ValidationException") {
			t.Errorf("error of claim %d is %v; want DynamoDB's", i, answers[i].Err)
		}
	}
	completions := bulkCompletions(bag)
	completions[1].Data = text(409600 - 60)
	completions[3].Data = text(409600 + 1)
	completions[4].Data = []byte{0xff}
	completions[6].Data = text(300 << 10)
	completions[7].Data = nil
	want := map[string]int{"done": 5, "no result": 3, "undecided": 2}
	if diff := cmp.Diff(want, summaryOf(store.CompleteAll(t.Context(), completions))); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
	for i, r := range bag {
		if i == 2 || i == 5 {
			continue
		}
		item := p.item(t, r.Key)
		if got := attributes(item)["status"]; got != "COMPLETED" {
			t.Errorf("status of item %d is %v; want COMPLETED", i, got)
		}
		if _, ok := item["data"]; ok != (i != 1 && i != 3 && i != 4 && i != 7) {
			t.Errorf("item %d has a result: %t", i, ok)
		}
	}
}

// TestBulkBrokenKey has keys that are not UTF-8, which the SDK sends as other keys, be treated as the single calls treat them.
func TestBulkBrokenKey(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	claims := bulkClaims("a", 2)
	claims[0].Key = "orders#\xff"
	if diff := cmp.Diff(map[string]int{"claimed": 2}, summary(p.ClaimAll(t.Context(), claims))); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	others := bulkReleases(claims)
	for i := range others {
		others[i].Owner = "b"
	}
	if diff := cmp.Diff(map[string]int{"lost": 2}, summaryOf(p.ReleaseAll(t.Context(), others))); diff != "" {
		t.Errorf("another owner's releases (-want +got):\n%s", diff)
	}
}

// TestBulkForeignItems has items that no layout knows among others. They fail alone, and stay as they are.
func TestBulkForeignItems(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	r := bulkClaims("a", 4)
	planted := p.key(r[1].Key)
	planted["status"] = s("DONE")
	p.put(t, planted)
	counted := p.key(r[2].Key)
	counted["status"], counted["expiration"], counted["in_progress_expiration"] = s("INPROGRESS"), n(now.Add(time.Hour).Unix()), n(0)
	counted["attempts"] = &types.AttributeValueMemberN{Value: "-7"}
	p.put(t, counted)
	asked(r[2:])
	r[2].CountAttempts = true
	answers := p.ClaimAll(t.Context(), r)
	if err := answers[1].Err; !isUndecided(err) || !strings.Contains(err.Error(), `attribute "status" is "DONE"`) {
		t.Errorf("error is %v; want one that names what was found", err)
	}
	if diff := cmp.Diff(map[string]int{"claimed": 3, "undecided": 1}, summary(answers)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if got := answers[2].Entry.Attempts; got != 1 {
		t.Errorf("attempts after -7 are %d; want 1", got)
	}
	for name, errs := range map[string][]error{
		"complete": p.CompleteAll(t.Context(), bulkCompletions(r[:2])),
		"release":  p.ReleaseAll(t.Context(), bulkReleases(r[:2])),
		"renew":    p.RenewAll(t.Context(), bulkRenewals(r[:2])),
	} {
		if !isUndecided(errs[1]) || !strings.Contains(errs[1].Error(), `attribute "status" is "DONE"`) {
			t.Errorf("%s: error is %v; want one that names what was found", name, errs[1])
		}
	}
	if diff := cmp.Diff(attributes(planted), attributes(p.item(t, r[1].Key))); diff != "" {
		t.Errorf("the item was changed (-want +got):\n%s", diff)
	}
}

// TestBulkSizes says where there are calls for many.
func TestBulkSizes(t *testing.T) {
	client := dynamotest.Client(t)
	for _, test := range []struct {
		name   string
		table  string
		option func(*dynamostore.Options)
		want   idempotency.BulkSizes
	}{
		{"default", "table", nil, idempotency.BulkSizes{Claims: 100, Settle: 25}},
		{"by option", "table", func(o *dynamostore.Options) { o.SingleCalls = true }, idempotency.BulkSizes{Claims: 1, Settle: 1}},
		{"ARN", "arn:aws:dynamodb:us-east-1:1:table/t", nil, idempotency.BulkSizes{Claims: 1, Settle: 1}},
	} {
		store := dynamostore.New(client, test.table, test.option)
		if err := store.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := store.BulkSizes(); got != test.want {
			t.Errorf("%s: BulkSizes = %+v; want %+v", test.name, got, test.want)
		}
		if _, ok := idempotency.Bulk(store); ok != (test.want.Claims > 1) {
			t.Errorf("%s: is a bulk store: %t", test.name, ok)
		}
	}
}

// TestSingleCalls has the bulk methods of a store without calls for many.
func TestSingleCalls(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	store := dynamostore.New(proxy.Client(t), p.table, func(o *dynamostore.Options) { o.SingleCalls = true })
	proxy.Requests()
	r := bulkClaims("a", 30)
	if diff := cmp.Diff(map[string]int{"claimed": 30}, summary(store.ClaimAll(t.Context(), r))); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"done": 30}, summaryOf(store.CompleteAll(t.Context(), bulkCompletions(r)))); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"COMPLETED": 30}, summary(store.ClaimAll(t.Context(), asked(bulkClaims("b", 30))))); diff != "" {
		t.Errorf("replays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"PutItem": 30, "UpdateItem": 30, "GetItem": 30}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestBulkOfWrongStore has every answer say what is wrong with the store.
func TestBulkOfWrongStore(t *testing.T) {
	store := dynamostore.New(nil, "table")
	r := bulkClaims("a", 2)
	errs := store.CompleteAll(context.Background(), bulkCompletions(r))
	errs = append(errs, store.ReleaseAll(context.Background(), bulkReleases(r))...)
	errs = append(errs, store.RenewAll(context.Background(), bulkRenewals(r))...)
	for _, answer := range store.ClaimAll(context.Background(), r) {
		errs = append(errs, answer.Err)
	}
	for _, err := range errs {
		if err == nil || err != store.Validate() {
			t.Errorf("error is %v; want %v", err, store.Validate())
		}
	}
}
