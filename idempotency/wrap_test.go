package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

type payment struct {
	OrderID string
	Amount  int
}

func paymentKey(p payment) (string, error) { return p.OrderID, nil }

// A wrapped function runs once for each key, and replays its output.
func TestWrap(t *testing.T) {
	store := &faultStore{}
	var ran []int
	pay := idempotency.Wrap(newGuard(t, store), paymentKey, func(ctx context.Context, p payment) (string, error) {
		if info, ok := idempotency.FromContext(ctx); !ok || info.Key != p.OrderID {
			t.Errorf("FromContext is %+v, %t, want key %s", info, ok, p.OrderID)
		}
		ran = append(ran, p.Amount)
		return "receipt " + p.OrderID, nil
	})
	for _, in := range []payment{{"a", 1}, {"b", 2}, {"a", 3}, {"b", 4}} {
		got, err := pay(t.Context(), in)
		if want := "receipt " + in.OrderID; got != want || err != nil {
			t.Errorf("%+v: got %q, %v, want %q", in, got, err, want)
		}
	}
	if diff := cmp.Diff([]int{1, 2}, ran); diff != "" {
		t.Errorf("amounts paid (-want +got):\n%s", diff)
	}
}

// Rule 12, case 15: a key function that fails, or gives no key, runs nothing.
func TestWrapWithoutKey(t *testing.T) {
	failure := errors.New("no order")
	for _, test := range []struct {
		name string
		key  func(payment) (string, error)
		want error
	}{
		{"error", func(payment) (string, error) { return "", failure }, failure},
		{"error beside a key", func(payment) (string, error) { return "a", failure }, failure},
		{"no key", func(payment) (string, error) { return "", nil }, idempotency.ErrKeyMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faultStore{}
			pay := idempotency.Wrap(newGuard(t, store), test.key, func(context.Context, payment) (string, error) {
				return forbidden[string](t)(t.Context())
			})
			got, err := pay(t.Context(), payment{})
			if got != "" || err != test.want { // itself, not wrapped
				t.Errorf("got %q, %v, want %v itself", got, err, test.want)
			}
			if len(store.calls) > 0 {
				t.Errorf("store calls are %q, want none", store.calls)
			}
		})
	}
}

// Errors of the function come back as they are, and its value does beside a lost claim.
func TestWrapErrors(t *testing.T) {
	failure := errors.New("card declined")
	var outcome error
	store := &faultStore{onComplete: refuse(idempotency.ErrClaimLost)}
	pay := idempotency.Wrap(newGuard(t, store), paymentKey, func(context.Context, payment) (string, error) {
		return "receipt", outcome
	})
	if got, err := pay(t.Context(), payment{OrderID: "a"}); got != "receipt" || !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("got %q, %v, want the receipt and %v", got, err, idempotency.ErrClaimLost)
	}
	outcome = failure
	if got, err := pay(t.Context(), payment{OrderID: "b"}); got != "" || err != failure { // itself, not wrapped
		t.Errorf("got %q, %v, want %v itself", got, err, failure)
	}
}

// A replayed output can be altered on its way to the caller. What is stored, and what fn returns, cannot.
func TestWrapReplayed(t *testing.T) {
	failure := errors.New("cannot sign")
	var outcome error
	calls := 0
	pay := idempotency.Wrap(newGuard(t, idempotency.NewMemoryStore()), paymentKey,
		func(_ context.Context, p payment) ([]string, error) { return []string{"receipt", p.OrderID}, nil },
		nil, func(o *idempotency.WrapOptions[payment, []string]) {
			o.Replayed = func(ctx context.Context, receipt []string) ([]string, error) {
				calls++
				if ctx.Value(valueKey{}) != "trace" {
					t.Error("the context of Replayed is not the caller's")
				}
				receipt[0] = "copy"
				return receipt, outcome
			}
		})
	ctx := context.WithValue(t.Context(), valueKey{}, "trace")
	for i, want := range [][]string{{"receipt", "a"}, {"copy", "a"}, {"copy", "a"}} {
		got, err := pay(ctx, payment{OrderID: "a"})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || calls != i {
			t.Errorf("call %d: error is %v, Replayed was called %d times; output (-want +got):\n%s", i, err, calls, diff)
		}
	}
	outcome = failure
	if got, err := pay(ctx, payment{OrderID: "a"}); len(got) != 2 || err != failure { // itself, not wrapped
		t.Errorf("got %q, %v, want the copy and %v itself", got, err, failure)
	}
}

