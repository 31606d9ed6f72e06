// Package invoices is the function of the example: one consumer of the shop's events, whether a rule invokes it with them or
// a queue has them in its messages, as it runs on Lambda, in the simulation and in the tests.
package invoices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/mux"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Options are the options of the function. Those of the batch are the same for both of its sources.
type Options struct {
	batch.Options

	// Key says which deliveries are the same.
	Key Key

	// RunReplays makes an order that is replayed from the archive to the rule be invoiced again, once for each replay. See
	// eventbridge.Options.
	RunReplays bool
}

// Key is a name for what is to be done once.
type Key int

const (
	// ByOrder is the order's id, out of the detail. The shop gave it to the order before it published anything, so it is the
	// same however often the order is published, and by whichever way it comes.
	ByOrder Key = iota

	// ByEvent is EventBridge's id of the event, with its source. It is the same by both ways and in a replay, since both
	// handlers take it from the same envelope. But EventBridge makes it when the event is published: an order that the shop
	// publishes twice has two. It is for events that have no id of their own in their details.
	ByEvent
)

// KeyLife is how long it is remembered that an order is invoiced: longer than the archive keeps its event, the 30 days of
// ../template.yaml. By default a key would live for as long as its own source delivers again, 31 hours for EventBridge. A
// replay of last week's events would then write invoices again, and so would a message that was in the queue over a long
// weekend, although the rule's event was done in time.
const KeyLife = 31 * 24 * time.Hour

// NewGuard returns the guard of the function, which is the same for both ways: that is all it takes to invoice an order once
// that comes by both.
func NewGuard(store idempotency.Store, optFns ...func(*idempotency.Options)) (*idempotency.Guard, error) {
	options := append([]func(*idempotency.Options){func(o *idempotency.Options) { o.Expiry = KeyLife }}, optFns...)
	return idempotency.New("invoices", store, options...)
}

// NewHandler returns the whole function. It has a handler for each source, and picks one by the shape of what it is invoked
// with. Both call the same code for an order, which writes one invoice for each key, as far as the guard can see to it. A nil
// guard means that there is none, and an order is invoiced as often as it comes.
func NewHandler(system billing.System, guard *idempotency.Guard, optFns ...func(*Options)) (*mux.Mux, error) {
	var options Options
	for _, fn := range optFns {
		fn(&options)
	}
	invoice := func(ctx context.Context, o billing.Order) error {
		if o.Amount <= 0 {
			return batch.Permanent(fmt.Errorf("%s has the amount %d, want more than 0", o.ID, o.Amount))
		}
		return system.Invoice(ctx, o)
	}
	rule, ruleErr := eventbridge.NewHandler(
		func(ctx context.Context, e *eventbridge.Event[billing.Order]) error { return invoice(ctx, e.Detail) },
		func(o *eventbridge.Options) {
			o.Options, o.Idempotency, o.RunReplays = options.Options, guard, options.RunReplays
			if guard != nil && options.Key == ByOrder {
				eventbridge.KeyOf(orderID)(o)
			} // without it the key is ByEvent
		})
	queue, queueErr := sqs.NewHandler(
		func(ctx context.Context, m *sqs.Message[billing.Order]) error { return invoice(ctx, m.Body) },
		func(o *sqs.Options) {
			o.Options, o.Idempotency = options.Options, guard
			o.Unwrap = []sqs.Envelope{sqs.EventBridge} // the body is an event, and Message.Body its detail
			switch {
			case guard == nil:
			case options.Key == ByOrder:
				sqs.KeyOf(orderID)(o)
			default: // not the messageId, which the rule's event has not
				o.Key = sqs.EventBridgeID
			}
		})
	if err := errors.Join(ruleErr, queueErr); err != nil {
		return nil, err
	}
	return &mux.Mux{EventBridge: rule, SQS: queue}, nil
}

func orderID(o billing.Order) string { return o.ID }
