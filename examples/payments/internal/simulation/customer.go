package simulation

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/internal/pause"
	"github.com/oncekit/oncekit/examples/payments/payments"
)

// customer wants one payment made, once.
type customer struct {
	run     *run
	name    string
	key     string // the header's
	payment payments.Payment
	trouble trouble
	gate    gate
}

// maxTries is how often a customer sends again before it gives up. With a second between, that is longer than the claim of
// a crash is held.
const maxTries = 6

// insist sends the payment again as long as the status asks for that. A customer with no final answer gives up.
func (c *customer) insist(ctx context.Context, status int) error {
	for range maxTries {
		if status == http.StatusGone {
			break // it was handled, and nobody can say how
		}
		if status != http.StatusConflict && status < http.StatusInternalServerError {
			return nil
		}
		if err := pause.For(ctx, time.Second); err != nil { // what Retry-After says, and what is usual without it
			return err
		}
		var err error
		if status, err = c.send(ctx, Again); err != nil {
			return err
		}
	}
	c.run.gaveUp(c)
	return nil
}

// send sends the payment to the API and returns the answer's status.
func (c *customer) send(ctx context.Context, why Reason) (status int, err error) {
	body, err := json.Marshal(c.payment)
	if err != nil {
		return 0, err
	}
	request := payments.Request{Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", Body: string(body)}
	request.Headers = map[string]string{"content-type": "application/json", "content-length": strconv.Itoa(len(body))}
	if c.key != "" {
		request.Headers["idempotency-key"] = c.key
	}
	request.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserID: "AIDASHOP"},
	}
	response, err := c.run.post(ctx, c, request, why)
	if err != nil {
		return 0, err
	}
	if response.StatusCode == http.StatusCreated {
		c.run.compare(c, response)
	}
	return response.StatusCode, nil
}
