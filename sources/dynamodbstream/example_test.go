package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Order is the item of the examples.
type Order struct {
	Customer string `dynamodbav:"customer"`
	ID       string `dynamodbav:"id"`
	Status   string `dynamodbav:"status"`
}

// orderChange returns the record of a change of the order's status, as the table's stream has it. An empty status means
// that there was, or is, no order.
func orderChange(n int, id, before, after string) events.DynamoDBEventRecord {
	keys := map[string]events.DynamoDBAttributeValue{
		"customer": events.NewStringAttribute("c1"), "id": events.NewStringAttribute(id),
	}
	image := func(status string) map[string]events.DynamoDBAttributeValue {
		if status == "" {
			return nil
		}
		return map[string]events.DynamoDBAttributeValue{"customer": keys["customer"], "id": keys["id"], "status": events.NewStringAttribute(status)}
	}
	r := events.DynamoDBEventRecord{
		EventID: fmt.Sprintf("f07f8ca4b0b26cb9c4e5e77e%08d", n), EventName: string(dynamodbstream.Modify), EventSource: "aws:dynamodb",
		EventSourceArn: "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000",
		Change: events.DynamoDBStreamRecord{
			Keys: keys, OldImage: image(before), NewImage: image(after), SequenceNumber: fmt.Sprint(111 * n), StreamViewType: "NEW_AND_OLD_IMAGES",
		},
	}
	switch "" {
	case before:
		r.EventName = string(dynamodbstream.Insert)
	case after:
		r.EventName = string(dynamodbstream.Remove)
	}
	return r
}

// A handler gets one change at a time. When one fails, its order's later changes wait for it; other orders go on, and what is
// done does not run again when the batch comes back.
func ExampleNewHandler() {
	guard, err := idempotency.New("order-mails", idempotency.NewMemoryStore()) // in a Lambda function: dynamostore.New(...)
	if err != nil {
		log.Fatal(err)
	}
	mailServer := errors.New("mail server is down")
	handler, err := dynamodbstream.NewHandler(func(ctx context.Context, c *dynamodbstream.Change[Order]) error {
		switch {
		case c.ByTTL():
			return nil // the order was old
		case c.Operation() == dynamodbstream.Remove:
			fmt.Println(c.Keys.ID, "cancelled, was", c.Old.Status)
		case c.New.Status == "shipped" && mailServer != nil:
			return mailServer
		default:
			fmt.Println(c.New.ID, c.New.Status)
		}
		return nil
	}, func(o *dynamodbstream.Options) {
		o.Idempotency = guard
		o.Concurrency = 1
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	// In a Lambda function: lambda.Start(handler)
	event := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{
		orderChange(1, "o1", "", "placed"),
		orderChange(2, "o1", "placed", "shipped"),
		orderChange(3, "o2", "", "placed"),
		orderChange(4, "o1", "shipped", "received"),
		orderChange(5, "o2", "placed", ""),
	}}
	deliver := func() {
		response, err := handler.Handle(context.Background(), event)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("failed from:", response.BatchItemFailures)
	}
	deliver()
	mailServer = nil
	event.Records = event.Records[1:] // Lambda delivers everything from the failed change on again
	deliver()
	// Output:
	// o1 placed
	// o2 placed
	// o2 cancelled, was placed
	// failed from: [{222}]
	// o1 shipped
	// o1 received
	// failed from: []
}

// A handler of a mapping with tumbling windows folds the changes of a window into a state, and gets the state at its end.
func ExampleNewWindowHandler() {
	type Counts struct{ Placed, Cancelled int }
	handler, err := dynamodbstream.NewWindowHandler(
		func(ctx context.Context, state Counts, c *dynamodbstream.Change[Order]) (Counts, error) {
			switch c.Operation() {
			case dynamodbstream.Insert:
				state.Placed++
			case dynamodbstream.Remove:
				state.Cancelled++
			}
			return state, nil
		},
		func(ctx context.Context, w *dynamodbstream.Window[Counts]) error {
			fmt.Printf("%s to %s: %+v\n", w.Start.Format("15:04"), w.End.Format("15:04"), w.State)
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	// In a Lambda function: lambda.Start(handler)
	response, err := handler.Invoke(context.Background(), []byte(`{
		"window": {"start": "2026-12-01T07:04:00Z", "end": "2026-12-01T07:06:00Z"},
		"state": {"Placed": 41, "Cancelled": 3},
		"shardId": "shardId-00000001573115804331-6cda73ee",
		"eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000",
		"isFinalInvokeForWindow": true,
		"isWindowTerminatedEarly": false,
		"Records": [{"eventID": "f07f8ca4b0b26cb9c4e5e77e69f274ee", "eventName": "INSERT", "dynamodb": {
			"SequenceNumber": "111", "Keys": {"customer": {"S": "c1"}, "id": {"S": "o1"}}
		}}]
	}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(response))
	// Output:
	// 07:04 to 07:06: {Placed:42 Cancelled:3}
	// {"state":{"Placed":42,"Cancelled":3},"batchItemFailures":[]}
}
