package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/oncekit/oncekit/examples/payments/payments"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

type invocationKey struct{}

func invocationOf(ctx context.Context) int {
	n, _ := ctx.Value(invocationKey{}).(int)
	return n
}

// post is the API: it invokes the function with a request, and returns the function's response or one of its own.
func (r *run) post(ctx context.Context, c *customer, request payments.Request, why Reason) (payments.Response, error) {
	payload, err := json.Marshal(request)
	if err != nil {
		return payments.Response{}, err
	}
	r.mu.Lock()
	r.result.Requests[why]++
	r.invocations++
	n := r.invocations
	r.mu.Unlock()
	ended := make(chan lambdatest.Result, 1)
	event := lambdatest.Event{Payload: payload, RecordIDs: []string{c.name}}
	r.function.Start(context.WithValue(ctx, invocationKey{}, n), r.handler, event, func(result lambdatest.Result) {
		r.evidence.InvocationEnded(n, result.Ending)
		ended <- result
	})
	select {
	case result := <-ended:
		return r.answer(result)
	case <-ctx.Done():
		return payments.Response{}, context.Cause(ctx)
	}
}

func (r *run) answer(result lambdatest.Result) (response payments.Response, err error) {
	response.StatusCode = http.StatusInternalServerError
	if result.Ending == lambdatest.Answered {
		if err := json.Unmarshal(result.Response, &response); err != nil {
			return response, fmt.Errorf("the function's response is no response: %w", err)
		}
	}
	answer := Answer(fmt.Sprint(response.StatusCode))
	if answer == Created && response.Headers[payments.ReplayedHeader] == "true" {
		answer = Replayed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Answers[answer]++
	return response, nil
}

// compare compares what a customer was told with what the bank has done.
func (r *run) compare(c *customer, response payments.Response) {
	var told payments.Receipt
	err := json.Unmarshal([]byte(response.Body), &told)
	if err == nil && told.Amount == c.payment.Amount && r.bank.has(told.Receipt, c.payment.Card, told.Amount) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Wrong = append(r.result.Wrong, c.name)
}
