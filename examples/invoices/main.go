// Command invoices shows what oncekit does for events that come twice and by two ways. It publishes orders on a bus in
// memory, whose rules deliver them to the function that runs on Lambda too, directly and through a queue, lets things go wrong
// on the way, and counts what was invoiced twice and what was not.
//
//	go run ./examples/invoices        needs no account, no container and no server
//	go run ./examples/invoices -h     says what else it can do
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

	"github.com/oncekit/oncekit/examples/internal/number"
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
	failure // something was lost, or repeated without an excuse, or could not be done
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
	defaultSeed = 10
)

const help = `Publishes orders on a bus in memory, has a rule and a queue deliver them to a real handler, lets things go wrong on
the way, and counts at the end what was invoiced twice, why, and not at all. It takes about ten seconds.

usage: go run ./examples/invoices [flags]

  -orders N          how many orders are placed, 1 to 400 (default 40). Fewer than 3 have none among them that is given up.
  -seed N            decides all that is random, 0 to 18446744073709551615 (default 10); the same seed gives the same
                     table, and 0 draws one

The exit code is 0 if all went well, 1 if an order was lost, or invoiced again without a reason, or if something could not be
done, and 2 if the command line is wrong.
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	f := flags{seed: defaultSeed, orders: 40}
	set := flag.NewFlagSet("invoices", flag.ContinueOnError)
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
		fmt.Fprintf(stderr, "invoices: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	if err := simulate(ctx, f, stdout); err != nil {
		fmt.Fprintf(stderr, "invoices: %v\n", err)
		return failure
	}
	return success
}