// Replayed is not called for what is no replay: a first run, a failure, a stored output that is none.
func TestWrapReplayedOnlyReplays(t *testing.T) {
	fail := func(o *idempotency.WrapOptions[payment, float64]) {
		o.Replayed = func(_ context.Context, n float64) (float64, error) {
			t.Errorf("Replayed is called with %v, want no call", n)
			return n, nil
		}
	}
	failure := errors.New("card declined")
	g := newGuard(t, idempotency.NewMemoryStore())
	pay := idempotency.Wrap(g, paymentKey, func(_ context.Context, p payment) (float64, error) {
		if p.Amount < 0 {
			return 0, failure
		}
		return math.NaN(), nil // has no JSON
	}, fail)
	for range 2 {
		_, err := pay(t.Context(), payment{"failing", -1})
		wantErr(t, err, failure)
	}
	_, err := pay(t.Context(), payment{OrderID: "a"})
	wantErr(t, err)
	_, err = pay(t.Context(), payment{OrderID: "a"})
	wantErr(t, err, idempotency.ErrResultNotStored)
	_, err = g.Claim(t.Context(), idempotency.Request{Key: "held"})
	wantErr(t, err)
	_, err = pay(t.Context(), payment{OrderID: "held"})
	wantErr(t, err, idempotency.ErrInProgress)
}

// Rule 11, case 16: the same key with another payload is an error, completed, in progress and failed meanwhile, and
// Replayed does not see the first one's output.
func TestWrapFingerprint(t *testing.T) {
	var (
		ran  []int
		pay  func(context.Context, payment) (int, error)
		fail error
	)
	pay = idempotency.Wrap(newGuard(t, idempotency.NewMemoryStore()), paymentKey,
		func(ctx context.Context, p payment) (int, error) {
			ran = append(ran, p.Amount)
			_, err := pay(ctx, payment{p.OrderID, p.Amount + 1})
			wantErr(t, err, idempotency.ErrFingerprintMismatch)
			_, err = pay(ctx, p)
			wantErr(t, err, idempotency.ErrInProgress)
			return p.Amount, fail
		}, func(o *idempotency.WrapOptions[payment, int]) {
			o.Fingerprint = func(p payment) (string, error) { return strconv.Itoa(p.Amount), nil }
			o.Replayed = func(_ context.Context, amount int) (int, error) { return -amount, nil }
		})
	fail = errors.New("card declined")
	_, err := pay(t.Context(), payment{"a", 1})
	wantErr(t, err, fail)
	fail = nil
	for _, test := range []struct {
		amount, want int
		err          error
	}{
		{10, 10, nil}, // the failed attempt left nothing
		{10, -10, nil},
		{900, 0, idempotency.ErrFingerprintMismatch},
		{10, -10, nil},
	} {
		got, err := pay(t.Context(), payment{"a", test.amount})
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("amount %d: got %d, %v, want %d, %v", test.amount, got, err, test.want, test.err)
		}
	}
	if diff := cmp.Diff([]int{1, 10}, ran); diff != "" {
		t.Errorf("amounts paid (-want +got):\n%s", diff)
	}
}

// A fingerprint that cannot be computed runs nothing.
func TestWrapFingerprintFails(t *testing.T) {
	failure := errors.New("no amount")
	store := &faultStore{}
	pay := idempotency.Wrap(newGuard(t, store), paymentKey, func(context.Context, payment) (string, error) {
		return forbidden[string](t)(t.Context())
	}, func(o *idempotency.WrapOptions[payment, string]) {
		o.Fingerprint = func(payment) (string, error) { return "f", failure }
	})
	if got, err := pay(t.Context(), payment{OrderID: "a"}); got != "" || err != failure { // itself, not wrapped
		t.Errorf("got %q, %v, want %v itself", got, err, failure)
	}
	if len(store.calls) > 0 {
		t.Errorf("store calls are %q, want none", store.calls)
	}
}

