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
the end what was charged twice, why, and what was lost.

usage: go run ./examples/orders [flags]

  -orders N          how many orders are sent, 1 to 10000 (default 200)
  -seed N            decides all that is random; the same seed gives the same table (default 20; 0: any)
  -concurrency N     how many orders of a batch are handled at once (default 10)

  -endpoint URL      keeps the claims in DynamoDB at this endpoint, such as a local server, instead of in memory. The
                     table is created if it does not exist. Without AWS_ACCESS_KEY_ID, credentials are made up.
  -table NAME        keeps the claims in this DynamoDB table, which must exist unless -endpoint is given too (default
                     there: oncekit-orders). Region and credentials are the usual ones of the AWS SDK. It costs some
                     600 writes a run, less than a cent.

  -event FILE        handles the SQS event in the file instead, and prints the response
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("orders", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Uint64Var(&f.seed, "seed", defaultSeed, "")
	set.IntVar(&f.orders, "orders", 200, "")
	set.IntVar(&f.concurrency, "concurrency", batch.DefaultConcurrency, "")
	set.StringVar(&f.endpoint, "endpoint", "", "")
	set.StringVar(&f.table, "table", "", "")
	set.StringVar(&f.event, "event", "", "")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("%q is no flag", set.Arg(0))
	case f.orders < 1 || f.orders > maxOrders:
		return f, fmt.Errorf("-orders is %d, want 1 to %d", f.orders, maxOrders)
	case f.concurrency < 1 || f.concurrency > batch.MaxConcurrency:
		return f, fmt.Errorf("-concurrency is %d, want 1 to %d", f.concurrency, batch.MaxConcurrency)
	}
	for _, name := range []string{"endpoint", "table", "event"} {
		if given := set.Lookup(name); isSet(set, name) && given.Value.String() == "" {
			return f, fmt.Errorf("-%s is empty", name)
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
