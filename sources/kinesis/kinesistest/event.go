package kinesistest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// NewEvent returns the event of an invocation that reads the records from one shard of the named stream, for tests that
// need no stream. Their keys do not have to belong to one shard. A test that needs a stranger event changes this one.
//
// NewEvent panics if the name or a record is one that Kinesis would refuse, as httptest.NewRequest does for ease of use.
func NewEvent(stream string, records ...Record) events.KinesisEvent {
	s, err := NewStream(stream, func(o *Options) { o.MaxRecordSize = 10 << 20 })
	if err != nil {
		panic(err)
	}
	event := events.KinesisEvent{Records: []events.KinesisEventRecord{}}
	for _, r := range records {
		if _, _, err := s.Put(r); err != nil {
			panic(err)
		}
	}
	for _, h := range s.Histories() {
		event.Records = append(event.Records, h.Record)
	}
	if err := s.Close(); err != nil {
		panic(err)
	}
	return event
}

// Payload returns the event as the bytes that Lambda passes to Invoke. An empty PartitionKey is left out.
func Payload(event events.KinesisEvent) []byte {
	payload := []byte(`{"Records":[`)
	for i, r := range event.Records {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, encode(r)...)
	}
	return append(payload, "]}"...)
}

// eventRecord is events.KinesisEventRecord with what is missing left out.
type eventRecord struct {
	Kinesis           eventData `json:"kinesis"`
	EventSource       string    `json:"eventSource"`
	EventVersion      string    `json:"eventVersion"`
	EventID           string    `json:"eventID"`
	EventName         string    `json:"eventName"`
	InvokeIdentityArn string    `json:"invokeIdentityArn"`
	AwsRegion         string    `json:"awsRegion"`
	EventSourceArn    string    `json:"eventSourceARN"`
}

type eventData struct {
	KinesisSchemaVersion        string                  `json:"kinesisSchemaVersion"`
	PartitionKey                string                  `json:"partitionKey,omitempty"`
	SequenceNumber              string                  `json:"sequenceNumber"`
	Data                        []byte                  `json:"data"`
	ApproximateArrivalTimestamp events.SecondsEpochTime `json:"approximateArrivalTimestamp"`
	EncryptionType              string                  `json:"encryptionType,omitempty"`
}

func encode(r events.KinesisEventRecord) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(eventRecord{
		Kinesis: eventData{
			KinesisSchemaVersion: r.Kinesis.KinesisSchemaVersion, PartitionKey: r.Kinesis.PartitionKey,
			SequenceNumber: r.Kinesis.SequenceNumber, Data: r.Kinesis.Data,
			ApproximateArrivalTimestamp: r.Kinesis.ApproximateArrivalTimestamp, EncryptionType: r.Kinesis.EncryptionType,
		},
		EventSource: r.EventSource, EventVersion: r.EventVersion, EventID: r.EventID, EventName: r.EventName,
		InvokeIdentityArn: r.InvokeIdentityArn, AwsRegion: r.AwsRegion, EventSourceArn: r.EventSourceArn,
	})
	if err != nil {
		panic(fmt.Errorf("kinesistest: record %q: %w", r.EventID, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
