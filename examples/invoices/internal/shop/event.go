// Package shop is where the orders come from: it makes the events that the shop publishes.
package shop

import (
	"encoding/json"
	"time"

	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
)

// Placed returns the event of an order that is placed now, as the shop publishes it.
func Placed(o billing.Order) eventbridgetest.Event {
	detail, err := json.Marshal(o)
	if err != nil {
		panic(err) // it is made of text and numbers
	}
	return eventbridgetest.Event{
		Source: billing.Source, DetailType: billing.DetailType, Detail: string(detail), Time: time.Now(),
	}
}

// Delivered returns the event as EventBridge delivers it under this id, to a function or to a queue: out of the replay with
// this name, unless that is empty.
func Delivered(placed eventbridgetest.Event, id, replay string) []byte {
	e := eventbridgetest.NewEvent(placed)
	e.ID = id
	payload := eventbridgetest.Payload(e)
	if replay == "" {
		return payload
	}
	return append([]byte(`{"replay-name":"`+replay+`",`), payload[1:]...) // for which aws-lambda-go has no field
}
