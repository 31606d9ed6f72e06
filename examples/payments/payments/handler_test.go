package payments

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/payments/bank"
	"github.com/oncekit/oncekit/idempotency"
)

// fake is a provider that takes down what it charges.
type fake struct {
	charges []bank.Charge
	err     error
	during  func() // while it charges
}

func (f *fake) Charge(_ context.Context, c bank.Charge) (string, error) {
	if f.during != nil {
		f.during()
	}
	if f.err != nil {
		return "", f.err
	}
	f.charges = append(f.charges, c)
	return fmt.Sprint("receipt-", len(f.charges)), nil
}

// function is the handler with a fake bank.
type function struct {
	*testing.T
	bank   fake
	handle Handler
	logs   bytes.Buffer
}

func newFunction(t *testing.T, store idempotency.Store) *function {
	t.Helper()
	f := &function{T: t}
	logger := slog.New(slog.NewTextHandler(&f.logs, nil))
	guard, err := idempotency.New("payments", store, func(o *idempotency.Options) { o.Logger = logger })
	if err != nil {
		t.Fatal(err)
	}
	f.handle = NewHandler(&f.bank, guard, logger)
	return f
}

// ask returns the response to a request with this caller, key and body.
func (f *function) ask(caller, key, body string) Response {
	f.Helper()
	r := Request{Body: body, Headers: map[string]string{}}
	if key != "" {
		r.Headers["idempotency-key"] = key
	}
	if caller != "" {
		r.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserID: caller},
		}
	}
	return f.send(r)
}

func (f *function) send(r Request) Response {
	f.Helper()
	response, err := f.handle(f.Context(), r)
	if err != nil {
		f.Fatal(err)
	}
	return response
}

// summary is a response in one line: the status, the headers and the receipt or the problem's title.
func summary(r Response) string {
	var body struct{ Receipt, Title string }
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("%d %s%s", r.StatusCode, body.Receipt, body.Title)
	for _, name := range []string{"Retry-After", ReplayedHeader} {
		if value, ok := r.Headers[name]; ok {
			s += fmt.Sprintf(", %s: %s", name, value)
		}
	}
	return s
}

const (
	shop  = "AIDASHOP"
	body  = `{"id":"p-1","amount":1250,"currency":"EUR","card":"card-1"}`
	noID  = `{"amount":1250,"currency":"EUR","card":"card-1"}`
	first = "201 receipt-1"
)

// TestRequests sends two requests, and looks at the response to the second one and at what was charged.
func TestRequests(t *testing.T) {
	type request struct{ caller, key, body string }
	const replayed = first + ", Idempotent-Replayed: true"
	for _, test := range []struct {
		name          string
		first, second request
		want          string
		charges       int
	}{
		{"by the header", request{shop, "k", body}, request{shop, "k", body}, replayed, 1},
		{"by the header, without an ID", request{shop, "k", noID}, request{shop, "k", noID}, replayed, 1},
		{"header with white space", request{shop, "k", body}, request{shop, " k ", body}, replayed, 1},
		{"by the ID", request{shop, "", body}, request{shop, "", body}, replayed, 1},
		{"by the ID, with an empty header", request{shop, "", body}, request{shop, "  ", body}, replayed, 1},
		{
			"members in another order", request{shop, "k", body},
			request{shop, "k", ` {"card":"card-1", "currency":"EUR", "amount":1250, "id":"p-1"} `}, replayed, 1,
		},
		{"another session of a role", request{"AROA1:one", "k", body}, request{"AROA1:two", "k", body}, replayed, 1},
		{"another header", request{shop, "k", body}, request{shop, "l", body}, "201 receipt-2", 2},
		{"another ID", request{shop, "", body}, request{shop, "", strings.Replace(body, "p-1", "p-2", 1)}, "201 receipt-2", 2},
		{"another caller", request{shop, "k", body}, request{"AIDAOTHER", "k", body}, "201 receipt-2", 2},
		{"a header that is another's ID", request{shop, "", body}, request{shop, "p-1", body}, "201 receipt-2", 2},
		{
			"no two tuples are one key", request{shop, "b#header#c", body}, request{shop + "#header#b", "c", body},
			"201 receipt-2", 2,
		},
		{
			"another amount", request{shop, "k", body}, request{shop, "k", strings.Replace(body, "1250", "12500", 1)},
			"422 The key was used for another payment", 1,
		},
		{
			"another amount, by the ID", request{shop, "", body}, request{shop, "", strings.Replace(body, "1250", "12500", 1)},
			"422 The key was used for another payment", 1,
		},
		{
			"another currency", request{shop, "k", body}, request{shop, "k", strings.Replace(body, "EUR", "JPY", 1)},
			"422 The key was used for another payment", 1,
		},
		{
			"another card", request{shop, "k", body}, request{shop, "k", strings.Replace(body, "card-1", "card-2", 1)},
			"422 The key was used for another payment", 1,
		},
		{
			"another payment", request{shop, "k", body}, request{shop, "k", strings.Replace(body, "p-1", "p-2", 1)},
			"422 The key was used for another payment", 1,
		},
		{"no key", request{shop, "k", body}, request{shop, "", noID}, "400 The key is missing", 1},
		{"no caller", request{shop, "k", body}, request{"", "k", body}, "403 The caller is unknown", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFunction(t, idempotency.NewMemoryStore())
			if got := summary(f.ask(test.first.caller, test.first.key, test.first.body)); got != first {
				t.Fatalf("first response is %q, want %q", got, first)
			}
			if got := summary(f.ask(test.second.caller, test.second.key, test.second.body)); got != test.want {
				t.Errorf("second response is %q, want %q", got, test.want)
			}
			if got := len(f.bank.charges); got != test.charges {
				t.Errorf("%d charges, want %d", got, test.charges)
			}
			if f.logs.Len() > 0 {
				t.Errorf("it logs %s", &f.logs)
			}
		})
	}
}

