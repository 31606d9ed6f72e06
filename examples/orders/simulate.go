package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// simulate runs the simulation, beside it the same one without a guard, and prints what came of both.
func simulate(ctx context.Context, f flags, store openedStore, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%d orders, seed %d, claims in %s\n", f.orders, f.seed, store.name)
	progress := &progress{out: stdout, terminal: isTerminal(stdout)}
	config := simulation.Config{
		Seed: f.seed, Orders: f.orders, Concurrency: f.concurrency, Timeout: store.timeout, Namespace: store.namespace,
	}
	var guarded, unguarded *simulation.Result
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		config := config
		config.Store, config.Progress = store.Store, progress.show
		guarded, err = simulation.Run(ctx, config)
		return err
	})
	group.Go(func() (err error) {
		unguarded, err = simulation.Run(ctx, config)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	progress.end()
	if err := printResult(stdout, guarded, unguarded); err != nil {
		return err
	}
	return verdict(guarded)
}

// verdict is an error if the guard did not keep its word.
func verdict(r *simulation.Result) error {
	switch lost, unexplained := len(r.Lost), r.Unexplained(); {
	case lost > 0:
		return fmt.Errorf("%d orders were lost: %s", lost, strings.Join(r.Lost, ", "))
	case unexplained > 0:
		return fmt.Errorf("%d orders were charged again without a reason", unexplained)
	}
	return nil
}

// progress shows how far a run has got: in one line that changes on a terminal, in a line a round elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	shown    bool
}

func (p *progress) show(now simulation.Progress) {
	line := fmt.Sprintf("round %d: %d deliveries so far, %d of %d orders charged, %d crashes",
		now.Round, now.Deliveries, now.Charged, now.Orders, now.Crashes)
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r%-76s", line)
		p.shown = true
	case now.RoundEnded:
		fmt.Fprintln(p.out, line)
	}
}

// end ends the line that changes.
func (p *progress) end() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
