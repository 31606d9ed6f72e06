package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/examples/ledger/ledger"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/chaos/child"
	"github.com/oncekit/oncekit/internal/localserver"
)

const (
	// invocationTimeout is how long a worker has for an event, and its claims' lease.
	invocationTimeout = time.Second
	// skew is the guard's. All processes have one clock.
	skew = 100 * time.Millisecond
)

// workerVariable makes the program be a worker. Its value is a workerSpec in JSON.
const workerVariable = "ONCEKIT_LEDGER_WORKER"

// workerSpec is what a worker is given.
type workerSpec struct {
	URL, Claims, Book string
	WithoutTx         bool
	Death             death
}

// death says at which of its requests a worker is to be killed.
type death struct {
	Request int  // from 1; 0: it is not
	After   bool // it has arrived, but nobody has the answer; otherwise it never arrives
}

// dying is what a worker says in place of an answer when it has come to its death.
const dying = "kill me"

// BeWorker is main of a worker's process, where this is one. It returns its exit code.
func BeWorker() (isWorker bool, code int) {
	encoded := os.Getenv(workerVariable)
	if encoded == "" {
		return false, 0
	}
	var spec workerSpec
	err := json.Unmarshal([]byte(encoded), &spec)
	if err == nil {
		err = work(spec, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ledger: worker: %v\n", err)
		return true, 1
	}
	return true, 0
}

func newClient(url string, client dynamodb.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url), Region: localserver.Region(), Credentials: localserver.Credentials, HTTPClient: client,
	})
}

// work answers events as the function on Lambda does.
func work(spec workerSpec, in io.Reader, out io.Writer) error {
	client := newClient(spec.URL, &mortal{
		HTTPClient: awshttp.NewBuildableClient(), death: spec.Death,
		die: func() {
			fmt.Fprintln(out, dying)
			select {} // the signal is on its way
		},
	})
	guard, err := idempotency.New("ledger", dynamostore.New(client, spec.Claims), func(o *idempotency.Options) { o.Skew = skew })
	if err != nil {
		return err
	}
	newHandler := ledger.NewHandler
	if spec.WithoutTx {
		newHandler = ledger.NewHandlerWithoutTx
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // that messages come back is what the run is about
	handler, err := newHandler(ledger.Book{Client: client, Table: spec.Book}, guard)
	if err != nil {
		return err
	}
	return child.Serve(in, out, func(event []byte) []byte {
		ctx, cancel := context.WithTimeout(context.Background(), invocationTimeout)
		defer cancel()
		response, err := handler.Invoke(ctx, event)
		if err != nil {
			return []byte(err.Error()) // which is no JSON, so that all of the batch comes back
		}
		return response
	})
}

// mortal counts requests, and dies in one of them.
type mortal struct {
	dynamodb.HTTPClient
	death    death
	requests atomic.Int64
	die      func()
}

// Do implements dynamodb.HTTPClient.
func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if m.requests.Add(1) != int64(m.death.Request) {
		return m.HTTPClient.Do(r)
	}
	if m.death.After {
		if response, err := m.HTTPClient.Do(r); err == nil {
			defer response.Body.Close()
		}
	}
	m.die()
	return nil, http.ErrAbortHandler
}
