package dynamodbstreamtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// An order is placed, paid, and deleted when its time to live is over. A handler that fails at the payment gets that
// again, and what came after it.
func Example() {
	table, err := dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer table.Close()

	order := dynamodbstreamtest.Item{
		"id": events.NewStringAttribute("order-1"), "status": events.NewStringAttribute("placed"),
	}
	_, placed := table.Put(order)
	_, paid := table.Update(order, func(item dynamodbstreamtest.Item) { item["status"] = events.NewStringAttribute("paid") })
	_, expired := table.Expire(order)
	if err := errors.Join(placed, paid, expired); err != nil {
		fmt.Println(err)
		return
	}

	first := true
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var answer events.DynamoDBEventResponse
		for _, r := range event.Records {
			if r.EventName == "MODIFY" && first {
				first = false
				answer.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: r.Change.SequenceNumber}}
				break
			}
			fmt.Println(r.EventName, r.Change.Keys["id"], "by the service:", r.UserIdentity != nil)
		}
		return json.Marshal(answer)
	})
	if err := table.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(table.Stats())
	// Output:
	// INSERT order-1 by the service: false
	// MODIFY order-1 by the service: false
	// REMOVE order-1 by the service: true
	// 3 put, 5 deliveries, 2 invocations, 3 done
}

// What a handler answers to one event needs no table of its own.
func ExampleNewEvent() {
	event := dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"},
		func(t *dynamodbstreamtest.Table) error {
			_, err := t.Put(dynamodbstreamtest.Item{"id": events.NewStringAttribute("order-1")})
			return err
		})
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		fmt.Println(event.Records[0].EventName, event.Records[0].Change.NewImage["id"])
		return []byte(`{"batchItemFailures":[]}`), nil
	})
	answer, err := handler.Invoke(context.Background(), dynamodbstreamtest.Payload(event))
	fmt.Printf("%s %v\n", answer, err)
	// Output:
	// INSERT order-1
	// {"batchItemFailures":[]} <nil>
}
