package dynamodbstream

import (
	"time"

	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Change is a change of one item of a table, with the item decoded into a T by the rules of
// github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue: struct fields are named by dynamodbav tags, a type may
// have an UnmarshalDynamoDBAttributeValue, and numbers become a float64 where the field is an any. A T of
// map[string]types.AttributeValue is the item as it is.
//
// It is the handler's to keep, but as long as it is kept, so is the text of the whole batch, up to 6 MB; Old, New and
// Keys do not hold on to that. A test of a handler can make one by a literal, &Change[T]{New: &item}; the methods of
// View then return zero values.
type Change[T any] struct {
	// Old is the item before the change. It is nil for an Insert, and if the stream's view type has no old images.
	Old *T
	// New is the item after the change. It is nil for a Remove, and if the stream's view type has no new images.
	New *T
	// Keys is a T of which only the attributes of the item's primary key are set. Every record has these, whatever the
	// stream's view type.
	Keys T
	View
}

// Operation is what was done to the item.
type Operation string

// The operations (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Record.html). A write that
// leaves an item as it was makes no record.
const (
	Insert Operation = "INSERT" // a new item
	Modify Operation = "MODIFY" // other attributes of an existing one, also by a put
	Remove Operation = "REMOVE" // a deletion, by a request or by TTL
)

// View is the record of a change as it was delivered. Its methods decode what they return when they are called.
type View struct{ r *record }

// record returns the record, which is empty for a View that someone made by a literal.
func (v View) record() *record {
	if v.r == nil {
		return &record{}
	}
	return v.r
}

// ID returns the eventID, which is the change's own: another change has another one, and a redelivery the same.
func (v View) ID() string { return v.record().id }

// Operation returns what was done to the item (eventName). It is what the record says, also if that is none of the
// constants.
func (v View) Operation() Operation { return Operation(v.record().operation) }

// SequenceNumber returns the number of the record in its shard. These are decimal numbers of different lengths, which
// cannot be compared as text.
func (v View) SequenceNumber() string { return v.record().sequence }

// StreamARN returns the ARN of the stream. A table whose stream is switched off and on again has another one.
func (v View) StreamARN() string { return v.record().arn }

// CreatedAt returns about when the change was made (ApproximateCreationDateTime), which DynamoDB rounds down to the
// second. It is the zero time if the record does not say, or says nothing that can be a time.
func (v View) CreatedAt() time.Time { return stream.Time(v.record().created) }

// ByTTL reports whether DynamoDB removed the item because it had expired, and no request did
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html). In a global table
// only the Region in which the item expired tells; in the others the deletion is replicated, and looks like any.
func (v View) ByTTL() bool {
	if v.Operation() != Remove {
		return false
	}
	kind, principal := v.record().principal()
	return kind == "Service" && principal == "dynamodb.amazonaws.com"
}

// JSON returns the record as it was delivered, with everything that is in it.
func (v View) JSON() string { return v.record().raw }
