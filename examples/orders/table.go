package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// maxListed is how many lines a list in the output has at most.
const maxListed = 20

// printResult prints a run with a guard and one without beside each other.
func printResult(w io.Writer, with, without *simulation.Result) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%-34s %10s %10s\n", "", "oncekit", "no guard")
	for _, row := range []struct {
		name  string
		value func(*simulation.Result) int
		note  string
	}{
		{"orders sent", func(r *simulation.Result) int { return r.Orders }, ""},
		{"+ delivered twice by the queue", func(r *simulation.Result) int { return r.Duplicates }, ""},
		{"+ retries", func(r *simulation.Result) int { return r.Retries }, "after a failure or a crash"},
		{"= deliveries", func(r *simulation.Result) int { return r.Deliveries }, ""},
		{"handler runs", func(r *simulation.Result) int { return r.Runs }, ""},
		{"replays", func(r *simulation.Result) int { return r.Replays }, "done before, so the handler did not run"},
		{"in progress elsewhere", func(r *simulation.Result) int { return r.InProgress }, "came back later"},
		{"handlers given up", func(r *simulation.Result) int { return r.Abandoned }, "hung, and ignored their context"},
		{"crashes in mid-batch", func(r *simulation.Result) int { return r.Crashes }, ""},
		{"store calls throttled", func(r *simulation.Result) int { return r.Throttled }, ""},
		{"store replies lost", func(r *simulation.Result) int { return r.RepliesLost }, ""},
		{"orders charged", func(r *simulation.Result) int { return r.Charged }, ""},
		{"dead-lettered", func(r *simulation.Result) int { return len(r.DeadLettered) }, ""},
		{"charged again", func(r *simulation.Result) int { return len(r.Repeats) }, ""},
		{"lost", func(r *simulation.Result) int { return len(r.Lost) }, "neither charged nor dead-lettered"},
	} {
		line := fmt.Sprintf("%-34s %10d %10d", row.name, row.value(with), row.value(without))
		if row.note != "" {
			line += "   " + row.note
		}
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b)
	fmt.Fprintf(&b, "dead-lettered: %d\n", len(with.DeadLettered))
	list(&b, len(with.DeadLettered), func(i int) string {
		d := with.DeadLettered[i]
		text := fmt.Sprintf("%s: %v", d.Order, d.Err)
		if d.Charged {
			text += " (it was charged)"
		}
		return text
	})
	fmt.Fprintf(&b, "repeated: %d\n", len(with.Repeats))
	list(&b, len(with.Repeats), func(i int) string { return with.Repeats[i].String() })
	fmt.Fprintf(&b, "lost: %d\n", len(with.Lost))
	list(&b, len(with.Lost), func(i int) string { return with.Lost[i] })
	_, err := w.Write(b.Bytes())
	return err
}

// list prints n lines, or as many as are not too many.
func list(b *bytes.Buffer, n int, line func(int) string) {
	for i := range min(n, maxListed) {
		fmt.Fprintf(b, "  %s\n", line(i))
	}
	if n > maxListed {
		fmt.Fprintf(b, "  and %d more\n", n-maxListed)
	}
}
