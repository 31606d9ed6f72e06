package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Order is the payload of the examples.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// orders returns an event of the queue with these bodies, as the messages m1, m2 and so on.
func orders(queue string, bodies ...string) events.SQSEvent {
	var event events.SQSEvent
	for i, body := range bodies {
		id := fmt.Sprint("m", i+1)
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: id, ReceiptHandle: "handle of " + id, Body: body,
			Attributes:  map[string]string{"ApproximateReceiveCount": "1", "MessageGroupId": "customer-7"},
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-2:123456789012:" + queue,
		})
	}
	return event
}

// failures prints what an answer reports as failed.
func failures(response events.SQSEventResponse, err error) {
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Print("failed:")
	for _, failure := range response.BatchItemFailures {
		fmt.Print(" ", failure.ItemIdentifier)
	}
	fmt.Println()
}

// A handler gets one order at a time. What it returns an error for comes back, and nothing else.
func ExampleNewHandler() {
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[Order]) error {
		if m.Body.Amount <= 0 {
			return fmt.Errorf("order %s has amount %d, want more than 0", m.Body.ID, m.Body.Amount)
		}
		fmt.Println("placed", m.Body.ID)
		return nil
	}, func(o *sqs.Options) {
		o.Concurrency = 1
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	// In a Lambda function: lambda.Start(handler)
	response, err := handler.Invoke(context.Background(), []byte(`{"Records":[
		{"messageId":"m1","body":"{\"id\":\"o1\",\"amount\":100}"},
		{"messageId":"m2","body":"{\"id\":\"o2\",\"amount\":0}"},
		{"messageId":"m3","body":"{\"id\":"}
	]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(response))
	// Output:
	// placed o1
	// {"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m3"}]}
}

// With a guard an order that is placed is not placed again, however often its message is delivered.
func ExampleOptions_idempotency() {
	// In production the store is one that all instances of the function share, such as dynamostore.
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[Order]) error {
		fmt.Println("placed", m.Body.ID)
		return nil
	}, func(o *sqs.Options) { o.Idempotency = guard })
	if err != nil {
		log.Fatal(err)
	}
	event := orders("orders", `{"id":"o1"}`)
	failures(handler.Handle(context.Background(), event))
	failures(handler.Handle(context.Background(), event)) // delivered again
	// Output:
	// placed o1
	// failed:
	// failed:
}

// A producer that sends an order twice sends two messages. The order's own ID tells that they are one.
func ExampleKeyOf() {
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[Order]) error {
		fmt.Println("placed", m.Body.ID)
		return nil
	}, sqs.KeyOf(func(o Order) string { return o.ID }), func(o *sqs.Options) {
		o.Idempotency = guard
		o.Concurrency = 1
	})
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders", `{"id":"o1"}`, `{"id":"o2"}`, `{"id":"o1"}`)))
	// Output:
	// placed o1
	// placed o2
	// failed:
}

// An order ID that is used again for another order is an error, and does not pass for a duplicate.
func ExampleBodySHA256() {
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[Order]) error {
		fmt.Println("placed", m.Body.ID, "for", m.Body.Amount)
		return nil
	}, sqs.KeyOf(func(o Order) string { return o.ID }), func(o *sqs.Options) {
		o.Idempotency = guard
		o.Fingerprint = sqs.BodySHA256
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders", `{"id":"o1","amount":100}`)))
	failures(handler.Handle(context.Background(), orders("orders", `{"id":"o1","amount":200}`)))
	// Output:
	// placed o1 for 100
	// failed:
	// failed: m1
}

// A failed message of a FIFO queue takes the rest of its group with it, so that nothing overtakes it.
func ExampleNewHandler_fifo() {
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[string]) error {
		fmt.Println(m.GroupID(), "gets", m.Body)
		if m.Body == "second" {
			return errors.New("out of stock")
		}
		return nil
	}, func(o *sqs.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders.fifo", "first", "second", "third")))
	// Output:
	// customer-7 gets first
	// customer-7 gets second
	// failed: m2 m3
}

// A message whose handler asks for it comes back after a while of its own. An adapter for the AWS SDK is shown with
// VisibilityFunc.
func ExampleVisibility() {
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[string]) error {
		return batch.RetryAfter(90*time.Second, errors.New("payment provider is down"))
	}, func(o *sqs.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Visibility = sqs.VisibilityFunc(func(ctx context.Context, c sqs.VisibilityChange) error {
			fmt.Println(c.ReceiptHandle, "is invisible for", c.Timeout)
			return nil
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders", "o1")))
	// Output:
	// handle of m1 is invisible for 1m30s
	// failed: m1
}

// A message that can never succeed goes to a sink at once, instead of being tried until the queue gives it up.
func ExampleOptions_deadLetter() {
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[string]) error {
		return batch.Permanent(errors.New("customer is unknown"))
	}, func(o *sqs.Options) {
		o.DeadLetter = func(ctx context.Context, r *batch.Record, err error) error {
			fmt.Println("dead-lettered", r.Value.(*sqs.Message[string]).Body, "since", err)
			return nil
		}
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders", "o1")))
	// Output:
	// dead-lettered o1 since customer is unknown
	// failed:
}

// Without ReportBatchItemFailures on the event source mapping only an error brings messages back, the whole batch.
func ExampleOptions_errorOnAnyFailure() {
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[string]) error {
		if m.Body == "o2" {
			return errors.New("out of stock")
		}
		return nil
	}, func(o *sqs.Options) {
		o.ErrorOn = batch.ErrorOnAnyFailure
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	failures(handler.Handle(context.Background(), orders("orders", "o1", "o2")))
	// Output:
	// error: batch: 1 of 2 records failed, the first (m2): out of stock
}

// The function that handles a message can be tested by itself.
func ExampleMessage() {
	placeOrder := func(ctx context.Context, m *sqs.Message[Order]) error {
		if m.Body.Amount <= 0 {
			return errors.New("nothing to place")
		}
		return nil
	}
	fmt.Println(placeOrder(context.Background(), &sqs.Message[Order]{Body: Order{ID: "o1"}}))
	// Output:
	// nothing to place
}

// Notifications of S3 come through an SNS topic. Each record in them is one call, and its object and sequencer are its key:
// the same event in another message does not run again.
func ExampleEnvelope() {
	guard, err := idempotency.New("index", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[events.S3EventRecord]) error {
		fmt.Println(m.ID(), "has", m.Body.S3.Object.URLDecodedKey)
		return nil
	}, func(o *sqs.Options) {
		o.Unwrap = []sqs.Envelope{sqs.SNS, sqs.S3}
		o.Idempotency, o.Key = guard, sqs.S3ObjectKey
		o.Concurrency = 1
	})
	if err != nil {
		log.Fatal(err)
	}
	notification := func(records string) string {
		message, err := json.Marshal(`{"Records":[` + records + `]}`)
		if err != nil {
			log.Fatal(err)
		}
		return `{"Type":"Notification","MessageId":"22b80b92","TopicArn":"arn:aws:sns:us-east-2:123456789012:photos","Message":` +
			string(message) + `}`
	}
	const cat = `{"s3":{"bucket":{"name":"photos"},"object":{"key":"my+cat.jpg","sequencer":"0C0F6F405D6ED209E1"}}}`
	const dog = `{"s3":{"bucket":{"name":"photos"},"object":{"key":"dog.jpg","sequencer":"0C0F6F405D6ED20A11"}}}`
	failures(handler.Handle(context.Background(), orders("photos", notification(cat+","+dog), notification(cat))))
	// Output:
	// m1#0 has my cat.jpg
	// m1#1 has dog.jpg
	// failed:
}
