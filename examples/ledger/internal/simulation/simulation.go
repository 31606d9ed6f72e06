// Package simulation sends transfers through a queue to processes that are killed at their work, and adds up what is in
// the book then.
package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/ledger/ledger"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// Config is what to run.
type Config struct {
	Seed      uint64
	Transfers int
	WithoutTx bool
	Kills     int // how many processes are killed, if the run is long enough

	// URL is a DynamoDB-compatible server. Claims and Book are tables there, with the partition key id.
	URL, Claims, Book string
	// Client is one for that server.
	Client ledger.Client
}

// Accounts and what is in each of them at the beginning, in cents.
const (
	Accounts       = 10
	OpeningBalance = 1_000_00
)

// Result is what came of it.
type Result struct {
	Transfers       int
	Deliveries      int // of messages to processes
	Started, Killed int // processes
	Debits, Credits int // of all accounts
	Wrong           int // accounts that have another balance than the transfers come to
	Before, After   int64
}

// Balances reports whether every transfer was booked once, and in full.
func (r *Result) Balances() bool {
	return r.Wrong == 0 && r.Debits == r.Transfers && r.Credits == r.Transfers && r.Before == r.After
}

// functionTimeout is how long the queue waits for an answer. It is also the visibility timeout: messages of a killed
// process come back when its claims have run out.
const functionTimeout = 2*invocationTimeout + skew

// Run opens the accounts, sends the transfers, and returns what is in the accounts when the queue is empty.
func Run(ctx context.Context, c Config) (result *Result, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	book := ledger.Book{Client: c.Client, Table: c.Book}
	for i := range Accounts {
		if err := book.Open(ctx, account(i), OpeningBalance); err != nil {
			return nil, err
		}
	}
	var failed error
	queue, err := sqstest.NewQueue("transfers", func(o *sqstest.Options) {
		o.Seed, o.DuplicateProbability = c.Seed, 0.1
		o.FunctionTimeout, o.VisibilityTimeout = functionTimeout, functionTimeout
		o.Observe = func(d sqstest.Delivery) {
			// One invocation at a time, since Concurrency is 1.
			if d.Ending != lambdatest.TimedOut && d.Err != nil && !errors.Is(d.Err, errKilled) {
				failed = errors.Join(failed, d.Err)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, queue.Close()) }()
	seed := draw.Seed(c.Seed)
	var want [Accounts]int64
	for i := range c.Transfers {
		from := seed.Number(Accounts, "from", i)
		to := (from + 1 + seed.Number(Accounts-1, "to", i)) % Accounts
		amount := int64(1 + seed.Number(10_00, "amount", i))
		want[from] -= amount
		want[to] += amount
		body, err := json.Marshal(ledger.Transfer{
			ID: fmt.Sprintf("transfer-%04d", i+1), From: account(from), To: account(to), Amount: amount,
		})
		if err != nil {
			return nil, err
		}
		if _, err := queue.Send(sqstest.Message{Body: string(body)}); err != nil {
			return nil, err
		}
	}

	w := &workers{
		program: program, seed: seed, kills: c.Kills,
		spec: workerSpec{URL: c.URL, Claims: c.Claims, Book: c.Book, WithoutTx: c.WithoutTx},
	}
	drained := queue.Drain(ctx, w)
	if err := errors.Join(drained, w.close(), failed); err != nil {
		return nil, err
	}
	result = &Result{
		Transfers: c.Transfers, Deliveries: queue.Stats().Receives, Started: w.started, Killed: w.killed,
		Before: Accounts * OpeningBalance,
	}
	for i := range Accounts {
		a, err := book.Account(ctx, account(i))
		if err != nil {
			return nil, err
		}
		result.Debits += a.Debits
		result.Credits += a.Credits
		result.After += a.Balance
		if a.Balance != OpeningBalance+want[i] {
			result.Wrong++
		}
	}
	return result, nil
}

func account(i int) string { return fmt.Sprintf("%c", 'A'+i) }

// Takes is about how long a run takes.
func (c Config) Takes() time.Duration {
	return time.Duration(c.Transfers)*10*time.Millisecond + 2*functionTimeout
}
