package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/invoices/internal/simulation"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
	"github.com/oncekit/oncekit/idempotency"
)

// column is one of the functions that are compared.
type column struct {
	title   string
	key     invoices.Key
	guarded bool
}

var columns = []column{
	{"by order", invoices.ByOrder, true},
	{"by event", invoices.ByEvent, true},
	{"no guard", 0, false},
}

const introduction = `%s, seed %d. Each is published as an event, and a rule invokes the function with it. Another rule sends
the same event to a queue, which invokes the same function. What takes a minute on AWS takes half a second here.

`

// simulate runs the simulation with each of the functions, all at once, and prints what came of them.
func simulate(ctx context.Context, f flags, stdout io.Writer) error {
	fmt.Fprintf(stdout, introduction, report.Count(f.orders, "order", "orders"), f.seed)
	results := make([]*simulation.Result, len(columns))
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range columns {
		config := simulation.Config{Seed: draw.Seed(f.seed), Orders: f.orders, Key: c.key}
		if c.guarded {
			config.Store = idempotency.NewMemoryStore()
		}
		if i == 0 {
			config.Progress = func(p simulation.Progress) { fmt.Fprintln(stdout, status(p)) }
		}
		group.Go(func() (err error) {
			results[i], err = simulation.Run(ctx, config)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := printResults(stdout, results); err != nil {
		return err
	}
	var errs []error
	for i, c := range columns {
		if c.guarded {
			errs = append(errs, verdict(c.title, results[i]))
		}
	}
	return errors.Join(errs...)
}

// status says in one line how far a run has got.
func status(p simulation.Progress) string {
	return fmt.Sprintf("%s: %s invoiced so far, with %s and %s", p.Part, report.Count(p.Invoiced, "order", "orders"),
		report.Count(p.Invoices, "invoice", "invoices"), report.Count(p.Crashes, "crash", "crashes"))
}

// verdict is an error if the guard did not keep its word.
func verdict(column string, r *simulation.Result) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(column+": "+format, args...)) }
	if lost := len(r.Lost); lost > 0 {
		add("%s lost: %s", report.Count(lost, "order was", "orders were"), strings.Join(r.Lost, ", "))
	}
	if unexplained := r.Unexplained(); unexplained > 0 {
		add("%s without a reason", report.Count(unexplained, "invoice was repeated", "invoices were repeated"))
	}
	if again := r.Again; again.Invoices != again.Keys || again.Orders != r.Invoiced {
		add("a replay with RunReplays wrote %s for %s, want %d for %d", report.Count(again.Invoices, "invoice", "invoices"),
			report.Count(again.Orders, "order", "orders"), again.Keys, r.Invoiced)
	}
	return errors.Join(errs...)
}
