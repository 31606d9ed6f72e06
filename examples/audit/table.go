package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/examples/audit/internal/simulation"
	"github.com/oncekit/oncekit/examples/internal/report"
)

// columns are the functions that are compared.
var columns = []report.Column[simulation.Function]{
	{Title: "oncekit", Result: simulation.Oncekit},
	{Title: "goes on", Result: simulation.LoopGoesOn},
	{Title: "stops", Result: simulation.LoopStops},
}

// legend says what the columns are.
const legend = `oncekit: the handler of examples/audit/audit.
goes on: a loop by hand that goes on behind a change that fails, and names all that did.
stops:   a loop by hand that stops at the first change that fails, and names it.
`

// rows is the table. Sums are counted apart from their parts, except for retries, which are what is left of the
// deliveries.
var rows = []report.Row[*simulation.Result]{
	row(" ", "changes", func(r *simulation.Result) int { return r.Changes }, "each a record of the stream"),
	row("+", "redelivered", func(r *simulation.Result) int { return r.Redelivered }, "the mapping began again further back"),
	row("+", "retries", func(r *simulation.Result) int { return r.Retries }, "came back: a failure, a crash, or behind one"),
	row("=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "records handed to the function"),
	{},
	row(" ", "changes logged", func(r *simulation.Result) int { return r.Logged }, "at least once; each counted once"),
	row("+", "in the dead-letter queue", (*simulation.Result).Moved, "and never logged; the reasons are below"),
	row("+", "lost", func(r *simulation.Result) int { return len(r.Lost) }, "Lambda discarded them, with a notice of where they were"),
	row("=", "changes", func(r *simulation.Result) int { return r.Changes }, "as above"),
	{},
	row(" ", "changes logged", func(r *simulation.Result) int { return r.Logged }, "as above"),
	row("+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "rows of a change beyond its first"),
	row("=", "rows", func(r *simulation.Result) int { return r.Rows }, "what the log has"),
	{},
	row(" ", "out of order", func(r *simulation.Result) int { return len(r.OutOfOrder) },
		"first logged after a later change of the same order"),
	row(" ", "replays", func(r *simulation.Result) int { return r.Replays }, "deliveries of what was done: not run"),
	{},
	row(" ", "invocations that crashed", func(r *simulation.Result) int { return r.Crashes }, "with up to 20 changes each"),
	row(" ", "appends throttled", func(r *simulation.Result) int { return r.LogThrottled }, "the log refused them"),
	row(" ", "store calls throttled", func(r *simulation.Result) int { return r.Throttled }, "the guard's table refused them"),
	row(" ", "store replies lost", func(r *simulation.Result) int { return r.RepliesLost }, "it did them, and nobody heard"),
}

func row(sign, name string, value func(*simulation.Result) int, note string) report.Row[*simulation.Result] {
	return report.NewRow(sign, name, value, note)
}

// printResults prints the results of the columns beside each other, and below what there is to say of the first.
func printResults(w io.Writer, results []*simulation.Result) error {
	var b bytes.Buffer
	var table []report.Column[*simulation.Result]
	for i, c := range columns {
		table = append(table, report.Column[*simulation.Result]{Title: c.Title, Result: results[i]})
	}
	fmt.Fprintln(&b)
	report.Table(&b, rows, table...)
	fmt.Fprintf(&b, "\n%s\nWith oncekit:\n\n", legend)
	r := results[0]
	fmt.Fprintf(&b, "moved to the dead-letter queue: %d\n", len(r.DeadLettered))
	report.List(&b, len(r.DeadLettered), func(i int) string {
		d := r.DeadLettered[i]
		how := fmt.Sprintf("after %d attempts", audit.MaxAttempts)
		if d.Logged {
			how += ", although it was logged"
		}
		return fmt.Sprintf("%s: %v (%s)", d.Change, d.Err, how)
	})
	fmt.Fprintf(&b, "repeated: %d\n", len(r.Repeats))
	report.List(&b, len(r.Repeats), func(i int) string { return r.Repeats[i].String() })
	fmt.Fprintf(&b, "out of order: %d\n", len(r.OutOfOrder))
	report.List(&b, len(r.OutOfOrder), func(i int) string { return r.OutOfOrder[i] })
	fmt.Fprintf(&b, "lost: %d\n", len(r.Lost))
	report.List(&b, len(r.Lost), func(i int) string { return r.Lost[i] })
	if len(r.Repeats) > 0 && r.Unexplained() == 0 {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `These repeats are the window that docs/guarantees.md describes. The log of this run appends whatever it is
given. The log of the deployed function, audit.TableLog, refuses the second row of a change.
`

// verdict is an error if the guard did not keep its word.
func verdict(r *simulation.Result) error {
	switch lost, disordered, unexplained := len(r.Lost), len(r.OutOfOrder), r.Unexplained(); {
	case lost > 0:
		return fmt.Errorf("%s lost: %s", report.Count(lost, "change was", "changes were"), strings.Join(r.Lost, ", "))
	case disordered > 0:
		return fmt.Errorf("%s logged out of order: %s", report.Count(disordered, "change was", "changes were"),
			strings.Join(r.OutOfOrder, ", "))
	case unexplained > 0:
		return fmt.Errorf("%s without a reason", report.Count(unexplained, "row was repeated", "rows were repeated"))
	}
	return nil
}
