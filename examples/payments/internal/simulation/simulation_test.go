package simulation

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/brokenstore"
	"github.com/oncekit/oncekit/idempotency"
)

// simulate runs the simulation in no time.
func simulate(t *testing.T, store idempotency.Store) (result *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = Run(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		letGo()
	})
	return result
}

// letGo gives the goroutines of dead invocations, which the end of a run lets go, the time that their last tries to reach
// the store take.
func letGo() { time.Sleep(5 * time.Second) }

func total[K comparable](counts map[K]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// TestGuarded compares what the hook has seen with what the customers and the bank have.
func TestGuarded(t *testing.T) {
	r := simulate(t, idempotency.NewMemoryStore())
	if len(r.Lost)+len(r.Unanswered)+len(r.Wrong)+r.Unexplained() > 0 {
		t.Errorf("lost %q, unanswered %q, wrong %q, repeats %+v", r.Lost, r.Unanswered, r.Wrong, r.Repeats)
	}
	crashed := Payments() // its number: the last but one
	want := []Repeat{{
		Payment: name(crashed - 1), Cause: "a crash fell between charge and completion",
		Key: "AIDASHOP#header#key-of-" + name(crashed-1),
	}}
	if diff := cmp.Diff(want, r.Repeats); diff != "" {
		t.Errorf("repeats (-want +got):\n%s", diff)
	}
	const crashes = 3
	for _, test := range []struct {
		what      string
		seen, got int
	}{
		// The answer after the completion was lost, so one payment is completed that was not answered, and replayed.
		{"completed: 201, 402 and the answer that a crash took", r.Events[idempotency.EventCompleted],
			r.Answers[Created] + r.Answers[Declined] - 1 + 1},
		{"replayed: 201 replayed and the second 402", r.Events[idempotency.EventReplayed], r.Answers[Replayed] + 1},
		{"in progress: 409", r.Events[idempotency.EventInProgress], r.Answers[InProgress]},
		{"mismatch: 422", r.Events[idempotency.EventMismatch], r.Answers[Mismatch]},
		{"key missing: 400", r.Events[idempotency.EventKeyMissing], r.Answers[KeyMissing]},
		{"claim failed and released: 503", r.Events[idempotency.EventClaimFailed] + r.Events[idempotency.EventReleased],
			r.Answers[Unavailable]},
		{"taken over: the crashes that left a claim", r.Events[idempotency.EventTakenOver], crashes - 1},
		{"crashes: 500", crashes, r.Answers[NoAnswer]},
		{"requests: answers", total(r.Requests), total(r.Answers)},
		{"charges: payments charged, and repeats", r.Charges, r.Charged + len(r.Repeats)},
	} {
		if test.seen != test.got || test.seen == 0 {
			t.Errorf("%s: %d, want %d", test.what, test.seen, test.got)
		}
	}
}

// TestUnguarded charges again whatever comes again.
func TestUnguarded(t *testing.T) {
	r := simulate(t, nil)
	for _, s := range r.Stories {
		want := s.Payments
		switch s.Name {
		case "clicked twice", "client's timeout", "answer lost on its way", "amount changed", "crash after the charge",
			"crash before the answer":
			want *= 2
		case "declined card":
			want = 0
		}
		if s.Charges != want {
			t.Errorf("%s: %d charges, want %d", s.Name, s.Charges, want)
		}
	}
	if len(r.Events) > 0 {
		t.Errorf("events are %v, want none", r.Events)
	}
}

// liar stores another receipt than it is given.
type liar struct{ idempotency.MemoryStore }

func (s *liar) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	r.Data = bytes.ReplaceAll(r.Data, []byte("receipt-"), []byte("receipt-9"))
	return s.MemoryStore.Complete(ctx, r)
}

// forgiving takes any payload for the same.
type forgiving struct{ idempotency.MemoryStore }

func (s *forgiving) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	r.Fingerprint = ""
	return s.MemoryStore.Claim(ctx, r)
}

// TestBrokenStores shows that a run notices what is wrong with a store.
func TestBrokenStores(t *testing.T) {
	for _, test := range []struct {
		name    string
		store   idempotency.Store
		noticed func(r *Result) bool
	}{
		{"forgets completions", &brokenstore.Forgetful{}, func(r *Result) bool { return r.Unexplained() > 4 }},
		{"takes no notice of leases", &brokenstore.Generous{}, func(r *Result) bool { return r.Unexplained() > 4 }},
		{"says that all is done", &brokenstore.Hasty{}, func(r *Result) bool {
			return len(r.Lost) == Payments()-1 && len(r.Unanswered) == Payments()
		}},
		{"replays another receipt", &liar{}, func(r *Result) bool { return len(r.Wrong) > 4 }},
		{"knows no fingerprints", &forgiving{}, func(r *Result) bool { return len(r.Wrong) == 2 }}, // amount changed
	} {
		t.Run(test.name, func(t *testing.T) {
			if r := simulate(t, test.store); !test.noticed(r) {
				t.Errorf("lost %q, unanswered %q, wrong %q, repeats %+v", r.Lost, r.Unanswered, r.Wrong, r.Repeats)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if r, err := Run(ctx, idempotency.NewMemoryStore()); r != nil || err == nil {
			t.Errorf("result %v, error %v; want an error", r, err)
		}
		letGo()
	})
}

// TestStories are told apart by their names, and send the header with some payments and not with others.
func TestStories(t *testing.T) {
	var names []string
	for _, s := range stories {
		if slices.Contains(names, s.name) || s.payments < 1 || strings.TrimSpace(s.note) == "" {
			t.Errorf("story %q with %d payments and the note %q", s.name, s.payments, s.note)
		}
		names = append(names, s.name)
	}
	r := &run{}
	if r.newCustomer(1, trouble{}).key != "" || r.newCustomer(2, trouble{}).key == "" {
		t.Error("want the header from every second customer")
	}
}
