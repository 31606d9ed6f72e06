// Command clicks shows what oncekit does when things go wrong in a stream. It puts clicks into a Kinesis stream in memory,
// has them read by the handler that runs on Lambda too, and counts what was repeated, out of order and lost. Beside it the
// same stream is read by two loops written by hand.
//
//	go run ./examples/clicks        needs no account, no container and no server
//	go run ./examples/clicks -h     says what else it can do
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
	failure // something was lost, out of order, or repeated without an excuse, or could not be done
	usage   // the command line is wrong
)

// flags is the command line.
type flags struct {
	seed   uint64
	clicks int
}

const (
	minClicks, maxClicks = 100, 10_000
	defaultSeed          = 7
)

const help = `Puts clicks into a Kinesis stream in memory, as aggregates of the Kinesis Producer Library on three shards, and has
a real handler read them while things go wrong: crashes, an outage, a click that nobody can store, a part of a shard that
is delivered again. It counts at the end what was repeated, why, what was out of order and what was lost, beside two loops
that are written by hand. It takes about eight seconds.

usage: go run ./examples/clicks [flags]

  -clicks N          how many clicks are sent, 100 to 10000 (default 400)
  -seed N            decides all that is random, 0 to 18446744073709551615 (default 7); the same seed gives the same
                     table, and 0 draws one

The exit code is 0 if all went well, 1 if oncekit lost a click, put two in the wrong order or repeated one without a
reason, or if something could not be done, and 2 if the command line is wrong.
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	f := flags{seed: defaultSeed, clicks: 400}
	set := flag.NewFlagSet("clicks", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Func("seed", "", number.Seed(&f.seed))
	set.Func("clicks", "", number.From(minClicks, maxClicks, &f.clicks))
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
		fmt.Fprintf(stderr, "clicks: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	if err := simulate(ctx, f, stdout); err != nil {
		fmt.Fprintf(stderr, "clicks: %v\n", err)
		return failure
	}
	return success
}
