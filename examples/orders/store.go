package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

const (
	defaultTable = "oncekit-orders"

	// The function's timeout is how long a hung handler and a crashed claim are waited for. A table is further away
	// than memory.
	memoryTimeout = time.Second
	tableTimeout  = 3 * time.Second
)

// openedStore is the store of a run.
type openedStore struct {
	idempotency.Store
	// namespace is the guard's. Runs that share a table have one each, so that none finds the orders of another done.
	namespace string
	timeout   time.Duration
	name      string // for people
}

// openStore opens the store that the flags ask for, and makes sure that it can be used.
func openStore(ctx context.Context, f flags) (openedStore, error) {
	if f.endpoint == "" && f.table == "" {
		return openedStore{idempotency.NewMemoryStore(), "orders", memoryTimeout, "memory"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := newClient(ctx, f.endpoint)
	if err != nil {
		return openedStore{}, err
	}
	table := f.table
	if f.endpoint != "" {
		if table == "" {
			table = defaultTable
		}
		if err := dynamostore.CreateTable(ctx, client, table); err != nil {
			if noAnswer(err) {
				err = fmt.Errorf("no DynamoDB server answers at %s: %w", f.endpoint, err)
			}
			return openedStore{}, err
		}
	}
	store := openedStore{
		dynamostore.New(client, table), "orders-" + rand.Text(), tableTimeout, "table " + table,
	}
	if f.event != "" {
		store.namespace = "orders" // the same event again is a redelivery
	}
	return store, store.probe(ctx)
}

// newClient returns a client for the endpoint, or for the Region's if that is empty.
func newClient(ctx context.Context, endpoint string) (*dynamodb.Client, error) {
	var options []func(*config.LoadOptions) error
	if endpoint != "" {
		options = append(options, config.WithDefaultRegion("us-east-1"))
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			options = append(options, config.WithCredentialsProvider(aws.CredentialsProviderFunc(madeUp)))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS Region is set: set AWS_REGION, or a region in ~/.aws/config")
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}

// noAnswer reports whether a request was not sent, was not answered, or was answered by something else than DynamoDB.
func noAnswer(err error) bool {
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, unreadable := errors.AsType[*smithy.DeserializationError](err)
	return unsent || unreadable || errors.Is(err, context.DeadlineExceeded)
}

func madeUp(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
}

// probe makes and releases a claim, so that what is wrong with the table is said before the run and not by each order.
func (s openedStore) probe(ctx context.Context) error {
	guard, err := idempotency.New(s.namespace, s.Store)
	if err != nil {
		return err
	}
	claim, err := guard.Claim(ctx, idempotency.Request{Key: "probe-" + rand.Text()})
	if err != nil {
		return err
	}
	return claim.Release(ctx)
}
