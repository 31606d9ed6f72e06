// Package byhand is the clicks function as it is mostly written without oncekit: a loop over the records.
package byhand

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/clicks/site"
)

// Loop handles the records of a batch one after the other. It is a lambda.Handler.
type Loop struct {
	Journeys site.Journeys
	// StopAtFailure makes the loop answer at the first failure. Otherwise it goes on with the next click, and reports all
	// that failed, as is right for a queue.
	StopAtFailure bool
}

// Invoke handles an event and returns the partial batch response.
func (l Loop) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event events.KinesisEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	response := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, r := range event.Records {
		if l.handle(ctx, r.Kinesis.Data) == nil {
			continue
		}
		response.BatchItemFailures = append(response.BatchItemFailures,
			events.KinesisBatchItemFailure{ItemIdentifier: r.Kinesis.SequenceNumber})
		if l.StopAtFailure {
			break
		}
	}
	return json.Marshal(response)
}

// handle appends the clicks of a record, and returns the first error.
func (l Loop) handle(ctx context.Context, data []byte) error {
	records, err := split(data)
	if err != nil {
		return err
	}
	var first error
	for _, record := range records {
		var click site.Click
		err := json.Unmarshal(record, &click)
		if err == nil {
			err = l.Journeys.Append(ctx, click)
		}
		if err != nil && l.StopAtFailure {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}
