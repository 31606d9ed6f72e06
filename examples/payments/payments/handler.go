// Package payments is the function of the example: it takes requests for payments from API Gateway, as it runs on Lambda, in
// the simulation and in the tests.
package payments

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/payments/bank"
	"github.com/oncekit/oncekit/idempotency"
)

// Request and Response are those of an HTTP API, payload format 2.0.
// See https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
type (
	Request  = events.APIGatewayV2HTTPRequest
	Response = events.APIGatewayV2HTTPResponse
)

// Handler is the function, for lambda.Start. Its error is always nil: what goes wrong is a response too.
type Handler func(ctx context.Context, r Request) (Response, error)

// NewHandler returns a handler that charges each payment with the provider, once as far as the guard can see to it. A
// request that comes again gets the response of the first one.
func NewHandler(provider bank.Provider, guard *idempotency.Guard, logger *slog.Logger) Handler {
	pay := idempotency.Wrap(guard, order.idempotencyKey, cashier{provider}.pay,
		func(o *idempotency.WrapOptions[order, Response]) {
			o.Fingerprint = order.fingerprint
			o.Replayed = markReplayed
		})
	return serve(pay, logger)
}

// NewUnguardedHandler returns the same handler without a guard, which the simulation compares with.
func NewUnguardedHandler(provider bank.Provider, logger *slog.Logger) Handler {
	return serve(cashier{provider}.pay, logger)
}

// cashier does the work.
type cashier struct{ provider bank.Provider }

// pay charges a payment. What it returns without an error is final, and is what a replay returns. An error means that the
// payment may be tried again under its key.
func (c cashier) pay(ctx context.Context, o order) (Response, error) {
	charge := bank.Charge{Card: o.payment.Card, Amount: o.payment.Amount, Currency: o.payment.Currency}
	if claim, ok := idempotency.FromContext(ctx); ok {
		charge.Key = claim.Key // so that the bank recognises what no guard can: see docs/guarantees.md
	}
	receipt, err := c.provider.Charge(ctx, charge)
	switch {
	case errors.Is(err, bank.ErrDeclined):
		return problem(http.StatusPaymentRequired, "The card was declined",
			"Nothing was charged. Another card needs another "+KeyHeader+"."), nil
	case err != nil:
		return Response{}, err
	}
	return created(o.payment, receipt), nil
}

func serve(pay func(context.Context, order) (Response, error), logger *slog.Logger) Handler {
	return func(ctx context.Context, r Request) (Response, error) {
		o, err := readOrder(r)
		switch {
		case o.caller == "":
			return problem(http.StatusForbidden, "The caller is unknown", "Requests must be signed with AWS credentials."), nil
		case err != nil:
			return problem(http.StatusBadRequest, "The request is wrong", err.Error()), nil
		}
		response, err := pay(ctx, o)
		if err != nil {
			return refuse(ctx, err, logger), nil
		}
		return response, nil
	}
}

// refuse returns the response to a request that was not handled. The statuses are those of the IETF's draft for the header.
func refuse(ctx context.Context, err error, logger *slog.Logger) Response {
	switch {
	case errors.Is(err, idempotency.ErrKeyMissing):
		return problem(http.StatusBadRequest, "The key is missing",
			"Send the header "+KeyHeader+", or the payment's id in the body: without either, nobody knows a repeat.")
	case errors.Is(err, idempotency.ErrFingerprintMismatch):
		return problem(http.StatusUnprocessableEntity, "The key was used for another payment",
			"An earlier request had the same key, and another id, amount, currency or card. Nothing was charged now.")
	case errors.Is(err, idempotency.ErrInProgress):
		return again(problem(http.StatusConflict, "The payment is in progress",
			"An earlier request with the same key is still being handled. Send this one again to get its response."))
	case errors.Is(err, idempotency.ErrResultNotStored), errors.Is(err, idempotency.ErrResultInvalid):
		// The payment was handled, and no repeat of the request will ever get more than this.
		logger.ErrorContext(ctx, "payment cannot be replayed", "error", err)
		return problem(http.StatusGone, "The payment was handled, and its response is not available",
			"An earlier request with the same key was handled, and may have charged the card. Nothing was charged now. "+
				"Sending the request again does not help: ask what became of the payment.")
	default:
		logger.ErrorContext(ctx, "payment failed", "error", err)
		return again(problem(http.StatusServiceUnavailable, "The payment is not confirmed",
			"Send the request again with the same key."))
	}
}
