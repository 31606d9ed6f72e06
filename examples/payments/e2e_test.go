//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/deploytest"
	"github.com/oncekit/oncekit/examples/payments/bank"
	"github.com/oncekit/oncekit/examples/payments/payments"
	"github.com/oncekit/oncekit/internal/rietest"
)

// deployed is the Lambda function under the emulator, with a table on a DynamoDB-compatible server.
type deployed struct {
	*testing.T
	function *rietest.Function
	posted   int
}

// post hands the function a request with this key and payment, as API Gateway does.
func (d *deployed) post(key string, p payments.Payment) (response payments.Response, err error) {
	d.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		d.Fatal(err)
	}
	request := payments.Request{
		Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", Body: string(body),
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": key},
	}
	request.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserID: "AIDASHOP"},
	}
	event, err := json.Marshal(request)
	if err != nil {
		d.Fatal(err)
	}
	answer, err := d.function.Post(d.Context(), event)
	if err != nil {
		return response, err
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		d.Fatalf("answer is %s: %v", answer, err)
	}
	return response, nil
}

// want posts a request that is answered with this status.
func (d *deployed) want(status int, key string, p payments.Payment) payments.Response {
	d.Helper()
	response, err := d.post(key, p)
	if err != nil || response.StatusCode != status {
		d.Fatalf("response is %+v, error %v; want status %d", response, err, status)
	}
	return response
}

// charges returns how often the function has charged each card up to now.
func (d *deployed) charges() map[string]int {
	d.Helper()
	d.posted++
	last := fmt.Sprint("last-", d.posted) // one more is charged, to wait for
	d.want(http.StatusCreated, last, payment(last))
	return deploytest.Logged(d.T, d.function, "charged card=", last, "last-")
}

func payment(card string) payments.Payment {
	return payments.Payment{Amount: 1250, Currency: "EUR", Card: card}
}

func TestLambda(t *testing.T) {
	bootstrap := rietest.Build(t, "./lambda")

	t.Run("sent again", func(t *testing.T) {
		d := &deployed{T: t, function: deploytest.Start(t, bootstrap, 10*time.Second)}
		want := d.want(http.StatusCreated, "key-1", payment("card-1"))
		want.Headers[payments.ReplayedHeader] = "true"
		if diff := cmp.Diff(want, d.want(http.StatusCreated, "key-1", payment("card-1"))); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
		changed := payment("card-1")
		changed.Amount *= 10
		d.want(http.StatusUnprocessableEntity, "key-1", changed)
		d.want(http.StatusBadRequest, "", payment("card-1"))
		withID := payment("card-2")
		withID.ID = "payment-2"
		d.want(http.StatusCreated, "", withID)
		d.want(http.StatusCreated, "", withID)
		d.want(http.StatusPaymentRequired, "key-3", payment(bank.CardDeclined))
		if diff := cmp.Diff(map[string]int{"card-1": 1, "card-2": 1}, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
		for kind, want := range map[string]int{"kind=replayed": 2, "kind=mismatch": 1, `kind="key missing"`: 1, "kind=claimed": 0} {
			if got := strings.Count(d.function.Logs(), kind); got != want {
				t.Errorf("the log has %s %d times, want %d", kind, got, want)
			}
		}
	})

	// The process dies in the middle of a charge, early in its lease. The client sends again until that is over.
	t.Run("killed", func(t *testing.T) {
		const timeout = 3 * time.Second
		d := &deployed{T: t, function: deploytest.Start(t, bootstrap, timeout)}
		// The start of the process may take longer than the timeout on a machine that is very busy.
		for attempt := 1; ; attempt++ {
			_, err := d.post("warm-up", payment("last-0"))
			if err == nil {
				break
			}
			if !errors.Is(err, rietest.ErrTimeout) || attempt == 5 {
				t.Fatal(err)
			}
		}
		started := time.Now()
		held := started.Add(timeout + time.Second) // the lease is the dead invocation's deadline, and Skew is 1 s
		killed := payment(bank.CardKill(started.Add(timeout)))
		_, err := d.post("key-1", killed)
		if failed, ok := errors.AsType[*rietest.FunctionError](err); !ok || !failed.Exited {
			t.Fatalf("error is %v, want that the process has exited", err)
		}
		sawHeld := false
		for {
			response, err := d.post("key-1", killed)
			if errors.Is(err, rietest.ErrTimeout) {
				continue // a machine that is so busy that the process does not start in time
			}
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode == http.StatusCreated {
				if early := time.Until(held); early > 0 {
					t.Errorf("charged %v before the end of the claim", early)
				}
				break
			}
			if response.StatusCode != http.StatusConflict || response.Headers["Retry-After"] != "1" {
				t.Fatalf("response is %+v, want 409 with Retry-After", response)
			}
			sawHeld = true
			select {
			case <-time.After(200 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("the payment stays in progress")
			}
		}
		if diff := cmp.Diff(map[string]int{killed.Card: 1}, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
		if !sawHeld {
			t.Log("the machine is too slow to see that a payment is in progress elsewhere")
		}
		if !strings.Contains(d.function.Logs(), `kind="taken over"`) {
			t.Error("no line says that the claim was taken over")
		}
	})
}
