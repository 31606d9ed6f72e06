package idempotency_test

import (
	"context"
	"errors"
	"testing"

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

func TestWrapPanicsWithoutArguments(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	fn := func(context.Context, payment) (string, error) { return "", nil }
	for want, wrap := range map[string]func(){
		"idempotency: Wrap: guard is nil":        func() { idempotency.Wrap(nil, paymentKey, fn) },
		"idempotency: Wrap: key function is nil": func() { idempotency.Wrap(g, nil, fn) },
		"idempotency: Wrap: function is nil":     func() { idempotency.Wrap[payment, string](g, paymentKey, nil) },
	} {
		if got := run(wrap).recovered; got != want {
			t.Errorf("panic is %v, want %s", got, want)
		}
	}
}
