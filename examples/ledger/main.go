// Command ledger shows what dynamostore.Tx is for. It sends transfers through a queue to a process that books them in a
// table of accounts, kills the process again and again in the middle of its work, and looks whether the books balance.
//
//	go run ./examples/ledger              needs the DynamoDB-compatible server that `make tools` installs
//	go run ./examples/ledger -without-tx  the same, with writes outside of the transaction
//	go run ./examples/ledger -h           says what else it can do
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"testing"

	"github.com/oncekit/oncekit/examples/internal/number"
	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/examples/ledger/internal/simulation"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/lifetime"
)

func main() {
	if isWorker, code := simulation.BeWorker(); isWorker {
		os.Exit(code)
	}
	os.Exit(dynamotest.StopAfter(program{}).Run())
}

// program is what runs before the server is stopped.
type program struct{}

// Run returns the exit code.
func (program) Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// The exit codes.
const (
	success = iota
	failure // the books do not balance although there is a transaction, or it could not be done
	usage   // the command line is wrong
)

// flags is the command line.
type flags struct {
	seed      uint64
	transfers int
	kills     int
	withoutTx bool
}

const (
	maxTransfers = 10_000
	maxKills     = 1_000
	defaultSeed  = 1
)

const help = `Sends transfers through a queue to a process that books them, kills the process again and again in the middle of
its work, and looks at the end whether the books balance. It takes about five seconds.

usage: go run ./examples/ledger [flags]

  -without-tx        makes the writes of a transfer one after the other, and not in the transaction of its completion
  -transfers N       how many transfers are sent, 1 to 10000 (default 200)
  -kills N           how many processes are killed, 0 to 1000 (default 12); fewer if the transfers are done before
  -seed N            decides which transfers there are, and at which of its requests a process is killed,
                     0 to 18446744073709551615 (default 1); 0 draws one

It starts the DynamoDB-compatible server that ` + "`make tools`" + ` installs. The environment variable ONCEKIT_DYNAMODB_ENDPOINT
names another endpoint, where it makes two tables and deletes them in the end.

The exit code is 0 if the books balance, and with -without-tx also if they do not; 1 if they do not, or if something could
not be done; and 2 if the command line is wrong.
`

// parse reads the command line.
func parse(args []string) (flags, error) {
	f := flags{seed: defaultSeed, transfers: 200, kills: 12}
	set := flag.NewFlagSet("ledger", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Func("seed", "", number.Seed(&f.seed))
	set.Func("transfers", "", number.From(1, maxTransfers, &f.transfers))
	set.Func("kills", "", number.From(0, maxKills, &f.kills))
	set.BoolVar(&f.withoutTx, "without-tx", false, "")
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
		fmt.Fprintf(stderr, "ledger: %v\nrun it with -h to see what it takes\n", err)
		return usage
	}
	if err := lifetime.Live(func(t testing.TB) error { return simulate(ctx, t, f, stdout) }); err != nil {
		fmt.Fprintf(stderr, "ledger: %v\n", err)
		return failure
	}
	return success
}

// simulate runs the simulation on tables that end with t, and prints what came of it.
func simulate(ctx context.Context, t testing.TB, f flags, stdout io.Writer) error {
	client := dynamotest.Client(t)
	config := simulation.Config{
		Seed: f.seed, Transfers: f.transfers, Kills: f.kills, WithoutTx: f.withoutTx,
		URL: dynamotest.Start(t), Claims: dynamotest.Table(t, client), Book: dynamotest.Table(t, client), Client: client,
	}
	how := "with dynamostore.Tx"
	if f.withoutTx {
		how = "without dynamostore.Tx"
	}
	fmt.Fprintf(stdout, "%s between %d accounts, seed %d, %s. This takes about %.0f seconds.\n\n",
		report.Count(f.transfers, "transfer", "transfers"), simulation.Accounts, f.seed, how, config.Takes().Seconds())
	result, err := simulation.Run(ctx, config)
	if err != nil {
		return err
	}
	if err := print(stdout, result, f.withoutTx); err != nil {
		return err
	}
	if !f.withoutTx && !result.Balances() {
		return errors.New("the books do not balance, want them to with dynamostore.Tx")
	}
	return nil
}

// print prints what came of it.
func print(w io.Writer, r *simulation.Result, withoutTx bool) error {
	var b bytes.Buffer
	row := report.NewRow[*simulation.Result]
	title := "with Tx"
	if withoutTx {
		title = "without"
	}
	report.Table(&b, []report.Row[*simulation.Result]{
		row(" ", "processes started", func(r *simulation.Result) int { return r.Started }, "one after the other"),
		row(" ", "of these killed", func(r *simulation.Result) int { return r.Killed }, "each with up to ten transfers at work"),
		row(" ", "deliveries", func(r *simulation.Result) int { return r.Deliveries }, "messages handed to a process"),
		{},
		row(" ", "transfers sent", func(r *simulation.Result) int { return r.Transfers }, "each is one debit and one credit"),
		row(" ", "debits booked", func(r *simulation.Result) int { return r.Debits }, "of all accounts together"),
		row(" ", "credits booked", func(r *simulation.Result) int { return r.Credits }, "the same"),
		row(" ", "accounts that are wrong", func(r *simulation.Result) int { return r.Wrong },
			"another balance than the transfers come to"),
	}, report.Column[*simulation.Result]{Title: title, Result: r})
	fmt.Fprintf(&b, "\nmoney in all accounts: %s before, %s after\n", money(r.Before), money(r.After))
	if r.Balances() {
		fmt.Fprintln(&b, "The books balance: every transfer was booked once, and in full.")
	} else {
		fmt.Fprintln(&b, "The books do not balance: a process that was killed between two writes left a transfer that was booked in\n"+
			"part, and the next one began it anew. Run it without -without-tx, and they do.")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// money returns an amount of cents as people write it.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
