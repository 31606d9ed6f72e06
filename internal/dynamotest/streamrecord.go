package dynamotest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/oncekit/oncekit/internal/streampoll"
)

// eventRecord is a change as it is in a Lambda event.
// See https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
type eventRecord struct {
	EventID        string              `json:"eventID"`
	EventName      types.OperationType `json:"eventName"`
	EventVersion   string              `json:"eventVersion"`
	EventSource    string              `json:"eventSource"`
	AWSRegion      string              `json:"awsRegion"`
	DynamoDB       eventChange         `json:"dynamodb"`
	UserIdentity   *eventIdentity      `json:"userIdentity,omitempty"`
	EventSourceARN string              `json:"eventSourceARN"`
}

type eventChange struct {
	CreatedAt      float64              `json:"ApproximateCreationDateTime"` // seconds
	Keys           attributes           `json:"Keys,omitempty"`
	NewImage       attributes           `json:"NewImage,omitempty"`
	OldImage       attributes           `json:"OldImage,omitempty"`
	SequenceNumber string               `json:"SequenceNumber"`
	SizeBytes      int64                `json:"SizeBytes"`
	StreamViewType types.StreamViewType `json:"StreamViewType"`
}

// eventIdentity is who deleted an item, where that was DynamoDB itself.
type eventIdentity struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

// streamRecord returns a record as Lambda hands it on.
func streamRecord(streamARN string, record types.Record) (streampoll.Record, error) {
	change := record.Dynamodb
	if change == nil {
		return streampoll.Record{}, fmt.Errorf("dynamotest: record %s has no dynamodb", aws.ToString(record.EventID))
	}
	event := eventRecord{
		EventID:      aws.ToString(record.EventID),
		EventName:    record.EventName,
		EventVersion: aws.ToString(record.EventVersion),
		EventSource:  aws.ToString(record.EventSource),
		AWSRegion:    aws.ToString(record.AwsRegion),
		DynamoDB: eventChange{
			CreatedAt:      seconds(aws.ToTime(change.ApproximateCreationDateTime)),
			Keys:           change.Keys,
			NewImage:       change.NewImage,
			OldImage:       change.OldImage,
			SequenceNumber: aws.ToString(change.SequenceNumber),
			SizeBytes:      aws.ToInt64(change.SizeBytes),
			StreamViewType: change.StreamViewType,
		},
		EventSourceARN: streamARN,
	}
	if who := record.UserIdentity; who != nil {
		event.UserIdentity = &eventIdentity{Type: aws.ToString(who.Type), PrincipalID: aws.ToString(who.PrincipalId)}
	}
	text, err := json.Marshal(event)
	if err != nil {
		return streampoll.Record{}, fmt.Errorf("dynamotest: record %s: %w", event.EventID, err)
	}
	return streampoll.Record{SequenceNumber: event.DynamoDB.SequenceNumber, JSON: text}, nil
}

// seconds returns t as Lambda has it: seconds since 1970, with a fraction where there is one.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// attributes are an item in the JSON of DynamoDB, such as {"id":{"S":"a"}}.
type attributes map[string]types.AttributeValue

// MarshalJSON implements json.Marshaler.
func (a attributes) MarshalJSON() ([]byte, error) {
	values := make(map[string]any, len(a))
	for name, value := range a {
		tagged, err := attribute(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		values[name] = tagged
	}
	return json.Marshal(values)
}

// attribute returns what becomes the JSON of a value.
func attribute(value types.AttributeValue) (map[string]any, error) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}, nil
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}, nil
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}, nil
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}, nil
	case *types.AttributeValueMemberM:
		return map[string]any{"M": attributes(v.Value)}, nil
	case *types.AttributeValueMemberL:
		list := make([]map[string]any, len(v.Value))
		for i, element := range v.Value {
			tagged, err := attribute(element)
			if err != nil {
				return nil, err
			}
			list[i] = tagged
		}
		return map[string]any{"L": list}, nil
	}
	return nil, fmt.Errorf("value is a %T, want one of DynamoDB's ten types", value)
}
