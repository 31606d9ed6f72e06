// Package report prints what has come of the examples' simulations, and how far they have got.
package report

import (
	"fmt"
	"io"
)

// Row is a line of a table: what it counts in a result of type R, and what there is to know about that. A row without a
// name is an empty line.
type Row[R any] struct {
	Sign  string // + and =: the rows above add up
	Name  string
	Value func(R) int
	Note  string
}

// NewRow returns a row.
func NewRow[R any](sign, name string, value func(R) int, note string) Row[R] {
	return Row[R]{Sign: sign, Name: name, Value: value, Note: note}
}

// Column is a result, and what to call it.
type Column[R any] struct {
	Title  string
	Result R
}

// Table prints the rows, with the results beside each other.
func Table[R any](w io.Writer, rows []Row[R], columns ...Column[R]) {
	fmt.Fprintf(w, "%-29s", "")
	for _, c := range columns {
		fmt.Fprintf(w, " %*s", c.width(), c.Title)
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		if row.Name == "" {
			fmt.Fprintln(w)
			continue
		}
		fmt.Fprintf(w, "%s %-27s", row.Sign, row.Name)
		for _, c := range columns {
			fmt.Fprintf(w, " %*d", c.width(), row.Value(c.Result))
		}
		fmt.Fprintf(w, "   %s\n", row.Note)
	}
}

func (c Column[R]) width() int { return len(c.Title) + 1 }

// maxListed is how many lines a list has at most.
const maxListed = 20

// List prints n lines, or as many as are not too many.
func List(w io.Writer, n int, line func(int) string) {
	for i := range min(n, maxListed) {
		fmt.Fprintf(w, "  %s\n", line(i))
	}
	if n > maxListed {
		fmt.Fprintf(w, "  and %d more\n", n-maxListed)
	}
}

// Count returns a number with the noun in its form.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