// TestResponse is the whole of a response, and of its replay.
func TestResponse(t *testing.T) {
	f := newFunction(t, idempotency.NewMemoryStore())
	want := Response{
		StatusCode: 201, Headers: map[string]string{"Content-Type": "application/json"},
		Body: `{"receipt":"receipt-1","payment":"p-1","amount":1250,"currency":"EUR"}`,
	}
	if diff := cmp.Diff(want, f.ask(shop, "k", body)); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	want.Headers[ReplayedHeader] = "true"
	for range 2 { // what is stored does not change
		if diff := cmp.Diff(want, f.ask(shop, "k", body)); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
	}
	wantCharges := []bank.Charge{{Key: "AIDASHOP#header#k", Card: "card-1", Amount: 1250, Currency: "EUR"}}
	if diff := cmp.Diff(wantCharges, f.bank.charges); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
	mismatch := f.ask(shop, "k", strings.Replace(body, "1250", "1", 1))
	want = Response{
		StatusCode: 422, Headers: map[string]string{"Content-Type": "application/problem+json"},
		Body: `{"title":"The key was used for another payment","status":422,` +
			`"detail":"An earlier request had the same key, and another id, amount, currency or card. Nothing was charged now."}`,
	}
	if diff := cmp.Diff(want, mismatch); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

// TestBase64 is a body as API Gateway passes it on that does not know it for text.
func TestBase64(t *testing.T) {
	f := newFunction(t, idempotency.NewMemoryStore())
	r := Request{Body: base64.StdEncoding.EncodeToString([]byte(body)), IsBase64Encoded: true}
	r.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserID: shop},
	}
	if got := summary(f.send(r)); got != first {
		t.Errorf("response is %q, want %q", got, first)
	}
	r.Body = "{}"
	if got := f.send(r); got.StatusCode != 400 || !strings.Contains(got.Body, "Base64") {
		t.Errorf("response is %+v, want 400 and a word about Base64", got)
	}
}

func TestWrongBodies(t *testing.T) {
	f := newFunction(t, idempotency.NewMemoryStore())
	for text, want := range map[string]string{
		``:                           "the body is not a payment in JSON: ",
		`{"amount":`:                 "unexpected EOF",
		`[]`:                         "JSON array",
		`null`:                       "amount is 0, want more than 0",
		`{"amount":"1250"}`:          "JSON string",
		`{"amount":12.5}`:            "JSON number 12.5",
		`{"ammount":1250}`:           `unknown object member name \"ammount\"`,
		body + body:                  "after top-level value",
		body + "}":                   "after top-level value",
		body + "]":                   "after top-level value",
		`{"amount":1,"amount":1250}`: `duplicate object member name \"amount\"`,
		`{"Amount":1250}`:            `unknown object member name \"Amount\"`,
		`{"card":"c","CARD":"d"}`:    `unknown object member name \"CARD\"`,
		`{"amount":-1}`:              "amount is -1, want more than 0",
		`{"amount":1}`:               `currency is \"\", want three capital letters`,
		`{"amount":1,"currency":2}`:  "JSON number",
		`{"amount":1,"currency":"eur","card":"c"}`: `currency is \"eur\"`,
		`{"amount":1,"currency":"EUR"}`:            "card is missing",
	} {
		got := f.ask(shop, "k", text)
		if got.StatusCode != 400 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: response is %d %s, want 400 and %s", text, got.StatusCode, got.Body, want)
		}
	}
	if len(f.bank.charges) > 0 {
		t.Errorf("charges are %+v, want none", f.bank.charges)
	}
}

