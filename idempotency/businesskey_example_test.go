package idempotency_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// Two ways in which one piece of work arrives under two message IDs: its producer sends it twice, and it is redriven from
// the dead-letter queue after a function has done it, but could not answer. A business key recognises both.
func Example_businessKey() {
	type Order struct {
		ID string `json:"id"`
	}
	tell := func(what string, keyOf ...func(*sqs.Options)) {
		deadLetters, err := sqstest.NewQueue("orders-dlq")
		if err != nil {
			log.Fatal(err)
		}
		defer deadLetters.Close()
		answers := true
		orders, err := sqstest.NewQueue("orders", func(o *sqstest.Options) {
			o.DeadLetter, o.MaxReceiveCount = deadLetters, 1
			o.FunctionTimeout, o.VisibilityTimeout = time.Second, time.Second
			o.Crash = func(p lambdatest.Point) bool { return p.Moment == lambdatest.AfterInvoke && !answers }
		})
		if err != nil {
			log.Fatal(err)
		}
		defer orders.Close()

		guard, err := idempotency.New("orders", orders.Store(idempotency.NewMemoryStore()))
		if err != nil {
			log.Fatal(err)
		}
		charged := map[string]int{}
		handler, err := sqs.NewHandler(func(_ context.Context, m *sqs.Message[Order]) error {
			charged[m.Body.ID]++
			return nil
		}, append(keyOf, func(o *sqs.Options) {
			o.Idempotency = guard
			o.Concurrency = 1
			o.Logger = slog.New(slog.DiscardHandler)
		})...)
		if err != nil {
			log.Fatal(err)
		}
		deliver := func(ids ...string) {
			for _, id := range ids {
				if _, err := orders.Send(sqstest.Message{Body: `{"id":"` + id + `"}`}); err != nil {
					log.Fatal(err)
				}
			}
			if err := orders.Drain(context.Background(), handler); err != nil {
				log.Fatal(err)
			}
		}

		deliver("order-1", "order-1") // the producer did not get the reply to its first request
		answers = false
		deliver("order-2") // charged and recorded, but the function's answer is lost
		answers = true
		deadLetters.Redrive()
		deliver()
		fmt.Println("by", what, "charged:", charged)
	}
	tell("message ID")
	tell("order ID", sqs.KeyOf(func(o Order) string { return o.ID }))
	// Output:
	// by message ID charged: map[order-1:2 order-2:2]
	// by order ID charged: map[order-1:1 order-2:1]
}
