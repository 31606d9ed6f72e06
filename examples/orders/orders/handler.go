// Package orders is the function of the example: the handler of the orders queue, as it runs on Lambda, in the
// simulation and in the tests.
package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// NewHandler returns a handler that charges the orders of a queue with the provider, each once as far as the guard can
// see to it.
func NewHandler(
	provider shop.Provider, guard *idempotency.Guard, optFns ...func(*sqs.Options),
) (*sqs.Handler[shop.Order], error) {
	place := func(ctx context.Context, m *sqs.Message[shop.Order]) error {
		order := m.Body
		if order.Amount <= 0 {
			return batch.Permanent(fmt.Errorf("%s has the amount %d, want more than 0", order.ID, order.Amount))
		}
		err := provider.Charge(ctx, order)
		if errors.Is(err, shop.ErrDeclined) {
			return batch.Permanent(err)
		}
		return err
	}
	options := append([]func(*sqs.Options){func(o *sqs.Options) { o.Idempotency = guard }}, optFns...)
	return sqs.NewHandler(place, options...)
}
