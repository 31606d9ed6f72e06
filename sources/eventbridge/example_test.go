package eventbridge_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// Order is the detail of the examples' events.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// A handler finishes all events of an array, whichever fails, and what is done does not run again when all come back.
func ExampleNewHandler() {
	guard, err := idempotency.New("invoices", idempotency.NewMemoryStore()) // in a Lambda function: dynamostore.New(...)
	if err != nil {
		log.Fatal(err)
	}
	printer := errors.New("printer is out of paper")
	handler, err := eventbridge.NewHandler(func(ctx context.Context, e *eventbridge.Event[Order]) error {
		if e.Detail.ID == "o1" && printer != nil {
			return printer
		}
		fmt.Println("invoice for", e.Detail.ID)
		return nil
	}, func(o *eventbridge.Options) {
		o.Idempotency = guard
		o.Concurrency = 1
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		log.Fatal(err)
	}
	// In a Lambda function: lambda.Start(handler)
	payload := []byte(`[
		{"version":"0","id":"17793124-05d4-b198-2fde-7ededc63b103","detail-type":"Order Placed","source":"com.example.orders",
			"time":"2026-09-23T18:00:00Z","detail":{"id":"o1","amount":4}},
		{"version":"0","id":"aa8c9ad0-4a06-a94f-8f6f-9b7c8a0ed3c4","detail-type":"Order Placed","source":"com.example.orders",
			"time":"2026-09-23T18:00:01Z","detail":{"id":"o2","amount":5}}
	]`)
	_, err = handler.Invoke(context.Background(), payload)
	fmt.Println(err)
	printer = nil
	answer, err := handler.Invoke(context.Background(), payload)
	fmt.Println(string(answer), err)
	// Output:
	// invoice for o2
	// batch: 1 of 2 records failed, the first (com.example.orders#17793124-05d4-b198-2fde-7ededc63b103): printer is out of paper
	// invoice for o1
	// null <nil>
}

// A schedule's input that makes an envelope of the schedule's ARN and the time gives each tick one key, however often
// Scheduler tries it. The default input has none.
func ExampleNewHandler_schedule() {
	guard, err := idempotency.New("reports", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	type Report struct {
		Name string `json:"name"`
	}
	handler, err := eventbridge.NewHandler(func(ctx context.Context, e *eventbridge.Event[Report]) error {
		fmt.Println("report", e.Detail.Name, "of", e.ID())
		return nil
	}, func(o *eventbridge.Options) { o.Idempotency = guard })
	if err != nil {
		log.Fatal(err)
	}
	// What Scheduler makes of {"source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>",
	// "detail-type":"Schedule","detail":{"name":"sales"}}
	payload := []byte(`{"source":"arn:aws:scheduler:eu-central-1:123456789012:schedule/default/sales","id":"2026-09-23T18:00:00Z",
		"detail-type":"Schedule","detail":{"name":"sales"}}`)
	for range 2 {
		if _, err := handler.Invoke(context.Background(), payload); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// report sales of 2026-09-23T18:00:00Z
}

// A producer that publishes again after a lost reply makes an event with another id. A business key recognises it.
func ExampleKeyOf() {
	guard, err := idempotency.New("invoices", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handler, err := eventbridge.NewHandler(func(ctx context.Context, e *eventbridge.Event[Order]) error {
		fmt.Println("invoice for", e.Detail.ID)
		return nil
	}, func(o *eventbridge.Options) {
		o.Idempotency = guard
		o.Hooks = []batch.Hook{outcomes{}}
	}, eventbridge.KeyOf(func(o Order) string { return o.ID }))
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"17793124-05d4-b198-2fde-7ededc63b103", "aa8c9ad0-4a06-a94f-8f6f-9b7c8a0ed3c4"} {
		payload := fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"Order Placed","source":"com.example.orders","detail":{"id":"o1"}}`, id)
		if _, err := handler.Invoke(context.Background(), []byte(payload)); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// invoice for o1
	// o1 is succeeded
	// o1 is replayed
}

// outcomes is a hook that prints what became of events.
type outcomes struct{}

func (outcomes) OnRecordFinished(_ context.Context, r *batch.Result) {
	fmt.Println(r.Record.Key, "is", r.Outcome)
}
