package idempotency_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// A completion tells whose function made it, and a replay of another's is warned about once.
func TestReplayOfAnotherFunctionIsLoggedOnce(t *testing.T) {
	store := idempotency.NewMemoryStore()
	var log bytes.Buffer
	guard := func(function string) *idempotency.Guard {
		t.Setenv("AWS_LAMBDA_FUNCTION_NAME", function)
		g, err := idempotency.New("orders", store, func(o *idempotency.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	billing, shipping, local := guard("billing"), guard("shipping.eu"), guard("")
	work := func(g *idempotency.Guard, key string) {
		t.Helper()
		claim, err := g.Claim(t.Context(), idempotency.Request{Key: key})
		if err == nil && !claim.Replayed() {
			err = claim.Complete(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b"} {
		work(billing, key)
		work(billing, key)
	}
	work(local, "a")
	work(local, "c")
	work(billing, "c")
	if log.Len() > 0 {
		t.Errorf("logged %q, want nothing: nobody replayed another function's work", log.String())
	}
	if e, _ := store.Get("orders#a"); !strings.HasSuffix(e.Owner, ".billing") || len(e.Owner) != 26+len(".billing") {
		t.Errorf("owner is %q, want a token of 26 characters and the function's name", e.Owner)
	}
	if e, _ := store.Get("orders#c"); len(e.Owner) != 26 {
		t.Errorf("owner outside of Lambda is %q, want a token of 26 characters", e.Owner)
	}
	work(shipping, "a")
	work(shipping, "b")
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "function.this=shipping.eu function.other=billing") {
		t.Errorf("logged %q, want one line that names both functions", got)
	}
}
