// Command payments shows what idempotency.Wrap does for an API. Customers pay by an API in memory that behaves like API
// Gateway and Lambda, whose function is the one that runs on Lambda too. They click twice, run into timeouts, change the
// amount; the function crashes; and what was charged is counted, beside the same function without Wrap.
//
//	go run ./examples/payments        needs no account, no container and no server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/payments/internal/simulation"
	"github.com/oncekit/oncekit/idempotency"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], idempotency.NewMemoryStore(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	success = iota
	failure // the guard did not keep its word, or something could not be done
	usage   // the command line is wrong
)

const help = `Has customers pay by an API in memory, with a real handler behind it, while they click twice, run into timeouts and
change the amount, and while the function crashes. It counts what was charged and what was answered, beside the same
function without idempotency.Wrap. It takes about four seconds, and prints the same each time, unless the machine is so busy
that half a second is lost.

usage: go run ./examples/payments

The exit code is 0 if all went well, 1 if a payment was lost, or charged again without a reason, or answered wrongly or
not at all, or if something could not be done, and 2 if the command line is wrong.
`

// run is the program.
func run(ctx context.Context, args []string, store idempotency.Store, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("payments", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return success
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "payments: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	if err := simulate(ctx, store, stdout); err != nil {
		fmt.Fprintf(stderr, "payments: %v\n", err)
		return failure
	}
	return success
}

// simulate runs the simulation with and without a guard, and prints what came of both.
func simulate(ctx context.Context, store idempotency.Store, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%d payments, each wanted once. This takes about four seconds.\n", simulation.Payments())
	var guarded, unguarded *simulation.Result
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		guarded, err = simulation.Run(ctx, store)
		return err
	})
	group.Go(func() (err error) {
		unguarded, err = simulation.Run(ctx, nil)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := printResult(stdout, guarded, unguarded); err != nil {
		return err
	}
	return verdict(guarded)
}

// verdict is an error if the guard did not keep its word.
func verdict(r *simulation.Result) error {
	var errs []error
	if n := r.Unexplained(); n > 0 {
		errs = append(errs, fmt.Errorf("%s without a reason", report.Count(n, "charge was repeated", "charges were repeated")))
	}
	for _, list := range []struct {
		what     string
		payments []string
	}{{"lost", r.Lost}, {"not answered", r.Unanswered}, {"answered wrongly", r.Wrong}} {
		if n := len(list.payments); n > 0 {
			errs = append(errs, fmt.Errorf("%s %s: %s",
				report.Count(n, "payment was", "payments were"), list.what, strings.Join(list.payments, ", ")))
		}
	}
	return errors.Join(errs...)
}