// Options that are changed after Wrap has returned change nothing.
func TestWrapCopiesOptions(t *testing.T) {
	var kept *idempotency.WrapOptions[payment, string]
	pay := idempotency.Wrap(newGuard(t, idempotency.NewMemoryStore()), paymentKey,
		func(context.Context, payment) (string, error) { return "receipt", nil },
		func(o *idempotency.WrapOptions[payment, string]) { kept = o })
	kept.Fingerprint = func(payment) (string, error) { return "", errors.New("too late") }
	kept.Replayed = func(context.Context, string) (string, error) { return "", errors.New("too late") }
	for range 2 {
		if got, err := pay(t.Context(), payment{OrderID: "a"}); got != "receipt" || err != nil {
			t.Errorf("got %q, %v, want the receipt", got, err)
		}
	}
}

// What Wrap returns is a function as Lambda takes it, whatever its input and output are: the runtime's handler of it
// answers a repeated event with the same bytes.
func TestWrapIsALambdaHandler(t *testing.T) {
	var r recorder
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(&r))
	for name, test := range map[string]struct {
		handler       any
		payload, want string
	}{
		"API Gateway": {
			idempotency.Wrap(g, func(r events.APIGatewayProxyRequest) (string, error) { return r.Headers["Idempotency-Key"], nil },
				func(_ context.Context, r events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
					return events.APIGatewayProxyResponse{
						StatusCode: 201, Body: r.Body, Headers: map[string]string{"Location": "/orders/1"},
						MultiValueHeaders: map[string][]string{"Set-Cookie": {"a", "b"}}, IsBase64Encoded: true,
					}, nil
				}),
			`{"headers":{"Idempotency-Key":"api"},"body":"e30="}`,
			`{"statusCode":201,"headers":{"Location":"/orders/1"},"multiValueHeaders":{"Set-Cookie":["a","b"]},` +
				`"body":"e30=","isBase64Encoded":true}`,
		},
		"raw JSON": {
			idempotency.Wrap(g, func(in json.RawMessage) (string, error) { return string(in), nil },
				func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
			`{"id":9007199254740993}`, `{"id":9007199254740993}`,
		},
		"pointer": {
			idempotency.Wrap(g, func(p *payment) (string, error) { return p.OrderID, nil },
				func(_ context.Context, p *payment) (*payment, error) { return &payment{p.OrderID, p.Amount + 1}, nil }),
			`{"OrderID":"pointer","Amount":1}`, `{"OrderID":"pointer","Amount":2}`,
		},
		"no output": {
			idempotency.Wrap(g, func(s string) (string, error) { return s, nil },
				func(context.Context, string) (struct{}, error) { return struct{}{}, nil }),
			`"no output"`, `{}`,
		},
	} {
		handler := lambda.NewHandler(test.handler)
		for i := range 2 {
			got, err := handler.Invoke(t.Context(), []byte(test.payload))
			if diff := cmp.Diff(test.want, string(got)); diff != "" || err != nil {
				t.Errorf("%s, invocation %d: error is %v; answer (-want +got):\n%s", name, i, err, diff)
			}
		}
		if diff := cmp.Diff("claimed, completed, replayed", r.take()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

func TestWrapPanicsWithoutArguments(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	fn := func(context.Context, payment) (string, error) { return "", nil }
	for want, wrap := range map[string]func(){
		"idempotency: Wrap: guard is nil":    func() { idempotency.Wrap(nil, paymentKey, fn) },
		"idempotency: Wrap: function is nil": func() { idempotency.Wrap[payment, string](g, paymentKey, nil) },
	} {
		if got := run(wrap).recovered; got != want {
			t.Errorf("panic is %v, want %s", got, want)
		}
	}
}
