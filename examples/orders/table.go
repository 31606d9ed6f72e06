package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// maxListed is how many lines a list in the output has at most.
const maxListed = 20

// row is a line of the table: what it counts, and what there is to know about that.
type row struct {
	sign  string // + and =: the rows above add up
	name  string
	value func(*simulation.Result) int
	note  string
}

// rows is the table. A row without a name is an empty line. Sums are counted apart from their parts, except
// for retries, which are what is left of the deliveries.
var rows = []row{
	{" ", "orders sent", func(r *simulation.Result) int { return r.Orders }, "each a message in the queue"},
	{"+", "second copies", func(r *simulation.Result) int { return r.Duplicates }, "the queue delivered the message twice"},
	{"+", "retries", func(r *simulation.Result) int { return r.Retries }, "the message came back: a failure or a crash"},
	{"=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "messages handed to the function"},
	{},
	{" ", "handler runs", func(r *simulation.Result) int { return r.Runs }, "calls of the function's code"},
	{"+", "replays", func(r *simulation.Result) int { return r.Replays }, "done before, or a twin in the same batch: not run"},
	{"+", "in progress elsewhere", func(r *simulation.Result) int { return r.InProgress }, "not run, came back later"},
	{"+", "never reached the handler", func(r *simulation.Result) int { return r.Unreached },
		"not JSON, claim failed, no time left, or a crash first"},
	{"=", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "as above"},
	{},
	{" ", "orders charged", func(r *simulation.Result) int { return r.Charged }, "at least once; each counted once"},
	{"+", "in the dead-letter queue", (*simulation.Result).Uncharged, "and never charged; the reasons are below"},
	{"+", "lost", func(r *simulation.Result) int { return len(r.Lost) }, "neither charged nor in the dead-letter queue"},
	{"=", "orders sent", func(r *simulation.Result) int { return r.Orders }, "as above"},
	{},
	{" ", "orders charged", func(r *simulation.Result) int { return r.Charged }, "as above"},
	{"+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "charges of an order beyond its first"},
	{"=", "charges", func(r *simulation.Result) int { return r.Charges }, "what the payment provider did"},
	{},
	{" ", "invocations that crashed", func(r *simulation.Result) int { return r.Crashes }, "with up to ten deliveries each"},
	{" ", "handlers that hung", func(r *simulation.Result) int { return r.Hung }, "they ignored their context and were given up"},
	{" ", "store calls throttled", func(r *simulation.Result) int { return r.Throttled }, "the store refused them"},
	{" ", "store replies lost", func(r *simulation.Result) int { return r.RepliesLost }, "the store did it, and nobody heard"},
}

// printResult prints a run with a guard and one without beside each other.
func printResult(w io.Writer, with, without *simulation.Result) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%-29s %8s %9s\n", "", "oncekit", "no guard")
	for _, row := range rows {
		if row.name == "" {
			fmt.Fprintln(&b)
			continue
		}
		fmt.Fprintf(&b, "%s %-27s %8d %9d   %s\n", row.sign, row.name, row.value(with), row.value(without), row.note)
	}
	fmt.Fprintf(&b, "\nWith oncekit:\n\nmoved to the dead-letter queue: %d\n", len(with.DeadLettered))
	list(&b, len(with.DeadLettered), func(i int) string {
		d := with.DeadLettered[i]
		how := "by the function"
		if d.Receives > 0 {
			how = "by the queue after " + count(d.Receives, "receive", "receives")
		}
		if d.Charged {
			how += ", although it was charged"
		}
		return fmt.Sprintf("%s: %v (%s)", d.Order, d.Err, how)
	})
	fmt.Fprintf(&b, "repeated: %d\n", len(with.Repeats))
	list(&b, len(with.Repeats), func(i int) string { return with.Repeats[i].String() })
	fmt.Fprintf(&b, "lost: %d\n", len(with.Lost))
	list(&b, len(with.Lost), func(i int) string { return with.Lost[i] })
	if len(with.Repeats) > 0 && with.Unexplained() == 0 {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `These repeats are the window that docs/guarantees.md describes.
A payment provider that is given the order's key as its idempotency key makes them harmless.
`

// list prints n lines, or as many as are not too many.
func list(b *bytes.Buffer, n int, line func(int) string) {
	for i := range min(n, maxListed) {
		fmt.Fprintf(b, "  %s\n", line(i))
	}
	if n > maxListed {
		fmt.Fprintf(b, "  and %d more\n", n-maxListed)
	}
}

// count returns a number with the noun in its form.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
