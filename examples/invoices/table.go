package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/invoices/internal/simulation"
)

// row makes a row of the table.
var row = report.NewRow[*simulation.Result]

// rows is the table. Sums are counted apart from their parts, except for what was tried again, which is what is left of the
// deliveries.
var rows = []report.Row[*simulation.Result]{
	row(" ", "orders placed", func(r *simulation.Result) int { return r.Orders }, "by the shop's customers"),
	row("+", "published again", func(r *simulation.Result) int { return r.Published }, "the shop did not get PutEvents' answer"),
	row("=", "events", func(r *simulation.Result) int { return r.Events }, "each with an id of its own"),
	{},
	row(" ", "by the rule", func(r *simulation.Result) int { return r.ByRule }, "each event once, as an invocation of its own"),
	row("+", "by the queue", func(r *simulation.Result) int { return r.ByQueue }, "and each once more, in a message"),
	row("+", "copies", func(r *simulation.Result) int { return r.Copies }, "EventBridge, Lambda or SQS delivered twice"),
	row("+", "replayed", func(r *simulation.Result) int { return r.Replayed }, "out of the archive, by both ways"),
	row("+", "tried again by Lambda", func(r *simulation.Result) int { return r.ByLambda },
		"one and three minutes after a failure or a crash"),
	row("+", "tried again by SQS", func(r *simulation.Result) int { return r.BySQS }, "when the visibility timeout was over"),
	row("=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "handed to the function"),
	{},
	row(" ", "orders invoiced", func(r *simulation.Result) int { return r.Invoiced }, "at least once; each counted once"),
	row("+", "in a dead-letter queue", (*simulation.Result).NeverInvoiced, "and never invoiced"),
	row("+", "lost", func(r *simulation.Result) int { return len(r.Lost) }, "neither invoiced nor in a dead-letter queue"),
	row("=", "orders placed", func(r *simulation.Result) int { return r.Orders }, "as above"),
	{},
	row(" ", "orders invoiced", func(r *simulation.Result) int { return r.Invoiced }, "as above"),
	row("+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "invoices of an order beyond its first"),
	row("=", "invoices", func(r *simulation.Result) int { return r.Invoices }, "what the customers got"),
	{},
	row(" ", "not run", func(r *simulation.Result) int { return r.NotRun }, "deliveries of what was done before"),
	row(" ", "invocations that crashed", func(r *simulation.Result) int { return r.Crashes }, "by the queue with up to ten events each"),
	row(" ", "calls that failed", func(r *simulation.Result) int { return r.Errors }, "the billing system did not write the invoice"),
}

const legend = `by order: the key is the order's id, which the shop gave it before it published anything.
by event: the key is EventBridge's id of the event. It is the same by both ways and in a replay, but a new one each
          time that the order is published.
no guard: the same function without a guard.
`

// printResults prints the results of the columns beside each other, and below what there is to say of those with a guard.
func printResults(w io.Writer, results []*simulation.Result) error {
	var b bytes.Buffer
	var table []report.Column[*simulation.Result]
	for i, c := range columns {
		table = append(table, report.Column[*simulation.Result]{Title: c.title, Result: results[i]})
	}
	fmt.Fprintln(&b)
	report.Table(&b, rows, table...)
	fmt.Fprintf(&b, "\n%s", legend)
	for i, c := range columns {
		if !c.guarded {
			continue
		}
		r := results[i]
		fmt.Fprintf(&b, "\nWith a key %s:\n\n", c.title)
		fmt.Fprintf(&b, "repeated: %d\n", len(r.Repeats))
		report.List(&b, len(r.Repeats), func(i int) string { return r.Repeats[i].String() })
		fmt.Fprintf(&b, "in a dead-letter queue: %d\n", len(r.GivenUp))
		report.List(&b, len(r.GivenUp), func(i int) string { return r.GivenUp[i].String() })
		fmt.Fprintf(&b, "lost: %d\n", len(r.Lost))
		report.List(&b, len(r.Lost), func(i int) string { return r.Lost[i] })
		fmt.Fprintf(&b, "replayed once more, to the rule, with RunReplays: %s, which wrote %s for %s again\n",
			report.Count(r.Again.Events, "event", "events"), report.Count(r.Again.Invoices, "invoice", "invoices"),
			report.Count(r.Again.Orders, "order", "orders"))
	}
	if r := results[0]; len(r.Repeats) > 0 && r.Unexplained() == 0 {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `What a crash repeats is the window that docs/guarantees.md describes: the invoice was written, and nobody was left to
say so. A billing system that takes an idempotency key, and is given the order's id, makes these repeats harmless.
`
