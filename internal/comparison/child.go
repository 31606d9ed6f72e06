package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/comparison/handwritten"
	"github.com/oncekit/oncekit/internal/localserver"
	"github.com/oncekit/oncekit/sources/sqs"
)

// childVariable makes this program be one client instead of measuring all. Its value is a childSpec in JSON.
const childVariable = "ONCEKIT_COMPARISON_CLIENT"

// childSpec is what a client process is given.
type childSpec struct {
	Client      string // a client's name
	Endpoint    string
	Table       string
	Concurrency int
}

// beClient is main of a client process, where this is one.
func beClient() (isClient bool, status int) {
	encoded := os.Getenv(childVariable)
	if encoded == "" {
		return false, 0
	}
	var spec childSpec
	err := json.Unmarshal([]byte(encoded), &spec)
	if err == nil {
		err = serveJobs(spec, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, 1
	}
	return true, 0
}

// serveJobs does jobs until in ends.
func serveJobs(spec childSpec, in io.Reader, out io.Writer) error {
	var w work
	handler, err := newHandler(spec, &w)
	if err != nil {
		return err
	}
	jobs, usages := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j job
		if err := jobs.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		u, err := w.do(handler, j)
		if err != nil {
			u = usage{Error: err.Error()}
		}
		if err := usages.Encode(u); err != nil {
			return err
		}
	}
}

// newHandler returns the handler of the client that spec names.
func newHandler(spec childSpec, w *work) (lambda.Handler, error) {
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(spec.Endpoint),
		Region:       localserver.Region(),
		Credentials:  localserver.Credentials,
		// The SDK's own client but for its pool, which has room for 10 idle connections to a host.
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = spec.Concurrency
		}),
	})
	c, ok := goClients[spec.Client]
	if !ok {
		return nil, fmt.Errorf("comparison: client is %q, want one of those that run in Go", spec.Client)
	}
	return c(spec, client, w)
}

// goClients are the clients that are Go code.
var goClients = map[string]func(childSpec, *dynamodb.Client, *work) (lambda.Handler, error){
	handWritten: func(spec childSpec, client *dynamodb.Client, w *work) (lambda.Handler, error) {
		return &handwritten.Handler[order]{
			Table:       handwritten.Table{Client: client, Name: spec.Table},
			Concurrency: spec.Concurrency,
			Handle:      func(ctx context.Context, _ *order) error { return w.handle(ctx) },
		}, nil
	},
	single:   oncekit(true, idempotency.AskFirstNever),
	bulk:     oncekit(false, idempotency.AskFirstNever),
	bulkAsks: oncekit(false, idempotency.AskFirstAlways),
}

// oncekit is one of the clients that are oncekit.
func oncekit(singleCalls bool, askFirst idempotency.AskFirst) func(childSpec, *dynamodb.Client, *work) (lambda.Handler, error) {
	return func(spec childSpec, client *dynamodb.Client, w *work) (lambda.Handler, error) {
		silent := slog.New(slog.DiscardHandler)
		store := dynamostore.New(client, spec.Table, func(o *dynamostore.Options) {
			o.SingleCalls = singleCalls
			o.Logger = silent
		})
		guard, err := idempotency.New("orders", store, func(o *idempotency.Options) {
			o.AskFirst = askFirst
			o.Logger = silent
		})
		if err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, _ *sqs.Message[order]) error { return w.handle(ctx) }
		return sqs.NewHandler(handle, func(o *sqs.Options) {
			o.Concurrency = spec.Concurrency
			o.Idempotency = guard
			o.Logger = silent
		})
	}
}

// work is what the handlers of messages do, which is next to nothing.
type work struct {
	handled atomic.Int64
	ending  ending
}

func (w *work) handle(ctx context.Context) error {
	w.handled.Add(1)
	switch w.ending {
	case fails:
		return errors.New("comparison: this one fails")
	case waits:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// do invokes the handler with each event of the job, and measures that and nothing else.
func (w *work) do(handler lambda.Handler, j job) (usage, error) {
	payloads, err := lines(j.Events)
	if err != nil {
		return usage{}, err
	}
	w.ending = j.Ending
	w.handled.Store(0)
	answers := make([][]byte, len(payloads))
	runtime.GC()
	var peak *heapPeak
	if j.Sample {
		peak = startHeapPeak()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, err := cpuTime()
	if err != nil {
		return usage{}, err
	}
	start := time.Now()
	for i, payload := range payloads {
		ctx, cancel := context.WithTimeout(context.Background(), j.Time)
		answers[i], err = handler.Invoke(ctx, payload)
		cancel()
		if err != nil {
			return usage{}, err
		}
	}
	took := time.Since(start)
	cpuAfter, err := cpuTime()
	if err != nil {
		return usage{}, err
	}
	runtime.ReadMemStats(&after)
	u := usage{
		Seconds:     took.Seconds(),
		CPU:         (cpuAfter - cpuBefore).Seconds(),
		Allocations: after.Mallocs - before.Mallocs,
		Handled:     int(w.handled.Load()),
	}
	if peak != nil {
		u.Heap, u.Limited = peak.end()
	}
	u.Resident = resident()
	for _, answer := range answers {
		var response events.SQSEventResponse
		if err := json.Unmarshal(answer, &response); err != nil {
			return usage{}, fmt.Errorf("comparison: answer is %.100q: %w", answer, err)
		}
		u.Failed += len(response.BatchItemFailures)
	}
	return u, nil
}
