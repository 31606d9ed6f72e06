package idempotency_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// transfer has a key that is the hash of {"amount":5,"from":"a","to":["b",1]}.
type transfer struct {
	To      []any          `json:"to"`
	From    string         `json:"from"`
	Amount  json.Number    `json:"amount"`
	Memo    string         `json:"memo,omitempty"`
	TraceID string         `json:"-"`
	More    map[string]any `json:"more,omitempty"`
}

// Without a key function the key is the hash of the input's JSON.
func TestWrapWithoutKeyFunction(t *testing.T) {
	var keys []string
	move := idempotency.Wrap(newGuard(t, &faultStore{}), nil, func(ctx context.Context, in transfer) (string, error) {
		info, _ := idempotency.FromContext(ctx)
		keys = append(keys, info.Key)
		return "moved " + in.TraceID, nil
	})
	want, err := idempotency.PayloadHash([]byte(`{"to":["b",1],"from":"a","amount":5}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range []transfer{
		{[]any{"b", 1}, "a", "5", "", "first", nil},
		{[]any{"b", int64(1)}, "a", "5.0", "", "second", nil}, // the same value
		{[]any{1, "b"}, "a", "5", "", "third", nil},
		{[]any{"b", 1}, "a", "9007199254740993", "", "fourth", nil},
		{[]any{"b", 1}, "a", "9007199254740992", "", "fifth", nil},
	} {
		wantOut := "moved " + in.TraceID
		if i == 1 {
			wantOut = "moved first"
		}
		if got, err := move(t.Context(), in); got != wantOut || err != nil {
			t.Errorf("%+v: got %q, %v, want %q", in, got, err, wantOut)
		}
	}
	if len(keys) != 4 || keys[0] != want {
		t.Errorf("keys are %q, want four, the first %q", keys, want)
	}
}

type unspeakable struct{ secret string }

// Inputs with nothing in them have no key, rather than one for all, and those without JSON are errors.
func TestWrapWithoutInput(t *testing.T) {
	testWrapInput(t, struct{}{}, "idempotency: key is missing")
	testWrapInput(t, unspeakable{"a"}, "idempotency: key is missing") // none of its fields is in its JSON
	testWrapInput(t, (*transfer)(nil), "idempotency: key is missing")
	testWrapInput(t, "", "idempotency: key is missing")
	testWrapInput(t, []int{}, "idempotency: key is missing")
	testWrapInput(t, json.RawMessage(" { } "), "idempotency: key is missing")
	testWrapInput(t, 0, "")
	testWrapInput(t, false, "")
	testWrapInput(t, make(chan int), "idempotency: Wrap has no key function, and the input has no JSON to make a key of, want a chan int that has")
	testWrapInput(t, math.NaN(), "want a float64 that has")
	testWrapInput(t, map[string]string{"a": "\xff"}, "it has a string that is not valid UTF-8")
	testWrapInput(t, []string{`\ufffd`, `\\ufffd`, "\ufffd"}, "") // these characters, and not what stands for broken ones
	testWrapInput(t, []string{`\ufffd`, "\\\xff"}, "it has a string that is not valid UTF-8")
	testWrapInput(t, json.RawMessage(`{"a":1,"a":2}`), "two members of one name")
	testWrapInput(t, json.RawMessage(`{"a":`), "no JSON")
}

func testWrapInput[In any](t *testing.T, in In, want string) {
	t.Helper()
	store := &faultStore{}
	ran := false
	f := idempotency.Wrap(newGuard(t, store), nil, func(context.Context, In) (string, error) { ran = true; return "", nil })
	_, err := f(t.Context(), in)
	if got := errorText(err); (want == "") != (err == nil) || !strings.Contains(got, want) || ran != (want == "") {
		t.Errorf("%T %v: error is %q, ran is %t, want %q in the error", in, in, got, ran, want)
	}
	if want != "" && len(store.calls) > 0 {
		t.Errorf("%T %v: store calls are %q, want none", in, in, store.calls)
	}
}
