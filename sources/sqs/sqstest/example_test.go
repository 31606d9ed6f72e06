package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// A handler that reports each failed message has exactly those delivered again.
func Example() {
	q, err := sqstest.NewQueue("orders", func(o *sqstest.Options) {
		// In real time, so that it does not take long. In a testing/synctest bubble one leaves the defaults.
		o.FunctionTimeout, o.VisibilityTimeout = time.Second, time.Second
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	for _, order := range []string{"book", "lamp", "chair"} {
		if _, err := q.Send(sqstest.Message{Body: order}); err != nil {
			fmt.Println(err)
			return
		}
	}

	lampsSoldOut := true
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var answer events.SQSEventResponse
		for _, m := range event.Records {
			if m.Body == "lamp" && lampsSoldOut {
				lampsSoldOut = false
				answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
				continue
			}
			fmt.Println("ship", m.Body, "- receive", m.Attributes["ApproximateReceiveCount"])
		}
		return json.Marshal(answer)
	})

	if err := q.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(q.Stats())
	// Output:
	// ship book - receive 1
	// ship chair - receive 1
	// ship lamp - receive 2
	// 3 sent, 4 receives, 2 invocations, 3 deleted
}

// The function crashes after it has charged a customer and recorded that, but before its answer arrives. The message
// comes back, and the guard knows that the work is done.
func ExampleQueue_Store() {
	q, err := sqstest.NewQueue("payments", func(o *sqstest.Options) {
		o.FunctionTimeout, o.VisibilityTimeout = time.Second, time.Second
		o.Crash = func(p lambdatest.Point) bool { return p.Moment == lambdatest.AfterInvoke && p.Attempt == 1 }
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	guard, err := idempotency.New("payments", q.Store(idempotency.NewMemoryStore()), func(o *idempotency.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var failed error
		for _, m := range event.Records {
			result, err := idempotency.Do(ctx, guard, m.MessageId, func(ctx context.Context) (struct{}, error) {
				fmt.Println("charge", m.Body)
				lambdatest.Checkpoint(ctx, "charged") // another point at which Options.Crash could say yes
				return struct{}{}, nil
			})
			if result.Replayed {
				fmt.Println("charged already:", m.Body)
			}
			failed = errors.Join(failed, err)
		}
		return nil, failed
	})

	if _, err := q.Send(sqstest.Message{Body: "order-1"}); err != nil {
		fmt.Println(err)
	}
	if err := q.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(q.Stats())
	// Output:
	// charge order-1
	// charged already: order-1
	// 1 sent, 2 receives, 2 invocations, 1 deleted, 1 crash
}

// What a handler answers to one event needs no queue.
func ExampleNewEvent() {
	event := sqstest.NewEvent("orders.fifo",
		sqstest.Message{Body: `{"id":"order-1"}`, GroupID: "customer-7"},
		sqstest.Message{Body: `{"id":`, GroupID: "customer-7"},
	)
	event.Records[1].Attributes["ApproximateReceiveCount"] = "3"

	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		for _, m := range event.Records {
			fmt.Println(m.Attributes["MessageGroupId"], m.Attributes["ApproximateReceiveCount"], json.Valid([]byte(m.Body)))
		}
		return []byte(`{"batchItemFailures":[]}`), nil
	})
	answer, err := handler.Invoke(context.Background(), sqstest.Payload(event))
	fmt.Printf("%s %v\n", answer, err)
	// Output:
	// customer-7 1 true
	// customer-7 3 false
	// {"batchItemFailures":[]} <nil>
}
