package idempotency_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/idempotency"
)

// An API whose clients send an Idempotency-Key. A request that is sent again gets the first one's response, marked as a
// replay. The status codes are those of the IETF's draft for the header
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).
func ExampleWrap_apiGateway() {
	guard, err := idempotency.New("payments-api", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	type request = events.APIGatewayProxyRequest
	type response = events.APIGatewayProxyResponse

	pay := idempotency.Wrap(guard,
		func(r request) (string, error) {
			// The client makes the key up, so it is joined with who the client is: nobody gets another's response.
			client, _ := r.RequestContext.Authorizer["principalId"].(string)
			for name, value := range r.Headers {
				if strings.EqualFold(name, "Idempotency-Key") {
					return idempotency.JoinKey(client, value), nil
				}
			}
			return "", nil
		},
		func(ctx context.Context, r request) (response, error) {
			fmt.Println("charging", r.Body)
			// A response without an error is stored and replayed, whatever its status. What is to be tried again, such as
			// a bank that does not answer, must be an error here.
			return response{StatusCode: http.StatusCreated, Body: "receipt 1"}, nil
		},
		func(o *idempotency.WrapOptions[request, response]) {
			o.Fingerprint = func(r request) (string, error) {
				sum := sha256.Sum256([]byte(r.Body))
				return hex.EncodeToString(sum[:]), nil
			}
			o.Replayed = func(_ context.Context, r response) (response, error) {
				r.Headers = map[string]string{"Idempotent-Replayed": "true"}
				return r, nil
			}
		})
	handler := func(ctx context.Context, r request) (response, error) {
		answer, err := pay(ctx, r)
		switch {
		case errors.Is(err, idempotency.ErrKeyMissing):
			return response{StatusCode: http.StatusBadRequest, Body: "the header Idempotency-Key is missing"}, nil
		case errors.Is(err, idempotency.ErrFingerprintMismatch):
			return response{StatusCode: http.StatusUnprocessableEntity, Body: "the key was used for another request"}, nil
		case errors.Is(err, idempotency.ErrInProgress):
			return response{StatusCode: http.StatusConflict, Body: "the first request is still being handled"}, nil
		}
		return answer, err
	}

	// In a Lambda function: lambda.Start(handler)
	client := events.APIGatewayProxyRequestContext{Authorizer: map[string]any{"principalId": "customer-7"}}
	header := map[string]string{"idempotency-key": "8e03978e"}
	for _, r := range []request{
		{RequestContext: client, Headers: header, Body: `{"amount":10}`},
		{RequestContext: client, Headers: header, Body: `{"amount":10}`},
		{RequestContext: client, Headers: header, Body: `{"amount":900}`},
		{RequestContext: client, Body: `{"amount":10}`},
	} {
		answer, err := handler(context.Background(), r)
		fmt.Println(answer.StatusCode, answer.Body, answer.Headers, err)
	}
	// Output:
	// charging {"amount":10}
	// 201 receipt 1 map[] <nil>
	// 201 receipt 1 map[Idempotent-Replayed:true] <nil>
	// 422 the key was used for another request map[] <nil>
	// 400 the header Idempotency-Key is missing map[] <nil>
}

// A task of a state machine. Step Functions retries a task whose reply it did not get, with the same input. The execution
// and the state name the work: pass "$$.Execution.Id" and "$$.State.Name" in the task's parameters. A state that is entered
// several times, in a Map or a loop, needs the item or the round in its key as well.
func ExampleWrap_stepFunctions() {
	guard, err := idempotency.New("shipping", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	type input struct {
		Execution string `json:"execution"`
		State     string `json:"state"`
		OrderID   string `json:"orderId"`
	}
	type output struct {
		Tracking string `json:"tracking"`
	}
	ship := idempotency.Wrap(guard,
		func(in input) (string, error) { return idempotency.JoinKey(in.Execution, in.State), nil },
		func(_ context.Context, in input) (output, error) {
			fmt.Println("shipping", in.OrderID)
			return output{Tracking: "tracking number of " + in.OrderID}, nil
		})

	// In a Lambda function: lambda.Start(ship)
	for _, in := range []input{
		{Execution: "arn:aws:states:us-east-2:123456789012:execution:orders:run-1", State: "Ship", OrderID: "order-1"},
		{Execution: "arn:aws:states:us-east-2:123456789012:execution:orders:run-1", State: "Ship", OrderID: "order-1"},
		{State: "Ship", OrderID: "order-1"}, // not by a state machine
	} {
		out, err := ship(context.Background(), in)
		fmt.Println(out.Tracking, err)
	}
	// Output:
	// shipping order-1
	// tracking number of order-1 <nil>
	// tracking number of order-1 <nil>
	//  idempotency: key is missing
}

// outcomes counts what happens to keys, as a metric with the kind as its label would.
type outcomes struct {
	mu    sync.Mutex
	count map[idempotency.EventKind]int
}

func (o *outcomes) OnIdempotency(_ context.Context, e idempotency.Event) {
	if e.Kind == idempotency.EventInProgress && e.Poll > 0 {
		return // another look of work that waits for its key; any other kind is what the wait has come to
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[e.Kind]++
}

// A hook sees everything that no result tells: what was replayed, refused, taken over or lost, by whatever was guarded.
func ExampleHook() {
	counts := &outcomes{count: map[idempotency.EventKind]int{}}
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.Hooks = append(o.Hooks, counts)
	})
	if err != nil {
		log.Fatal(err)
	}
	place := func(order string, amount int) {
		_, _ = idempotency.Do(context.Background(), guard, order, func(context.Context) (struct{}, error) {
			if amount < 0 {
				return struct{}{}, errors.New("amount is negative")
			}
			return struct{}{}, nil
		}, func(o *idempotency.CallOptions) { o.Fingerprint = strconv.Itoa(amount) })
	}
	place("order-1", 10)
	place("order-1", 10)  // delivered again
	place("order-1", 900) // another order by the same name
	place("order-2", -1)
	place("", 10)
	for _, kind := range slices.Sorted(maps.Keys(counts.count)) {
		fmt.Printf("%v: %d\n", kind, counts.count[kind])
	}
	// Output:
	// claimed: 2
	// replayed: 1
	// mismatch: 1
	// key missing: 1
	// completed: 1
	// released: 1
}