// TestInProgress sends a request again while it is with the bank, and another one beside it.
func TestInProgress(t *testing.T) {
	f := newFunction(t, idempotency.NewMemoryStore())
	var again, changed Response
	f.bank.during = func() {
		f.bank.during = nil
		again = f.ask(shop, "k", body)
		changed = f.ask(shop, "k", strings.Replace(body, "1250", "1", 1))
	}
	if got := summary(f.ask(shop, "k", body)); got != first {
		t.Errorf("response is %q, want %q", got, first)
	}
	if got, want := summary(again), "409 The payment is in progress, Retry-After: 1"; got != want {
		t.Errorf("response to the same request is %q, want %q", got, want)
	}
	if got, want := summary(changed), "422 The key was used for another payment"; got != want {
		t.Errorf("response to one for another amount is %q, want %q", got, want)
	}
	if len(f.bank.charges) != 1 {
		t.Errorf("charges are %+v, want one", f.bank.charges)
	}
}

// TestDeclined is final: the same request is not tried again.
func TestDeclined(t *testing.T) {
	f := newFunction(t, idempotency.NewMemoryStore())
	f.bank.err = bank.ErrDeclined
	if got, want := summary(f.ask(shop, "k", body)), "402 The card was declined"; got != want {
		t.Errorf("response is %q, want %q", got, want)
	}
	f.bank.err = nil
	if got, want := summary(f.ask(shop, "k", body)), "402 The card was declined, Idempotent-Replayed: true"; got != want {
		t.Errorf("second response is %q, want %q", got, want)
	}
}

// brokenStore takes no claims.
type brokenStore struct{ *idempotency.MemoryStore }

func (brokenStore) Claim(context.Context, idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return idempotency.ClaimResult{}, errors.New("no route to the table")
}

// TestTryAgain is what failed without an effect, or without one that is known of: nothing is stored.
func TestTryAgain(t *testing.T) {
	const want = "503 The payment is not confirmed, Retry-After: 1"
	f := newFunction(t, idempotency.NewMemoryStore())
	f.bank.err = errors.New("bank did not answer")
	if got := summary(f.ask(shop, "k", body)); got != want {
		t.Errorf("response is %q, want %q", got, want)
	}
	if !strings.Contains(f.logs.String(), "bank did not answer") {
		t.Errorf("the log does not say what is wrong: %s", &f.logs)
	}
	f.bank.err = nil
	if got := summary(f.ask(shop, "k", body)); got != first {
		t.Errorf("second response is %q, want %q", got, first)
	}

	f = newFunction(t, brokenStore{idempotency.NewMemoryStore()})
	if got := summary(f.ask(shop, "k", body)); got != want || len(f.bank.charges) > 0 {
		t.Errorf("without the table: response is %q with %d charges, want %q and none", got, len(f.bank.charges), want)
	}
	if !strings.Contains(f.logs.String(), "no route to the table") {
		t.Errorf("the log does not say what is wrong: %s", &f.logs)
	}
}

// TestNoReplay is a payment that was handled, and whose response is lost: an answer that is final.
func TestNoReplay(t *testing.T) {
	const want = "410 The payment was handled, and its response is not available"
	for name, data := range map[string][]byte{"not stored": nil, "not a response": []byte("{")} {
		store := idempotency.NewMemoryStore()
		f := newFunction(t, replacingStore{store, data})
		if got := summary(f.ask(shop, "k", body)); got != first {
			t.Errorf("%s: response is %q, want %q", name, got, first)
		}
		for range 2 {
			if got := summary(f.ask(shop, "k", body)); got != want {
				t.Errorf("%s: response is %q, want %q", name, got, want)
			}
		}
		if len(f.bank.charges) != 1 {
			t.Errorf("%s: charges are %+v, want one", name, f.bank.charges)
		}
		if !strings.Contains(f.logs.String(), "payment cannot be replayed") {
			t.Errorf("%s: the log does not say what is wrong: %s", name, &f.logs)
		}
	}
}

// replacingStore stores data in place of every result.
type replacingStore struct {
	*idempotency.MemoryStore
	data []byte
}

func (s replacingStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	r.Data = s.data
	return s.MemoryStore.Complete(ctx, r)
}

// TestUnguarded charges as often as it is asked to.
func TestUnguarded(t *testing.T) {
	f := &function{T: t}
	f.handle = NewUnguardedHandler(&f.bank, slog.New(slog.DiscardHandler))
	for i := range 2 {
		if got, want := summary(f.ask(shop, "k", body)), fmt.Sprint("201 receipt-", i+1); got != want {
			t.Errorf("response is %q, want %q", got, want)
		}
	}
}
