package simulation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/examples/internal/brokenstore"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
	"github.com/oncekit/oncekit/idempotency"
)

// simulate runs a simulation in no time.
func simulate(t *testing.T, config Config) (result *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = Run(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // for what the end of the run has let go
	})
	if sum := result.ByRule + result.ByQueue + result.Copies + result.Replayed + result.ByLambda + result.BySQS; sum != result.Deliveries ||
		min(result.Published, result.Copies, result.ByLambda, result.BySQS) < 0 {
		t.Errorf("the parts of the deliveries are %d together, want %d: %+v", sum, result.Deliveries, result)
	}
	if sum := result.Invoiced + result.NeverInvoiced() + len(result.Lost); sum != result.Orders {
		t.Errorf("invoiced, given up and lost are %d orders, want %d", sum, result.Orders)
	}
	return result
}

// TestGuardKeepsItsWord runs many seeds, so that everything happens somewhere.
func TestGuardKeepsItsWord(t *testing.T) {
	var published, copies, lambda, sqs, crashes, errors, repeated, twice int
	for seed := range draw.Seed(20) {
		for _, key := range []invoices.Key{invoices.ByOrder, invoices.ByEvent} {
			config := Config{Seed: seed, Orders: 12, Key: key, Store: idempotency.NewMemoryStore()}
			r := simulate(t, config)
			if len(r.Lost) > 0 || r.Unexplained() > 0 {
				t.Errorf("seed %d, key %v: lost are %q, repeats %v, want none lost or unexplained", seed, key, r.Lost, r.Repeats)
			}
			if again := r.Again; again.Invoices != again.Keys || again.Orders != r.Invoiced || again.Events != r.Events {
				t.Errorf("seed %d, key %v: RunReplays did %+v, want an invoice for each key, and for each of %d orders",
					seed, key, again, r.Invoiced)
			}
			if key == invoices.ByOrder {
				if r.PublishedTwice() > 0 {
					t.Errorf("seed %d: %d orders have two keys", seed, r.PublishedTwice())
				}
			} else {
				twice += r.PublishedTwice()
			}
			published, copies, lambda, sqs = published+r.Published, copies+r.Copies, lambda+r.ByLambda, sqs+r.BySQS
			crashes, errors, repeated = crashes+r.Crashes, errors+r.Errors, repeated+len(r.Repeats)
		}
	}
	if min(published, copies, lambda, sqs, crashes, errors, repeated, twice) == 0 {
		t.Errorf("published again %d, copies %d, tried again by Lambda %d and by SQS %d, crashes %d, errors %d, repeated %d, "+
			"invoiced for each of two events %d, want all of it to happen", published, copies, lambda, sqs, crashes, errors, repeated, twice)
	}
}

// TestNoGuard: whatever is done comes by the other way too, and in the replay.
func TestNoGuard(t *testing.T) {
	r := simulate(t, Config{Seed: 1, Orders: 12})
	if r.Invoices < 3*r.Invoiced || r.NotRun > 0 || r.Again != nil {
		t.Errorf("%d invoices for %d orders and %d replays, want three times as many and none", r.Invoices, r.Invoiced, r.NotRun)
	}
	if len(r.Lost) > 0 {
		t.Errorf("lost are %q, want none", r.Lost)
	}
}

// TestBrokenStores runs the simulation with stores that do not keep their contract: it notices.
func TestBrokenStores(t *testing.T) {
	for _, test := range []struct {
		store   idempotency.Store
		noticed func(r *Result) bool
	}{
		{new(brokenstore.Forgetful), func(r *Result) bool { return r.Unexplained() > 0 }},
		{new(brokenstore.Hasty), func(r *Result) bool { return len(r.Lost) > 0 }},
	} {
		t.Run(fmt.Sprintf("%T", test.store), func(t *testing.T) {
			if r := simulate(t, Config{Seed: 1, Orders: 12, Store: test.store}); !test.noticed(r) {
				t.Errorf("lost are %q, repeats %v, want the store to be noticed", r.Lost, r.Repeats)
			}
		})
	}
}

// TestGivenUp looks for the two orders that are to be given up: one until the billing system is repaired, one for good.
func TestGivenUp(t *testing.T) {
	r := simulate(t, Config{Seed: 1, Orders: 12, Store: idempotency.NewMemoryStore()})
	unknown := newSystem(1, 12).unknown
	var sawUnknown, sawFree bool
	for _, g := range r.GivenUp {
		switch g.Order {
		case unknown:
			sawUnknown = g.Invoiced != "" && len(g.How) >= 2
		case "order-0012":
			sawFree = g.Invoiced == ""
		}
	}
	if !sawUnknown || !sawFree {
		t.Errorf("given up are %v, want %s by both ways and invoiced by the replay, and order-0012 for good", r.GivenUp, unknown)
	}
}

func TestFewOrders(t *testing.T) {
	for orders := 1; orders <= 3; orders++ {
		r := simulate(t, Config{Seed: 1, Orders: orders, Store: idempotency.NewMemoryStore()})
		if r.Orders != orders || len(r.Lost) > 0 || r.Unexplained() > 0 {
			t.Errorf("of %d orders: %+v", orders, r)
		}
	}
}

func TestText(t *testing.T) {
	repeat := Repeat{Order: "order-0001", Cause: "a crash", First: invocationName(number(byRule, 3)), Again: invocationName(number(byQueue, 4))}
	if got, want := repeat.String(), "order-0001: a crash (invoiced by invocation 3 of the rule, and again by invocation 4 of the queue)"; got != want {
		t.Errorf("repeat is %q, want %q", got, want)
	}
	for _, test := range []struct{ invoiced, want string }{
		{"", "order-0001: moved by Lambda, and by SQS"},
		{"invocation 1 of the rule", "order-0001: moved by Lambda, and by SQS; invoiced all the same by invocation 1 of the rule"},
	} {
		g := GivenUp{Order: "order-0001", How: []string{"by Lambda", "by SQS"}, Invoiced: test.invoiced}
		if got := g.String(); got != test.want {
			t.Errorf("given up is %q, want %q", got, test.want)
		}
	}
}
