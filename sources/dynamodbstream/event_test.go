package dynamodbstream

import (
	"encoding/json"
	"testing"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

const streamARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000"

// documented is a record with everything that AWS sends.
const documented = `{
	"eventID": "f07f8ca4b0b26cb9c4e5e77e69f274ee",
	"eventName": "MODIFY",
	"eventVersion": "1.1",
	"eventSource": "aws:dynamodb",
	"awsRegion": "us-east-1",
	"unknown": {"eventID": "inner"},
	"dynamodb": {
		"ApproximateCreationDateTime": 1480642020,
		"Keys": {"pk": {"S": "order#1"}, "sk": {"N": "7"}},
		"NewImage": {"pk": {"S": "order#1"}, "sk": {"N": "7"}, "total": {"N": "12.50"}, "note": {"S": "caf\u00e9 \"x\""}},
		"OldImage": {"pk": {"S": "order#1"}, "sk": {"N": "7"}, "total": {"N": "10"}, "blob": {"B": "AAEqQQ=="}},
		"SequenceNumber": "1405400000000002063282832",
		"SizeBytes": 54,
		"StreamViewType": "NEW_AND_OLD_IMAGES"
	},
	"eventSourceARN": "` + streamARN + `"
}`

// splitRecords collects the records of an event.
type splitRecords struct {
	parsing record
	records []record
}

func (s *splitRecords) Member(name, value string) { s.parsing.member(name, value) }

func (s *splitRecords) End(raw string) {
	s.parsing.end(raw)
	s.records = append(s.records, s.parsing)
	s.parsing = record{}
}

// recordOf returns the only record of an event with that record. The event's bytes are gone afterwards.
func recordOf(t *testing.T, raw string) *record {
	t.Helper()
	payload := []byte(`{"Records":[` + raw + `]}`)
	var s splitRecords
	if err := envelope.Split(payload, &s); err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		payload[i] = '#'
	}
	if len(s.records) != 1 {
		t.Fatalf("event has %d records, want 1", len(s.records))
	}
	return &s.records[0]
}

// changed returns a record as JSON, with the members of its dynamodb.
func changed(dynamodb string) string {
	return `{"eventID":"e1","eventName":"MODIFY","eventSource":"aws:dynamodb","eventSourceARN":"` + streamARN + `","dynamodb":` + dynamodb + `}`
}

// withImage returns a record as JSON, with the new image.
func withImage(image string) string {
	return changed(`{"Keys":{"id":{"S":"k"}},"NewImage":` + image + `,"SequenceNumber":"111"}`)
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}
