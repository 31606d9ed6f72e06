package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/oncekit/oncekit/examples/orders/orders"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// eventTimeout is the function's timeout in template.yaml.
const eventTimeout = 30 * time.Second

// handleEvent hands the event in a file to the handler as Lambda would, and prints the response. What the handler logs
// goes to stderr.
func handleEvent(ctx context.Context, f flags, store openedStore, stdout, stderr io.Writer) error {
	event, err := os.ReadFile(f.event)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	guard, err := idempotency.New(store.namespace, store.Store, func(o *idempotency.Options) { o.Logger = logger })
	if err != nil {
		return err
	}
	handler, err := orders.NewHandler(shop.FakeProvider{Logger: logger}, guard, func(o *sqs.Options) {
		o.Concurrency = f.concurrency
		o.Logger = logger
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	response, err := handler.Invoke(ctx, event)
	if err != nil {
		return fmt.Errorf("%s: %w", f.event, err)
	}
	_, err = fmt.Fprintf(stdout, "%s\n", response)
	return err
}
