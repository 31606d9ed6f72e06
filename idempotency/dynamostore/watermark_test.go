package dynamostore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/idempotency/watermark/watermarktest"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestWatermarksConformance(t *testing.T) {
	for _, l := range layouts() {
		if l.options.NativeData || l.options.LeaseUnit != time.Millisecond {
			continue // they change nothing for Watermarks
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := newWatermarks(t, newPlanter(t, dynamotest.Client(t), l.options))
			watermarktest.Test(t, func(testing.TB) watermark.Store { return w })
		})
	}
}

// newWatermarks returns watermarks in a planter's table.
func newWatermarks(t testing.TB, p planter) *dynamostore.Watermarks {
	t.Helper()
	w := dynamostore.NewWatermarks(p.client, p.table, func(o *dynamostore.Options) { *o = p.options })
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

func markClaim(owner string) watermark.ClaimRequest {
	return watermark.ClaimRequest{
		Key: "k", Owner: owner, Now: now, Lease: now.Add(time.Minute), Skew: time.Second, Expiry: now.Add(time.Hour),
	}
}

func markAdvance(owner, to string, release bool) watermark.AdvanceRequest {
	return watermark.AdvanceRequest{
		Key: "k", Owner: owner, Now: now, To: place(to), Expiry: now.Add(2 * time.Hour), Release: release,
	}
}

// place returns the position that text says.
func place(text string) watermark.Position {
	p, err := watermark.Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

func mustClaimMark(t testing.TB, w watermark.Store, r watermark.ClaimRequest, want string) {
	t.Helper()
	got, err := w.Claim(t.Context(), r)
	if err != nil || got != place(want) {
		t.Fatalf("claim: position %q, error %v, want position %q", got, err, want)
	}
}

func mustAdvanceMark(t testing.TB, w watermark.Store, r watermark.AdvanceRequest) {
	t.Helper()
	if err := w.Advance(t.Context(), r); err != nil {
		t.Fatalf("advance: %v", err)
	}
}

// TestWatermarkItem is about what stands in the table after each transition.
func TestWatermarkItem(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	w := newWatermarks(t, p)
	want := map[string]any{
		"id": "k", "status": "WATERMARK", "owner": "a",
		"in_progress_expiration": attributes(map[string]types.AttributeValue{"": n(now.Add(time.Minute).UnixMilli())})[""],
		"expiration":             attributes(map[string]types.AttributeValue{"": n(now.Add(time.Hour).Unix())})[""],
	}
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff(want, attributes(p.item(t, "k"))); diff != "" {
			t.Errorf("item after %s (-want +got):\n%s", what, diff)
		}
	}
	mustClaimMark(t, w, markClaim("a"), "")
	check("a claim")

	mustAdvanceMark(t, w, markAdvance("a", "00496/2", false))
	want["data"] = "003:496/0000000002"
	want["expiration"] = attributes(map[string]types.AttributeValue{"": n(now.Add(2 * time.Hour).Unix())})[""]
	check("an advance")

	mustAdvanceMark(t, w, markAdvance("a", "4960", true))
	want["data"] = "004:4960/2147483647"
	want["in_progress_expiration"] = "N 0"
	check("a release")

	r := watermark.RewindRequest{Key: "k", Now: now, To: place("0"), Expiry: now.Add(2 * time.Hour)}
	if err := w.Rewind(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want["data"] = "001:0/2147483647"
	delete(want, "owner")
	check("a rewind")
}

// TestWatermarkRequests counts what each way through the store costs.
func TestWatermarkRequests(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			w := newWatermarks(t, newPlanter(t, client, l.options))
			proxy.Requests()
			expect := func(what string, want map[string]int, err, wantErr error) {
				t.Helper()
				if !errors.Is(err, wantErr) {
					t.Fatalf("%s: error is %v, want %v", what, err, wantErr)
				}
				if diff := cmp.Diff(want, proxy.Requests()); diff != "" {
					t.Errorf("requests of %s (-want +got):\n%s", what, diff)
				}
			}
			claim := func(r watermark.ClaimRequest) error {
				_, err := w.Claim(t.Context(), r)
				return err
			}
			one := map[string]int{"UpdateItem": 1}
			expect("a claim", one, claim(markClaim("a")), nil)
			expect("a conflict", one, claim(markClaim("b")), idempotency.ErrInProgress)
			expect("an advance", one, w.Advance(t.Context(), markAdvance("a", "10", false)), nil)
			expect("an advance to an earlier position", one, w.Advance(t.Context(), markAdvance("a", "9", false)), nil)
			expect("an advance by another", one, w.Advance(t.Context(), markAdvance("b", "11", true)), idempotency.ErrClaimLost)
			expect("a release", one, w.Advance(t.Context(), markAdvance("a", "10", true)), nil)
			expect("a second release", one, w.Advance(t.Context(), markAdvance("a", "10", true)), nil)
			expect("a claim", one, claim(markClaim("c")), nil)
			expect("a release at nothing", one, w.Advance(t.Context(), markAdvance("c", "", true)), nil)
			expect("a claim", one, claim(markClaim("d")), nil)
			expect("a release at an earlier position", map[string]int{"UpdateItem": 2},
				w.Advance(t.Context(), markAdvance("d", "9", true)), nil)
			rewind := watermark.RewindRequest{Key: "k", Now: now, To: place("5"), Expiry: now.Add(time.Hour)}
			expect("a rewind", one, w.Rewind(t.Context(), rewind), nil)
			late := markClaim("e")
			late.Now, late.Lease, late.Expiry = now.Add(2*time.Hour), now.Add(3*time.Hour), now.Add(4*time.Hour)
			expect("a claim after the expiry", map[string]int{"UpdateItem": 1, "PutItem": 1}, claim(late), nil)
			late.Key = ""
			expect("a wrong request", map[string]int{}, errors.Join(claim(late), errWrong), errWrong)
		})
	}
}

