package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/payments/internal/simulation"
)

// row makes a row of the table.
var row = report.NewRow[*simulation.Result]

func sent(sign, name string, why simulation.Reason, note string) report.Row[*simulation.Result] {
	return row(sign, name, func(r *simulation.Result) int { return r.Requests[why] }, note)
}

func answered(sign, name string, a simulation.Answer, note string) report.Row[*simulation.Result] {
	return row(sign, name, func(r *simulation.Result) int { return r.Answers[a] }, note)
}

func sum[K comparable](counts map[K]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// rows returns the table. Sums are counted apart from their parts.
func rows(stories []simulation.Told) []report.Row[*simulation.Result] {
	requests := func(r *simulation.Result) int { return sum(r.Requests) }
	charges := func(r *simulation.Result) int { return r.Charges }
	rows := []report.Row[*simulation.Result]{
		sent(" ", "payments", simulation.First, "each sent for the first time"),
		sent("+", "second clicks", simulation.Click, "before the first had an answer"),
		sent("+", "sent again", simulation.Again, "there was no answer, or one that asked for it"),
		sent("+", "with another amount", simulation.Changed, "and the same key"),
		row("=", "requests", requests, "to the API"),
		{},
		answered(" ", "201 created", simulation.Created, "the function charged the card"),
		answered("+", "201 replayed", simulation.Replayed, "the stored response, marked as a replay"),
		answered("+", "400 key missing", simulation.KeyMissing, "neither header nor ID"),
		answered("+", "402 declined", simulation.Declined, "by the bank, or replayed"),
		answered("+", "409 in progress", simulation.InProgress, "with Retry-After"),
		answered("+", "422 mismatch", simulation.Mismatch, "the key was used for another amount"),
		answered("+", "500 from the API", simulation.NoAnswer, "the function crashed"),
		answered("+", "503 try again", simulation.Unavailable, "bank or table were down: with Retry-After"),
		row("=", "requests", func(r *simulation.Result) int { return sum(r.Answers) }, "as above"),
		{},
	}
	for i, s := range stories {
		sign := "+"
		if i == 0 {
			sign = " "
		}
		rows = append(rows, row(sign, s.Name, func(r *simulation.Result) int { return r.Stories[i].Charges },
			report.Count(s.Payments, "payment", "payments")+": "+s.Note))
	}
	return append(rows,
		row("=", "charges", charges, "what the bank did"),
		report.Row[*simulation.Result]{},
		row(" ", "payments charged", func(r *simulation.Result) int { return r.Charged }, "at least once; each counted once"),
		row("+", "repeated", func(r *simulation.Result) int { return len(r.Repeats) }, "charges of a payment beyond its first"),
		row("=", "charges", charges, "as above"),
	)
}

// printResult prints a run with a guard and one without beside each other.
func printResult(w io.Writer, with, without *simulation.Result) error {
	var b bytes.Buffer
	fmt.Fprintln(&b)
	report.Table(&b, rows(with.Stories),
		report.Column[*simulation.Result]{Title: "oncekit", Result: with},
		report.Column[*simulation.Result]{Title: "no guard", Result: without})
	fmt.Fprintf(&b, "\nWith oncekit:\n\nrepeated: %d\n", len(with.Repeats))
	report.List(&b, len(with.Repeats), func(i int) string {
		repeat := with.Repeats[i]
		return fmt.Sprintf("%s: %s (the bank's key: %q)", repeat.Payment, repeat.Cause, repeat.Key)
	})
	fmt.Fprintf(&b, "lost, not answered, or answered wrongly: %d\n", len(with.Lost)+len(with.Unanswered)+len(with.Wrong))
	fmt.Fprintln(&b, "what the guard's hook has seen:")
	for _, kind := range slices.Sorted(maps.Keys(with.Events)) {
		fmt.Fprintf(&b, "  %-13s %3d\n", kind, with.Events[kind])
	}
	otherKey := slices.ContainsFunc(with.Repeats, func(r simulation.Repeat) bool { return r.Key == "" })
	if len(with.Repeats) > 0 && with.Unexplained() == 0 && !otherKey {
		fmt.Fprint(&b, "\n", remedy)
	}
	_, err := w.Write(b.Bytes())
	return err
}

const remedy = `Such repeats are the window that docs/guarantees.md describes. The function gives the bank the same key both times, and
a bank that takes it makes them harmless.
`
