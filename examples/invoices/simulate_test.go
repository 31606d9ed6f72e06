package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/invoices/internal/simulation"
)

// TestVerdict is the exit code: a run in which the guard broke its word is a failure.
func TestVerdict(t *testing.T) {
	explained := simulation.Repeat{Cause: "a crash"}
	good := &simulation.Again{Keys: 3, Invoices: 3, Orders: 2}
	for _, test := range []struct {
		name   string
		result simulation.Result
		want   string
	}{
		{"nothing", simulation.Result{Invoiced: 2, Again: good}, ""},
		{"explained", simulation.Result{Invoiced: 2, Again: good, Repeats: []simulation.Repeat{explained}}, ""},
		{"lost", simulation.Result{Invoiced: 2, Again: good, Lost: []string{"order-0007", "order-0009"}},
			"x: 2 orders were lost: order-0007, order-0009"},
		{"unexplained", simulation.Result{Invoiced: 2, Again: good, Repeats: []simulation.Repeat{explained, {Unexplained: true}}},
			"x: 1 invoice was repeated without a reason"},
		{"not replayed", simulation.Result{Invoiced: 3, Again: good},
			"x: a replay with RunReplays wrote 3 invoices for 2 orders, want 3 for 3"},
		{"replayed twice", simulation.Result{Invoiced: 2, Again: &simulation.Again{Keys: 2, Invoices: 3, Orders: 2}},
			"x: a replay with RunReplays wrote 3 invoices for 2 orders, want 2 for 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := verdict("x", &test.result); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("verdict is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	byOrder := &simulation.Result{
		Orders: 5, Published: 1, Events: 6, ByRule: 6, ByQueue: 6, Copies: 2, Replayed: 12, ByLambda: 3, BySQS: 4, Deliveries: 33,
		Invoiced: 3, Invoices: 4, NotRun: 20, Crashes: 1, Errors: 7, Lost: []string{"order-0003"},
		Repeats: []simulation.Repeat{{Order: "order-0001", Cause: "a crash", First: "a", Again: "b"}},
		GivenUp: []simulation.GivenUp{{Order: "order-0004", How: []string{"by SQS"}}, {Order: "order-0001", How: []string{"by Lambda"}, Invoiced: "a"}},
		Again:   &simulation.Again{Events: 6, Keys: 3, Invoices: 3, Orders: 3},
	}
	byEvent := &simulation.Result{Again: &simulation.Again{Events: 1, Keys: 1, Invoices: 1, Orders: 1}}
	var got bytes.Buffer
	if err := printResults(&got, []*simulation.Result{byOrder, byEvent, {Orders: 5}}); err != nil {
		t.Fatal(err)
	}
	want := `
                               by order  by event  no guard
  orders placed                       5         0         5   by the shop's customers
+ published again                     1         0         0   the shop did not get PutEvents' answer
= events                              6         0         0   each with an id of its own

  by the rule                         6         0         0   each event once, as an invocation of its own
+ by the queue                        6         0         0   and each once more, in a message
+ copies                              2         0         0   EventBridge, Lambda or SQS delivered twice
+ replayed                           12         0         0   out of the archive, by both ways
+ tried again by Lambda               3         0         0   one and three minutes after a failure or a crash
+ tried again by SQS                  4         0         0   when the visibility timeout was over
= deliveries                         33         0         0   handed to the function

  orders invoiced                     3         0         0   at least once; each counted once
+ in a dead-letter queue              1         0         0   and never invoiced
+ lost                                1         0         0   neither invoiced nor in a dead-letter queue
= orders placed                       5         0         5   as above

  orders invoiced                     3         0         0   as above
+ repeated                            1         0         0   invoices of an order beyond its first
= invoices                            4         0         0   what the customers got

  not run                            20         0         0   deliveries of what was done before
  invocations that crashed            1         0         0   by the queue with up to ten events each
  calls that failed                   7         0         0   the billing system did not write the invoice

` + legend + `
With a key by order:

repeated: 1
  order-0001: a crash (invoiced by a, and again by b)
in a dead-letter queue: 2
  order-0004: moved by SQS
  order-0001: moved by Lambda; invoiced all the same by a
lost: 1
  order-0003
replayed once more, to the rule, with RunReplays: 6 events, which wrote 3 invoices for 3 orders again

With a key by event:

repeated: 0
in a dead-letter queue: 0
lost: 0
replayed once more, to the rule, with RunReplays: 1 event, which wrote 1 invoice for 1 order again

` + remedy
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	got := status(simulation.Progress{Part: "the morning", Invoiced: 19, Invoices: 20, Crashes: 1})
	if want := "the morning: 19 orders invoiced so far, with 20 invoices and 1 crash"; got != want {
		t.Errorf("status is %q, want %q", got, want)
	}
}
