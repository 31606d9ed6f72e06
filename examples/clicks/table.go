package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/oncekit/oncekit/examples/clicks/internal/simulation"
	"github.com/oncekit/oncekit/examples/internal/report"
)

// row makes a row of the table.
var row = report.NewRow[*simulation.Result]

// rows is the table. Sums are counted apart from their parts.
var rows = []report.Row[*simulation.Result]{
	row(" ", "handler runs", func(r *simulation.Result) int { return r.Runs }, "calls of the function's code for a click"),
	row("+", "replays", func(r *simulation.Result) int { return r.Replays }, "done before: skipped"),
	row("+", "not run", func(r *simulation.Result) int { return r.NotRun }, "behind a failure, or a crash came first"),
	row("=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "of clicks to the function"),
	{},
	row(" ", "clicks appended", func(r *simulation.Result) int { return r.Appended }, "to their visitor's journey; each counted once"),
	row("+", "in the dead-letter queue", (*simulation.Result).GivenUp, "and never appended"),
	row("+", "lost", func(r *simulation.Result) int { return len(r.Lost) }, "neither appended nor in the dead-letter queue"),
	row("=", "clicks sent", func(r *simulation.Result) int { return r.Clicks }, "most of them in aggregates of several"),
	{},
	row(" ", "clicks appended", func(r *simulation.Result) int { return r.Appended }, "as above"),
	row("+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "appended again, after failures and crashes"),
	row("+", "repeated by redelivery", func(r *simulation.Result) int { return r.Redelivered }, "when half a shard came again at the end"),
	row("=", "appends", func(r *simulation.Result) int { return r.Appends }, "what the journeys' database did"),
	{},
	row(" ", "out of order", func(r *simulation.Result) int { return len(r.OutOfOrder) }, "appended after a later click of the visitor"),
	row(" ", "out of order, redelivered", func(r *simulation.Result) int { return r.RedeliveredOutOfOrder }, "the same, when half a shard came again"),
	{},
	row(" ", "invocations", func(r *simulation.Result) int { return r.Invocations }, "of the function"),
	row(" ", "invocations that crashed", func(r *simulation.Result) int { return r.Crashes }, "in the middle of their batch"),
	row(" ", "records discarded", func(r *simulation.Result) int { return r.Discarded }, "by Lambda, when the retries were used up"),
}

// printResults prints the results of the readers beside each other, and what there is to know of the first.
func printResults(w io.Writer, results []*simulation.Result) error {
	var b bytes.Buffer
	columns := make([]report.Column[*simulation.Result], len(results))
	for i, r := range results {
		columns[i] = report.Column[*simulation.Result]{Title: readers[i].title, Result: r}
	}
	report.Table(&b, rows, columns...)
	with := results[0]
	fmt.Fprintf(&b, "\nWith oncekit:\n\nredelivered at the end: %s (%d run, %d skipped)\n",
		report.Count(with.Segment.Clicks, "click", "clicks"), with.Segment.Runs, with.Segment.Replays)
	fmt.Fprintf(&b, "moved to the dead-letter queue: %d\n", len(with.DeadLettered))
	report.List(&b, len(with.DeadLettered), func(i int) string {
		d := with.DeadLettered[i]
		line := fmt.Sprintf("%s of %s: %s (started %s)", d.Click, d.Visitor, d.Err, report.Count(d.Attempts, "time", "times"))
		if d.Appended {
			line += ", although it was appended"
		}
		return line
	})
	fmt.Fprintf(&b, "repeated: %d\n", len(with.Repeats)+with.Redelivered)
	report.List(&b, len(with.Repeats), func(i int) string { return with.Repeats[i].String() })
	fmt.Fprintf(&b, "out of order: %d\n", len(with.OutOfOrder))
	report.List(&b, len(with.OutOfOrder), func(i int) string { return with.OutOfOrder[i] })
	fmt.Fprintf(&b, "lost: %d\n", len(with.Lost))
	report.List(&b, len(with.Lost), func(i int) string { return with.Lost[i] })
	if len(with.Repeats) > 0 && with.Unexplained() == 0 {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `These repeats are the window that docs/guarantees.md describes.
A database that takes each click's key once makes them harmless.
`
