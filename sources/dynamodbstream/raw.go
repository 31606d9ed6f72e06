package dynamodbstream

import (
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Raw returns the whole record as aws-lambda-go has it. What of it is not of the type that AWS documents is left out, an
// image as a whole. It is not decoded by encoding/json, since the attribute values of aws-lambda-go panic at some.
func (v View) Raw() events.DynamoDBEventRecord {
	r := v.record()
	raw := events.DynamoDBEventRecord{
		EventID: r.id, EventName: r.operation, EventSource: r.source, EventSourceArn: r.arn,
		AWSRegion:    text(envelope.Member(r.raw, "awsRegion")),
		EventVersion: text(envelope.Member(r.raw, "eventVersion")),
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: v.CreatedAt()},
			Keys:                        eventItem(r.keys), NewImage: eventItem(r.newImage), OldImage: eventItem(r.oldImage),
			SequenceNumber: r.sequence,
			StreamViewType: text(envelope.Member(r.dynamodb, "StreamViewType")),
		},
	}
	raw.Change.SizeBytes, _ = strconv.ParseInt(envelope.Member(r.dynamodb, "SizeBytes"), 10, 64)
	if kind, id := r.principal(); kind != "" || id != "" {
		raw.UserIdentity = &events.DynamoDBUserIdentity{Type: kind, PrincipalID: id}
	}
	return raw
}

// eventItem returns an item as aws-lambda-go has it, or nil if it is none.
func eventItem(image string) map[string]events.DynamoDBAttributeValue {
	item, err := parseItem(image)
	if err != nil {
		return nil
	}
	return eventMap(item)
}

func eventMap(item map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	m := make(map[string]events.DynamoDBAttributeValue, len(item))
	for name, v := range item {
		m[name] = eventValue(v)
	}
	return m
}

func eventValue(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(v.Value)
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(v.Value)
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(eventMap(v.Value))
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(v.Value))
		for i, element := range v.Value {
			list[i] = eventValue(element)
		}
		return events.NewListAttribute(list)
	default:
		return events.NewNullAttribute()
	}
}
