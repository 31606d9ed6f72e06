package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// row makes a row of the table.
var row = report.NewRow[*simulation.Result]

// rows is the table. Sums are counted apart from their parts, except for retries, which are what is left of the
// deliveries.
var rows = []report.Row[*simulation.Result]{
	row(" ", "orders sent", func(r *simulation.Result) int { return r.Orders }, "each a message in the queue"),
	row("+", "second copies", func(r *simulation.Result) int { return r.Duplicates }, "the queue delivered the message twice"),
	row("+", "retries", func(r *simulation.Result) int { return r.Retries }, "the message came back: a failure or a crash"),
	row("=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "messages handed to the function"),
	{},
	row(" ", "handler runs", func(r *simulation.Result) int { return r.Runs }, "calls of the function's code"),
	row("+", "replays", func(r *simulation.Result) int { return r.Replays }, "done before, or a twin in the same batch: not run"),
	row("+", "in progress elsewhere", func(r *simulation.Result) int { return r.InProgress }, "not run, came back later"),
	row("+", "never reached the handler", func(r *simulation.Result) int { return r.Unreached },
		"not JSON, claim failed, no time left, or a crash first"),
	row("=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "as above"),
	{},
	row(" ", "orders charged", func(r *simulation.Result) int { return r.Charged }, "at least once; each counted once"),
	row("+", "in the dead-letter queue", (*simulation.Result).Uncharged, "and never charged; the reasons are below"),
	row("+", "lost", func(r *simulation.Result) int { return len(r.Lost) }, "neither charged nor in the dead-letter queue"),
	row("=", "orders sent", func(r *simulation.Result) int { return r.Orders }, "as above"),
	{},
	row(" ", "orders charged", func(r *simulation.Result) int { return r.Charged }, "as above"),
	row("+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "charges of an order beyond its first"),
	row("=", "charges", func(r *simulation.Result) int { return r.Charges }, "what the payment provider did"),
	{},
	row(" ", "invocations that crashed", func(r *simulation.Result) int { return r.Crashes }, "with up to ten deliveries each"),
	row(" ", "handlers that hung", func(r *simulation.Result) int { return r.Hung }, "they ignored their context and were given up"),
	row(" ", "store calls throttled", func(r *simulation.Result) int { return r.Throttled }, "the store refused them"),
	row(" ", "store replies lost", func(r *simulation.Result) int { return r.RepliesLost }, "the store did it, and nobody heard"),
}

// printResult prints a run with a guard and one without beside each other.
func printResult(w io.Writer, with, without *simulation.Result) error {
	var b bytes.Buffer
	fmt.Fprintln(&b)
	report.Table(&b, rows,
		report.Column[*simulation.Result]{Title: "oncekit", Result: with},
		report.Column[*simulation.Result]{Title: "no guard", Result: without})
	fmt.Fprintf(&b, "\nWith oncekit:\n\nmoved to the dead-letter queue: %d\n", len(with.DeadLettered))
	report.List(&b, len(with.DeadLettered), func(i int) string {
		d := with.DeadLettered[i]
		how := "by the function"
		if d.Receives > 0 {
			how = "by the queue after " + report.Count(d.Receives, "receive", "receives")
		}
		if d.Charged {
			how += ", although it was charged"
		}
		return fmt.Sprintf("%s: %v (%s)", d.Order, d.Err, how)
	})
	fmt.Fprintf(&b, "repeated: %d\n", len(with.Repeats))
	report.List(&b, len(with.Repeats), func(i int) string { return with.Repeats[i].String() })
	fmt.Fprintf(&b, "lost: %d\n", len(with.Lost))
	report.List(&b, len(with.Lost), func(i int) string { return with.Lost[i] })
	if len(with.Repeats) > 0 && with.Unexplained() == 0 {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `These repeats are the window that docs/guarantees.md describes.
A payment provider that is given the order's key as its idempotency key makes them harmless.
`
