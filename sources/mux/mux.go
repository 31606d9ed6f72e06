// Package mux serves several sources with one Lambda function: a Mux looks at the shape of each event and hands it to the
// handler of its source.
//
//	lambda.Start(&mux.Mux{SQS: orders, EventBridge: invoices})
package mux

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Handler is lambda.Handler: the handlers of all sources are such, and lambda.NewHandler makes one of a function. What
// lambda.NewHandler makes must not be invoked twice at a time, as on Lambda Managed Instances: the bytes that it returns
// are a buffer that the next invocation uses.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Mux picks the handler for an event by its shape. It is a lambda.Handler, to be started with lambda.Start. A source
// without a handler is refused with an error, so that its events come back, or go where its mapping says; nothing is
// taken for done that nobody has seen.
//
// An event is told by the first of its records: all records of one come from one source. So are the arrays of
// EventBridge Pipes. A Mux is not changed while it is used.
type Mux struct {
	SQS            Handler // records of event source aws:sqs
	Kinesis        Handler // aws:kinesis
	DynamoDBStream Handler // aws:dynamodb
	EventBridge    Handler // events with a detail-type or with SystemMetadata, one or an array of them

	// Other takes what is none of these: raw data of a bus, a Scheduler's input, a request. Nil means that it is refused.
	Other Handler
}

// Invoke hands the event on, and returns what its handler returns. It returns an error, and hands nothing on, if there is
// none.
func (m *Mux) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	shape := envelope.ShapeOf(payload)
	h, field := m.pick(shape)
	if h == nil {
		return nil, fmt.Errorf("mux: event is %s, and Mux.%s is nil, want a handler for it%s", describe(shape), field, m.others())
	}
	return h.Invoke(ctx, payload)
}

// pick returns the handler for the shape, and the name of its field.
func (m *Mux) pick(shape envelope.Shape) (Handler, string) {
	switch {
	case shape.EventSource == "aws:sqs":
		return m.SQS, "SQS"
	case shape.EventSource == "aws:kinesis":
		return m.Kinesis, "Kinesis"
	case shape.EventSource == "aws:dynamodb":
		return m.DynamoDBStream, "DynamoDBStream"
	case shape.EventBridge:
		return m.EventBridge, "EventBridge"
	default:
		return m.Other, "Other"
	}
}

// describe says what was found, in a sentence.
func describe(shape envelope.Shape) string {
	switch {
	case shape.EventSource != "":
		return fmt.Sprintf("of records of event source %.100q", shape.EventSource)
	case shape.EventBridge:
		return "one of EventBridge"
	case len(shape.Members) > 0:
		return fmt.Sprintf("an object with %.100q", shape.Members)
	default:
		return shape.Kind
	}
}

// others names the handlers that there are.
func (m *Mux) others() string {
	var set []string
	for name, h := range map[string]Handler{
		"SQS": m.SQS, "Kinesis": m.Kinesis, "DynamoDBStream": m.DynamoDBStream, "EventBridge": m.EventBridge, "Other": m.Other,
	} {
		if h != nil {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return "; there are none"
	}
	slices.Sort(set)
	return "; there are those of " + strings.Join(set, ", ")
}