var errWrong = errors.New("wrong")

// TestWatermarkMeetsOthers plants items of guards, of other tools and of nobody under a watermark's key, and sees that they
// are neither taken nor overwritten.
func TestWatermarkMeetsOthers(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	w := newWatermarks(t, p)
	past, future := n(now.Add(-time.Hour).Unix()), n(now.Add(time.Hour).Unix())
	free := func(more map[string]types.AttributeValue) map[string]types.AttributeValue {
		item := map[string]types.AttributeValue{
			"id": s("k"), "status": s("WATERMARK"), "owner": s("other"), "in_progress_expiration": n(0), "expiration": future,
		}
		for name, v := range more {
			if item[name] = v; v == nil {
				delete(item, name)
			}
		}
		return item
	}
	for _, test := range []struct {
		name    string
		item    map[string]types.AttributeValue
		want    string // part of the error
		rewinds bool   // a rewind puts it right
	}{
		{"a guard's completion", map[string]types.AttributeValue{"id": s("k"), "status": s("COMPLETED"), "expiration": future},
			`attribute "status" is "COMPLETED"; want "WATERMARK"`, false},
		{"a guard's expired completion", map[string]types.AttributeValue{"id": s("k"), "status": s("COMPLETED"), "expiration": past},
			`attribute "status" is "COMPLETED"; want "WATERMARK"`, false},
		{"a guard's released claim", map[string]types.AttributeValue{
			"id": s("k"), "status": s("INPROGRESS"), "in_progress_expiration": n(0), "expiration": future},
			`attribute "status" is "INPROGRESS"; want "WATERMARK"`, false},
		{"no status", free(map[string]types.AttributeValue{"status": nil}), `attribute "status" is ""; want "WATERMARK"`, false},
		{"status is a number", free(map[string]types.AttributeValue{"status": n(1)}), `attribute "status" has type N; want S`, false},
		{"no lease", free(map[string]types.AttributeValue{"in_progress_expiration": nil}),
			`attribute "in_progress_expiration" is missing; want epoch milliseconds`, true},
		{"no expiry", free(map[string]types.AttributeValue{"expiration": nil}),
			`attribute "expiration" is missing; want epoch seconds`, true},
		{"no position in order", free(map[string]types.AttributeValue{"data": s("496")}),
			`attribute "data" is "496"; want a position like "003:496/0000000000"`, true},
		{"position of another length", free(map[string]types.AttributeValue{"data": s("004:496/0000000000")}), "want a position like", true},
		{"position with zeros", free(map[string]types.AttributeValue{"data": s("004:0496/0000000000")}), "want a position like", true},
		{"position is empty", free(map[string]types.AttributeValue{"data": s("")}), "want a position like", true},
		{"position is a number", free(map[string]types.AttributeValue{"data": n(496)}), `attribute "data" has type N; want S`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.put(t, test.item)
			if got, err := w.Claim(t.Context(), markClaim("a")); !isUndecided(err) || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), `id="k"`) || !got.IsZero() {
				t.Errorf("claim: position %q, error %v, want one with the key and %s", got, err, test.want)
			}
			p.put(t, test.item)
			if err := w.Advance(t.Context(), markAdvance("a", "5", true)); err == nil ||
				!errors.Is(err, idempotency.ErrClaimLost) && !strings.Contains(err.Error(), test.want) {
				t.Errorf("advance: error is %v, want one with %s, or that the claim is lost", err, test.want)
			}
			if diff := cmp.Diff(attributes(test.item), attributes(p.item(t, "k"))); diff != "" {
				t.Errorf("item after an advance (-want +got):\n%s", diff)
			}
			err := w.Rewind(t.Context(), watermark.RewindRequest{Key: "k", Now: now, To: place("7"), Expiry: now.Add(time.Hour)})
			if test.rewinds {
				if err != nil {
					t.Errorf("rewind: %v", err)
				}
				mustClaimMark(t, w, markClaim("b"), "7")
				return
			}
			if !isUndecided(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("rewind: error is %v, want one with %s", err, test.want)
			}
			if diff := cmp.Diff(attributes(test.item), attributes(p.item(t, "k"))); diff != "" {
				t.Errorf("item after a rewind (-want +got):\n%s", diff)
			}
		})
	}

	// Written by hand, as the documentation describes it.
	p.put(t, free(map[string]types.AttributeValue{"owner": nil, "data": s("003:496/0000000002")}))
	mustClaimMark(t, w, markClaim("a"), "496/2")
}

