package dynamostore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// TestLedgerWorker is the other process of TestProcesses, and nothing otherwise.
func TestLedgerWorker(t *testing.T) {
	url := os.Getenv("LEDGER_URL")
	if url == "" {
		return
	}
	client := dynamotest.ClientFor(t, url, dynamotest.ShortRetries)
	l := &ledger{accounts: os.Getenv("LEDGER_ACCOUNTS"), lease: ledgerLease}
	l.table, l.options = os.Getenv("LEDGER_CLAIMS"), layouts()[0].options
	result, err := idempotency.Do(t.Context(), l.newGuard(t, client), "k", func(ctx context.Context) (int, error) {
		value, err := l.book(ctx)
		if err == nil {
			// Where a process can be caught at its work.
			_, err = client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &l.accounts, Key: itemOf("nothing")})
		}
		return value, err
	})
	fmt.Printf("\nledger: replayed %t, unrecorded %t, error %v\n", result.Replayed, result.Unrecorded, err)
}

// TestProcesses kills a process, or stops it for longer than its lease and lets it go on, at every point around its
// commit: with a request on its way that never arrives, that arrives when the work is done by another, or that is applied
// and never answered. The completion and the writes are both there or both absent at all times, and there once in the end.
func TestProcesses(t *testing.T) {
	const (
		lost    = "lost"
		applied = "applied, not answered"
		late    = "arrives late"
	)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, point := range []struct {
			operation, request string
			done               bool // by the process, before anything happens to it
		}{
			{"PutItem", lost, false}, {"PutItem", applied, false}, {"PutItem", late, false},
			{"GetItem", lost, false}, // in the work
			{"TransactWriteItems", lost, false}, {"TransactWriteItems", applied, true}, {"TransactWriteItems", late, false},
		} {
			t.Run(fmt.Sprintf("%v/%s %s", signal, point.operation, point.request), func(t *testing.T) {
				t.Parallel()
				l := newLedger(t, layouts()[0])
				var output bytes.Buffer
				worker := exec.Command(os.Args[0], "-test.run=^TestLedgerWorker$")
				worker.Env = append(os.Environ(), "LEDGER_URL="+l.proxy.URL, "LEDGER_CLAIMS="+l.table, "LEDGER_ACCOUNTS="+l.accounts)
				worker.Stdout, worker.Stderr = &output, &output
				started, reached := make(chan struct{}), make(chan struct{})
				resume, passed := make(chan struct{}), make(chan struct{})
				l.proxy.Script(point.operation, func(x *dynamotest.Exchange) {
					defer close(passed)
					if point.request == applied {
						_, _ = x.Forward()
					}
					<-started
					_ = worker.Process.Signal(signal)
					close(reached)
					<-resume
					if point.request == late {
						_, _ = x.Forward()
					}
					x.Reset()
				})
				if err := worker.Start(); err != nil {
					t.Fatal(err)
				}
				close(started)
				exited := make(chan struct{})
				go func() {
					_ = worker.Wait()
					close(exited)
				}()
				select {
				case <-reached:
				case <-exited:
					if signal != syscall.SIGKILL {
						t.Fatalf("the worker has ended too early: %s", &output)
					}
					<-reached
				}
				if got := l.applied(t); got != point.done {
					t.Errorf("applied is %t; want %t", got, point.done)
				}
				l.finish(t)
				close(resume)
				<-passed
				_ = worker.Process.Signal(syscall.SIGCONT)
				<-exited
				if !l.applied(t) {
					t.Error("what was done is gone")
				}
				if signal == syscall.SIGKILL {
					return
				}
				if told := strings.Contains(output.String(), "replayed false, unrecorded false, error <nil>"); told != point.done {
					t.Errorf("the worker says\n%s; want that it has done the work now: %t", &output, point.done)
				}
				if !strings.Contains(output.String(), "ledger: ") {
					t.Errorf("the worker has not come to its end: %s", &output)
				}
			})
		}
	}
}
