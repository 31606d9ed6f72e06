// Command orders shows what oncekit does when things go wrong. It sends orders through a queue in memory that behaves
// like SQS and Lambda, into the handler that runs on Lambda too, and counts what was charged twice and what was lost.
//
//	go run ./examples/orders        needs no account, no container and no server
//	go run ./examples/orders -h     says what else it can do
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/signal"

	"github.com/oncekit/oncekit/batch"
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
	seed        uint64
	orders      int
	concurrency int
	endpoint    string
	table       string
	event       string
}

const (
	maxOrders = 10_000
	// defaultSeed is a seed with which everything happens that can, within 200 orders.
	defaultSeed = 20
)

const help = `Sends orders through a queue in memory into a real handler, lets things go wrong on the way, and counts at
the end what was charged twice, why, and what was lost. It takes about ten seconds, and more with a table.

usage: go run ./examples/orders [flags]

  -orders N          how many orders are sent, 1 to 10000 (default 200). Fewer than 10 have no bad ones among them.
  -seed N            decides all that is random, 0 to 18446744073709551615 (default 20); the same seed gives the same
                     table, and 0 draws one
  -concurrency N     how many orders of a batch are handled at once, 1 to 10000 (default 10; a batch has 10 orders)

The idempotency records say which orders are in progress and which are done. They are kept in memory, unless one of
these is given:

  -endpoint URL      keeps them in DynamoDB at this http or https URL, such as http://localhost:8000 for a local server.
                     The table is created if it does not exist. Without AWS_ACCESS_KEY_ID, credentials are made up.
  -table NAME        keeps them in this DynamoDB table, which must exist unless -endpoint is given too (default there:
                     oncekit-orders). Region and credentials are the usual ones of the AWS SDK. A run of 200 orders
                     costs some 600 writes, less than a cent.

  -event FILE        handles the SQS event in the file instead, within 30 seconds, and prints the response. It goes with
                     -concurrency, -endpoint and -table, and not with -orders or -seed.

The exit code is 0 if all went well, 1 if an order was lost, or repeated without a reason, or if something could not be
done, and 2 if the command line is wrong.
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("orders", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f.orders, f.seed, f.concurrency = 200, defaultSeed, batch.DefaultConcurrency
	set.Func("seed", "", number.Seed(&f.seed))
	set.Func("orders", "", number.From(1, maxOrders, &f.orders))
	set.Func("concurrency", "", number.From(1, batch.MaxConcurrency, &f.concurrency))
	set.StringVar(&f.endpoint, "endpoint", "", "")
	set.StringVar(&f.table, "table", "", "")
	set.StringVar(&f.event, "event", "", "")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	for _, name := range []string{"endpoint", "table", "event"} {
		if given := set.Lookup(name); isSet(set, name) && given.Value.String() == "" {
			return f, fmt.Errorf("-%s is empty", name)
		}
	}
	for _, name := range []string{"orders", "seed"} {
		if isSet(set, "event") && isSet(set, name) {
			return f, fmt.Errorf("-%s is of no use with -event, which sends no orders of its own: leave one of them out", name)
		}
	}
	if f.endpoint != "" && !isHTTP(f.endpoint) {
		return f, fmt.Errorf("-endpoint is %q, want a URL such as http://localhost:8000", f.endpoint)
	}
	for f.seed == 0 {
		f.seed = rand.Uint64N(1_000_000)
	}
	return f, nil
}

func isHTTP(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func isSet(set *flag.FlagSet, name string) bool {
	found := false
	set.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return success
	}
	if err != nil {
		fmt.Fprintf(stderr, "orders: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	store, err := openStore(ctx, f)
	if err != nil {
		fmt.Fprintf(stderr, "orders: %v\n", err)
		return failure
	}
	if f.event != "" {
		err = handleEvent(ctx, f, store, stdout, stderr)
	} else {
		err = simulate(ctx, f, store, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "orders: %v\n", err)
		return failure
	}
	return success
}
