// Package byhand is the audit function as it is written without oncekit: a loop over the records. It is correct as long
// as nothing fails, and what the simulation compares with.
package byhand

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Loop is a lambda.Handler that appends a row to Log for each record.
type Loop struct {
	Log audit.Log
	// Stop is whether the loop stops at the first record that fails. Otherwise it goes on with the next one.
	Stop bool
}

// Invoke implements lambda.Handler.
func (l Loop) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for _, record := range event.Records {
		if err := l.handle(ctx, record); err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures,
				events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
			if l.Stop {
				break
			}
		}
	}
	return json.Marshal(response)
}

func (l Loop) handle(ctx context.Context, record events.DynamoDBEventRecord) error {
	change := record.Change
	before, err := order(change.OldImage)
	if err != nil {
		return err
	}
	after, err := order(change.NewImage)
	if err != nil {
		return err
	}
	e := audit.Entry{
		EventID: record.EventID, SequenceNumber: change.SequenceNumber,
		Operation:   dynamodbstream.Operation(record.EventName),
		ByTTL:       record.UserIdentity != nil && record.UserIdentity.PrincipalID == "dynamodb.amazonaws.com",
		At:          change.ApproximateCreationDateTime.Time,
		Differences: audit.Differences(before, after),
	}
	if before != nil {
		e.OrderID, e.Version = before.ID, before.Version
	}
	if after != nil {
		e.OrderID, e.Version = after.ID, after.Version
	}
	return l.Log.Append(ctx, e)
}

// order reads an image. The accessors of events.DynamoDBAttributeValue panic if the value is of another type.
func order(image map[string]events.DynamoDBAttributeValue) (*audit.Order, error) {
	if image == nil {
		return nil, nil
	}
	o := new(audit.Order)
	for name, to := range map[string]*string{"id": &o.ID, "customer": &o.Customer, "status": &o.Status} {
		value, ok := image[name]
		if !ok || value.DataType() != events.DataTypeString {
			return nil, fmt.Errorf("attribute %s is no string", name)
		}
		*to = value.String()
	}
	for name, to := range map[string]*int64{"version": &o.Version, "total": &o.Total, "expires": &o.ExpiresAt} {
		value, ok := image[name]
		if !ok && name == "expires" {
			continue
		}
		if !ok || value.DataType() != events.DataTypeNumber {
			return nil, fmt.Errorf("attribute %s is no number", name)
		}
		var err error
		if *to, err = value.Integer(); err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return o, nil
}
