package evidence

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// TestStore has a claim granted, another refused, and one of two completions stored.
func TestStore(t *testing.T) {
	e := New("charge")
	s := e.Store(idempotency.NewMemoryStore())
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	lease := now.Add(time.Minute)
	for _, owner := range []string{"a", "b"} {
		r := idempotency.ClaimRequest{Key: "k", Owner: owner, Now: now, Lease: lease, Expiry: now.Add(time.Hour)}
		if _, err := s.Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		// The completion of b, whose claim was refused, is an error of the store.
		_ = s.Complete(t.Context(), idempotency.CompleteRequest{Key: "k", Owner: owner, Now: now, Expiry: now.Add(time.Hour)})
	}
	if got, want := e.claims["a"], (claim{now, lease}); got != want || len(e.claims) != 1 {
		t.Errorf("claims are %v, want that of a: %v", e.claims, want)
	}
	if !e.completed["a"] || len(e.completed) != 1 {
		t.Errorf("completed are %v, want a alone", e.completed)
	}
}

// TestTwins: the record that ran counts, and not its twin.
func TestTwins(t *testing.T) {
	e := New("charge")
	a := Attempt{"order-0001", 1}
	e.RecordEnded(a, batch.Result{Outcome: batch.Abandoned})
	e.RecordEnded(a, batch.Result{Outcome: batch.Replayed})
	if got := e.results[a].Outcome; got != batch.Abandoned {
		t.Errorf("outcome is %v, want abandoned", got)
	}
	if e.HasEnded(1) {
		t.Error("the invocation has ended before it has")
	}
	e.InvocationEnded(1, lambdatest.Crashed)
	if !e.HasEnded(1) {
		t.Error("the invocation has not ended, although it has")
	}
}
