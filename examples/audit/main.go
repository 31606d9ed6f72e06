// Command audit shows what oncekit does for a stream when things go wrong. It changes orders in a table in memory whose
// stream behaves like DynamoDB's and Lambda's, hands the changes to the handler that runs on Lambda too, and counts what
// was logged twice, out of order, or not at all.
//
//	go run ./examples/audit        needs no account, no container and no server
//	go run ./examples/audit -h     says what else it can do
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/audit/internal/simulation"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/number"
	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/idempotency"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	success = iota
	failure // something was lost, out of order, or repeated without an excuse, or could not be done
	usage   // the command line is wrong
)

// flags is the command line.
type flags struct {
	seed   uint64
	orders int
}

const (
	maxOrders = 400
	// defaultSeed is a seed with which everything happens that can, within 40 orders.
	defaultSeed = 5
)

const help = `Changes orders in a table in memory, hands the table's stream to a real handler, lets things go wrong on the
way, and counts at the end what was logged twice, why, out of order, and not at all. It takes about five seconds.

usage: go run ./examples/audit [flags]

  -orders N          how many orders are changed, 1 to 400 (default 40); each has about five changes
  -seed N            decides all that is random, 0 to 18446744073709551615 (default 5); the same seed gives the same
                     table, and 0 draws one

The exit code is 0 if all went well, 1 if a change was lost, out of order, or repeated without a reason, or if something
could not be done, and 2 if the command line is wrong.
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	f := flags{seed: defaultSeed, orders: 40}
	set := flag.NewFlagSet("audit", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Func("orders", "", number.From(1, maxOrders, &f.orders))
	set.Func("seed", "", number.Seed(&f.seed))
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	for f.seed == 0 {
		f.seed = rand.Uint64N(1_000_000)
	}
	return f, nil
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return success
	}
	if err != nil {
		fmt.Fprintf(stderr, "audit: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	if err := simulate(ctx, f, stdout); err != nil {
		fmt.Fprintf(stderr, "audit: %v\n", err)
		return failure
	}
	return success
}

// simulate runs the simulation with each of the functions that are compared, all at once, and prints what came of them.
func simulate(ctx context.Context, f flags, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%s, seed %d. This takes about %d seconds.\n\n", report.Count(f.orders, "order", "orders"), f.seed,
		max(5, f.orders/14))
	results := make([]*simulation.Result, len(columns))
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range columns {
		config := simulation.Config{Seed: draw.Seed(f.seed), Orders: f.orders, Function: c.Result}
		if c.Result == simulation.Oncekit {
			config.Store = idempotency.NewMemoryStore()
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
	return verdict(results[0])
}

// status says in one line how far a run has got.
func status(p simulation.Progress) string {
	return fmt.Sprintf("part %d: %d of %s logged, %s so far", p.Part, p.Logged,
		report.Count(p.Changes, "change", "changes"), report.Count(p.Crashes, "crash", "crashes"))
}
