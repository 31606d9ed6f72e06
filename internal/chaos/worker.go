//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/chaos/child"
	"github.com/oncekit/oncekit/internal/localserver"
	"github.com/oncekit/oncekit/sources/sqs"
)

const (
	// timeout is that of an invocation, and the lease of its claims ends with it.
	timeout = 1500 * time.Millisecond
	// skew is the guard's. All the processes have one clock.
	skew = 100 * time.Millisecond
)

// workerVariable makes this program be a worker. Its value is a workerSpec in JSON. File 3 is the journal.
const workerVariable = "ONCEKIT_CHAOS_WORKER"

// workerSpec is what a worker is given.
type workerSpec struct {
	Worker      int // its number
	Seed        uint64
	Store       string // URL for the guard, by way of the slot's proxy
	Server      string // URL for effects
	Claims      string // a table's name
	Effects     string // a table's name
	SingleCalls bool
	Concurrency int
}

// task is the body of a message. Its key is the messageId.
type task struct {
	Tx bool `json:"tx"` // whether the effect is part of the completion's transaction
}

// beWorker is main of a worker's process, where this is one.
func beWorker() (isWorker bool, status int) {
	encoded := os.Getenv(workerVariable)
	if encoded == "" {
		return false, 0
	}
	var spec workerSpec
	err := json.Unmarshal([]byte(encoded), &spec)
	if err == nil {
		err = work(spec)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: worker %d: %v\n", spec.Worker, err)
		return true, 1
	}
	return true, 0
}

// newClient returns a client that waits for no reply longer than patience, and sends a request so often.
func newClient(url string, patience time.Duration, attempts int) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url),
		Region:       localserver.Region(),
		Credentials:  localserver.Credentials,
		HTTPClient: awshttp.NewBuildableClient().WithTimeout(patience).WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = 64
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = attempts, 20*time.Millisecond
		}),
	}, dynamostore.ClientOptions)
}

// work answers events until stdin ends.
func work(spec workerSpec) error {
	silent := slog.New(slog.DiscardHandler)
	w := &worker{
		spec: spec, journal: journal{file: os.NewFile(3, "journal"), worker: spec.Worker},
		// An effect is sent once, so that one which is there already was made by another start of the handler.
		effects: newClient(spec.Server, time.Minute, 1),
		chance:  rand.New(rand.NewPCG(spec.Seed, uint64(spec.Worker))),
	}
	store := dynamostore.New(newClient(spec.Store, timeout/3, 3), spec.Claims, func(o *dynamostore.Options) {
		o.SingleCalls, o.Logger = spec.SingleCalls, silent
	})
	guard, err := idempotency.New("chaos", store, func(o *idempotency.Options) {
		o.Skew, o.Logger, o.Hooks = skew, silent, []idempotency.Hook{idempotency.HookFunc(w.told)}
	})
	if err != nil {
		return err
	}
	handler, err := sqs.NewHandler(w.handle, func(o *sqs.Options) {
		o.Idempotency, o.Concurrency, o.Logger = guard, spec.Concurrency, silent
	})
	if err != nil {
		return err
	}
	return child.Serve(os.Stdin, os.Stdout, func(event []byte) []byte {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		response, err := handler.Invoke(ctx, event)
		if err != nil {
			response, _ = json.Marshal(map[string]string{"errorMessage": err.Error()}) // text can be encoded
		}
		return response
	})
}

type worker struct {
	spec    workerSpec
	journal journal
	effects *dynamodb.Client

	mu     sync.Mutex
	chance *rand.Rand
}

// below returns a random number from 0 to n-1.
func (w *worker) below(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.IntN(n)
}

// told is the guard's hook.
func (w *worker) told(_ context.Context, e idempotency.Event) {
	line := entry{Kind: e.Kind.String(), Key: e.Key, Owner: e.Owner}
	if e.Err != nil {
		line.Err = e.Err.Error()
	}
	w.journal.write(line)
}

// handle has the effect of a message. A frozen process, or one that is killed, is mostly in one of its pauses, which take
// no notice of the context.
func (w *worker) handle(ctx context.Context, m *sqs.Message[task]) error {
	info, ok := idempotency.FromContext(ctx)
	if !ok {
		return errors.New("chaos: the handler has no claim")
	}
	w.journal.write(entry{Kind: started, Key: info.Key, Owner: info.Owner, Lease: info.Lease.UnixMilli()})
	time.Sleep(time.Duration(w.below(5)) * time.Millisecond)
	err := w.effect(ctx, info, m.Body.Tx)
	if err != nil {
		w.journal.write(entry{Kind: failed, Key: info.Key, Owner: info.Owner, Err: err.Error()})
		return err
	}
	time.Sleep(time.Duration(w.below(15)) * time.Millisecond)
	return nil
}

func (w *worker) effect(ctx context.Context, info idempotency.Info, inTransaction bool) error {
	if w.below(50) == 0 {
		return errors.New("chaos: the handler fails before its effect")
	}
	item := map[string]types.AttributeValue{
		"id":     text(effectPrefix + info.Key + "/" + info.Owner),
		"key":    text(info.Key),
		"owner":  text(info.Owner),
		"worker": number(w.spec.Worker),
	}
	if !inTransaction {
		_, err := w.effects.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &w.spec.Effects, Item: item, ConditionExpression: aws.String("attribute_not_exists(id)"),
		})
		return err
	}
	tx := dynamostore.Tx(ctx)
	return errors.Join(
		tx.Put(types.Put{TableName: &w.spec.Effects, Item: item}),
		tx.Update(types.Update{
			TableName: &w.spec.Effects, Key: map[string]types.AttributeValue{"id": text(rowPrefix + info.Key)},
			UpdateExpression:          aws.String("ADD times :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
		}))
}

// The items of the table of effects.
const (
	effectPrefix = "effect/" // one for each key and owner, written once
	rowPrefix    = "row/"    // one for each key of a transaction: what the effect changes
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