// TestStoreMeetsWatermark has a guard's store, and a claim as Powertools writes it, meet a watermark that nobody holds.
// Neither takes it, nor takes it for done.
func TestStoreMeetsWatermark(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	w := newWatermarks(t, p)
	mustClaimMark(t, w, markClaim("a"), "")
	mustAdvanceMark(t, w, markAdvance("a", "5", true))
	before := attributes(p.item(t, "k"))
	for _, r := range []idempotency.ClaimRequest{claimRequest("k", "b"), counted(claimRequest("k", "b"))} {
		if result, err := p.Claim(t.Context(), r); !isUndecided(err) || result.Claimed ||
			!strings.Contains(err.Error(), `attribute "status" is "WATERMARK"`) {
			t.Errorf("claim of a guard: %+v, error %v, want one that names the status", result, err)
		}
	}
	_, err := p.client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(p.table),
		Item: map[string]types.AttributeValue{
			"id": s("k"), "status": s("INPROGRESS"), "expiration": n(now.Add(time.Hour).Unix()),
			"in_progress_expiration": n(now.Add(time.Minute).UnixMilli()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR #expiry < :now OR (#status = :inprogress AND " +
			"attribute_exists(#in_progress_expiry) AND #in_progress_expiry < :now_in_millis)"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#expiry": "expiration", "#status": "status", "#in_progress_expiry": "in_progress_expiration",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": n(now.Unix()), ":now_in_millis": n(now.UnixMilli()), ":inprogress": s("INPROGRESS"),
		},
	})
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok {
		t.Errorf("claim of Powertools: error is %v, want it refused", err)
	}
	if err := p.Complete(t.Context(), idempotency.CompleteRequest{Key: "k", Owner: "a", Now: now, Expiry: now}); err == nil {
		t.Error("a guard completes a watermark")
	}
	if err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: "k", Owner: "a", Now: now}); err == nil {
		t.Error("a guard releases a watermark")
	}
	if diff := cmp.Diff(before, attributes(p.item(t, "k"))); diff != "" {
		t.Errorf("item afterwards (-want +got):\n%s", diff)
	}
}

// TestWatermarksUnusable has arguments and tables that no request can succeed with.
func TestWatermarksUnusable(t *testing.T) {
	client := dynamotest.Client(t)
	plain := dynamotest.Table(t, client)
	for _, test := range []struct {
		name     string
		w        *dynamostore.Watermarks
		unusable bool
		want     string
	}{
		{"no client", dynamostore.NewWatermarks(nil, "idempotency"), false, "client is nil"},
		{"no table", dynamostore.NewWatermarks(client, ""), false, `table is ""`},
		{"unknown table", dynamostore.NewWatermarks(client, "no-such-table"), true, "ResourceNotFoundException"},
		{"no sort key", dynamostore.NewWatermarks(client, plain, func(o *dynamostore.Options) { o.SortKeyAttribute = "sk" }),
			true, "with key id (S), sk (S)"},
	} {
		if got := test.w.Validate(); (got == nil) != test.unusable {
			t.Errorf("%s: Validate = %v, want an error: %t", test.name, got, !test.unusable)
		}
		_, claimErr := test.w.Claim(t.Context(), markClaim("a"))
		for what, err := range map[string]error{
			"claim":   claimErr,
			"advance": test.w.Advance(t.Context(), markAdvance("a", "5", true)),
			"rewind":  test.w.Rewind(t.Context(), watermark.RewindRequest{Key: "k", Now: now, Expiry: now.Add(time.Hour)}),
		} {
			if errors.Is(err, idempotency.ErrStoreUnusable) != test.unusable || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %s: error is %v, want one with %s", test.name, what, err, test.want)
			}
		}
	}
}
