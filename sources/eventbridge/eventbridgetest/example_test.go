package eventbridgetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A function that fails gets the event again, and after two retries the event is in the function's dead-letter queue.
func Example() {
	b, err := eventbridgetest.NewBus("orders", func(o *eventbridgetest.Options) {
		// In real time, so that it does not take long. In a testing/synctest bubble one leaves the default, a minute.
		o.RetryDelay = 10 * time.Millisecond
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	for _, order := range []string{"book", "lamp"} {
		_, err := b.Put(eventbridgetest.Event{
			Source: "com.example.orders", DetailType: "Order Placed", Detail: fmt.Sprintf(`{"item":%q}`, order),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}

	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.EventBridgeEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		fmt.Println("ship", string(event.Detail))
		if string(event.Detail) == `{"item":"lamp"}` {
			return nil, errors.New("sold out")
		}
		return nil, nil
	})

	if err := b.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Stats())
	for _, l := range b.DeadLetters() {
		fmt.Println(l.Queue, l.Reason, l.Err)
	}
	// Output:
	// ship {"item":"book"}
	// ship {"item":"lamp"}
	// ship {"item":"lamp"}
	// ship {"item":"lamp"}
	// 2 put, 4 invocations, 1 done, 1 dead-lettered, 3 errors
	// FunctionQueue RetriesExhausted sold out
}

// The same event comes twice without any error, and once more from the archive. The guard knows that its work is done.
func ExampleBus_Replay() {
	b, err := eventbridgetest.NewBus("orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	guard, err := idempotency.New("invoices", b.Store(idempotency.NewMemoryStore()), func(o *idempotency.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	type order struct{ ID string }
	handler, err := eventbridge.NewHandler(func(ctx context.Context, e *eventbridge.Event[order]) error {
		fmt.Println("invoice for", e.Detail.ID)
		return nil
	}, func(o *eventbridge.Options) { o.Idempotency = guard })
	if err != nil {
		fmt.Println(err)
		return
	}

	start := time.Now()
	id, err := b.Put(eventbridgetest.Event{Source: "com.example.orders", DetailType: "Order Placed", Detail: `{"id":"order-1"}`})
	if err != nil {
		fmt.Println(err)
	}
	if err := b.Redeliver(id); err != nil {
		fmt.Println(err)
	}
	if _, err := b.Replay(start, time.Now(), "after-the-fix"); err != nil {
		fmt.Println(err)
	}
	if err := b.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Stats())
	// Output:
	// invoice for order-1
	// 1 put, 1 replayed, 1 duplicate, 3 invocations, 3 done
}

// A subscriber of a custom event bus gives up after ten seconds, and calls again while the function still works.
func ExampleSubscriber() {
	b, err := eventbridgetest.NewBus("orders", func(o *eventbridgetest.Options) {
		o.Subscriber = &eventbridgetest.Subscriber{
			RequestResponse: true, InvocationTimeout: 10 * time.Millisecond, // in real time; on AWS it is 1 to 30 seconds
		}
		o.TargetRetry.MaximumRetryAttempts = eventbridgetest.NoRetries
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	if _, err := b.Put(eventbridgetest.Event{Source: "com.example.orders", DetailType: "Order Placed", Detail: `{}`}); err != nil {
		fmt.Println(err)
	}
	err = b.Drain(context.Background(), lambdatest.HandlerFunc(func(context.Context, []byte) ([]byte, error) {
		time.Sleep(50 * time.Millisecond)
		return nil, nil // which nobody hears
	}))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Stats())
	for _, l := range b.DeadLetters() {
		fmt.Println(l.Queue, l.Err)
	}
	// Output:
	// 1 put, 1 invocation, 1 dead-lettered, 1 given up
	// TargetQueue no answer within InvocationTimeout (10ms)
}

// What a handler answers to one event needs no bus.
func ExampleNewEvent() {
	event := eventbridgetest.NewEvent(eventbridgetest.Event{
		Source: "com.example.orders", DetailType: "Order Placed", Detail: `{"id":"order-1"}`,
	})
	event.ID = ""

	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.EventBridgeEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		if event.ID == "" {
			return nil, errors.New("event has no id")
		}
		return nil, nil
	})
	_, err := handler.Invoke(context.Background(), eventbridgetest.Payload(event))
	fmt.Println(err)
	// Output:
	// event has no id
}
