package dynamodbstreamtest

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// NewEvent returns the event of an invocation that reads what the changes have done to an empty table with the given
// key, for tests that need no table of their own. A test that needs a stranger event changes this one.
//
//	event := dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"}, func(t *dynamodbstreamtest.Table) error {
//		_, err := t.Put(item)
//		return err
//	})
//
// NewEvent panics if the name or the key is one that DynamoDB would refuse or a change returns an error, as
// httptest.NewRequest does for ease of use.
func NewEvent(table string, key Key, changes ...func(*Table) error) events.DynamoDBEvent {
	t, err := NewTable(table, key)
	if err != nil {
		panic(err)
	}
	for _, change := range changes {
		if err := change(t); err != nil {
			panic(err)
		}
	}
	event := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{}}
	for _, h := range t.Histories() {
		event.Records = append(event.Records, h.Record)
	}
	if err := t.Close(); err != nil {
		panic(err)
	}
	return event
}

// Payload returns the event as the bytes that Lambda passes to Invoke. It panics if the event can't be encoded, which
// happens for attribute values only that the functions of package events have not made.
func Payload(event events.DynamoDBEvent) []byte {
	payload := []byte(`{"Records":[`)
	for i, r := range event.Records {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, encode(r)...)
	}
	return append(payload, "]}"...)
}

func encode(r events.DynamoDBEventRecord) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Errorf("dynamodbstreamtest: record %q: %w", r.EventID, err))
	}
	return b
}
