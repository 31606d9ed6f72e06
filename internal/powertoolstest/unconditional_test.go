package powertoolstest_test

import (
	"errors"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

// Powertools completes with an update, and releases with a delete, that have no condition. These tests show what its late
// ones do to a claim of Go that has taken over: all that package powertools says of it.

// takenOver returns a function in TypeScript that is under way, and the claim of Go that has taken over from it.
func takenOver(t *testing.T, s *shared, guard *idempotency.Guard) (*powertoolstest.Running, *idempotency.Claim) {
	t.Helper()
	late := s.Begin(t, s.typeScript(), payload)
	if !late.Started() {
		t.Fatalf("the function did not run: %+v", late.Outcome(t))
	}
	s.endLease(t, payload)
	return late, claim(t, guard, payload)
}

// The late completion completes the claim of Go, with its own result.
func TestLateCompletionOfTypeScript(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	late, c := takenOver(t, s, guard)
	late.Return(t, `"late"`)
	ran(t, "TypeScript", late.Outcome(t), `"late"`)
	replayed(t, "Go", do(t, guard, payload, `1`), `"late"`)
	// It leaves Go's owner in the item, so that Go takes the completion for its own, sent twice.
	if err := c.Complete(t.Context(), []byte(receipt)); err != nil {
		t.Errorf("the completion after it returned %v, want nil", err)
	}
	replayed(t, "Go", do(t, guard, payload, `1`), `"late"`)
}

// If the work of Go fails after that, nobody does it again: to all others it is done.
func TestFailureOfGoAfterLateCompletion(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	late, c := takenOver(t, s, guard)
	late.Return(t, `"late"`)
	late.Outcome(t)
	if err := c.Release(t.Context()); !errors.Is(err, idempotency.ErrAlreadyCompleted) {
		t.Errorf("the release after it returned %v, want ErrAlreadyCompleted", err)
	}
	replayed(t, "Go", do(t, guard, payload, `1`), `"late"`)
}

// The late failure deletes the claim of Go, so that a third one runs beside it.
func TestLateFailureOfTypeScript(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	late, c := takenOver(t, s, guard)
	late.Throw(t, "no stock")
	late.Outcome(t)
	if item := s.row(t, payload); item != nil {
		t.Fatalf("the item is %v, want it deleted", item)
	}
	ran(t, "Go, beside the claim", do(t, guard, payload, receipt), receipt)
	if err := c.Complete(t.Context(), []byte(`"first"`)); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("the completion after it returned %v, want ErrClaimLost", err)
	}
	replayed(t, "Go", do(t, guard, payload, `1`), receipt)
}

// The late failure deletes even a completion: what is done runs again.
func TestLateFailureOfTypeScriptAfterCompletion(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	late, c := takenOver(t, s, guard)
	if err := c.Complete(t.Context(), []byte(receipt)); err != nil {
		t.Fatal(err)
	}
	late.Throw(t, "no stock")
	late.Outcome(t)
	ran(t, "Go, again", do(t, guard, payload, `"again"`), `"again"`)
}

// The late completion replaces the result of a completion.
func TestLateCompletionOfTypeScriptAfterCompletion(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	late, c := takenOver(t, s, guard)
	if err := c.Complete(t.Context(), []byte(receipt)); err != nil {
		t.Fatal(err)
	}
	late.Return(t, `"late"`)
	late.Outcome(t)
	replayed(t, "Go", do(t, guard, payload, `1`), `"late"`)
}
