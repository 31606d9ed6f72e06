//go:build linux

// The program chaos kills and freezes processes that handle the batches of a queue, with claims on one table of a
// DynamoDB-compatible server, and then holds what they have done to what docs/guarantees.md promises. `make chaos` runs
// it; its test is a short run.
//
// It starts the server, a proxy for each worker that loses and delays requests and replies, and the workers. It plays the
// queue: it gives batches to workers on their stdin, reads the partial batch responses from their stdout, and delivers
// again what was not answered or told as failed, and some of the rest. It kills workers with SIGKILL, and stops them with
// SIGSTOP for longer than the leases of their claims and lets them go on. Half of the effects are appended to a table by
// the handler, the other half are in the transaction of dynamostore.Tx.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/lifetime"
)

func main() {
	if isWorker, status := beWorker(); isWorker {
		os.Exit(status)
	}
	os.Exit(dynamotest.StopAfter(program{}).Run())
}

// program is what runs before the server is stopped.
type program struct{}

// Run does what the command line says, and returns the exit status: 1 where it cannot or a promise is broken.
func (program) Run() int {
	var c config
	flag.Uint64Var(&c.seed, "seed", rand.Uint64N(1_000_000), "decides what happens to which worker")
	flag.IntVar(&c.workers, "workers", 24, "how many run at a time")
	flag.DurationVar(&c.time, "time", time.Minute, "for how long workers are killed and frozen")
	flag.Parse()
	if flag.NArg() > 0 || c.workers < 1 || c.time <= 0 {
		fmt.Fprintln(os.Stderr, "chaos: want at least one worker, a time, and no arguments besides flags")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	progress := func(text string) { fmt.Fprintf(os.Stderr, "%s: %s\n", time.Now().Format(time.TimeOnly), text) }
	progress(fmt.Sprintf("seed %d", c.seed))
	var found *result
	err := lifetime.Live(func(t testing.TB) (err error) {
		if c.program, err = os.Executable(); err != nil {
			return err
		}
		if c.folder, err = os.MkdirTemp("", "oncekit-chaos-"); err != nil {
			return err
		}
		defer os.RemoveAll(c.folder)
		found, err = start(ctx, t, c, progress)
		return err
	})
	if found != nil {
		found.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || len(found.wrong) > 0 {
		return 1
	}
	return 0
}
