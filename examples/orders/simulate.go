package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// simulate runs the simulation, beside it the same one without a guard, and prints what came of both.
func simulate(ctx context.Context, f flags, store openedStore, stdout io.Writer) error {
	config := simulation.Config{
		Seed: f.seed, Orders: f.orders, Concurrency: f.concurrency, Timeout: store.timeout, Namespace: store.namespace,
	}
	fmt.Fprintf(stdout, introduction, report.Count(f.orders, "order", "orders"), f.seed, store.name, roughly(config.Takes()))
	progress := report.NewProgress(stdout)
	var guarded, unguarded *simulation.Result
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		config := config
		config.Store = store.Store
		config.Progress = func(now simulation.Progress) { progress.Show(status(now), now.RoundEnded) }
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
	progress.End()
	if err := printResult(stdout, guarded, unguarded); err != nil {
		return err
	}
	return verdict(guarded)
}

const introduction = `%s, seed %d, idempotency records in %s. This takes about %d seconds.
In each round the queue delivers all it holds; what fails, or is in a batch that crashes, comes back in the next round.

`

// roughly returns a duration in seconds, in steps of five.
func roughly(d time.Duration) int { return max(5, int(d.Round(5*time.Second).Seconds())) }

// verdict is an error if the guard did not keep its word.
func verdict(r *simulation.Result) error {
	switch lost, unexplained := len(r.Lost), r.Unexplained(); {
	case lost > 0:
		return fmt.Errorf("%s lost: %s", report.Count(lost, "order was", "orders were"), strings.Join(r.Lost, ", "))
	case unexplained > 0:
		return fmt.Errorf("%s without a reason", report.Count(unexplained, "charge was repeated", "charges were repeated"))
	}
	return nil
}

// status says in one line how far a run has got. It fits on a terminal.
func status(now simulation.Progress) string {
	onTheWay := now.Orders - now.Charged - now.DeadLettered
	if now.Hopeless && onTheWay+now.DeadLettered > 0 {
		line := fmt.Sprintf("round %d: %d of %d charged, %d in the dead-letter queue",
			now.Round, now.Charged, now.Orders, now.DeadLettered)
		if onTheWay > 0 {
			line += fmt.Sprintf(", %d on the way", onTheWay)
		}
		return line
	}
	return fmt.Sprintf("round %d: %s so far, %d of %s charged, %s", now.Round,
		report.Count(now.Deliveries, "delivery", "deliveries"), now.Charged, report.Count(now.Orders, "order", "orders"),
		report.Count(now.Crashes, "crash", "crashes"))
}
