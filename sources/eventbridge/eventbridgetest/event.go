package eventbridgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Event is an event to be published, as by PutEvents.
type Event struct {
	// Source and DetailType must not be empty.
	Source, DetailType string

	// Detail is a JSON object.
	Detail string

	// Resources are the ARNs of what the event is about.
	Resources []string

	// Time is when it happened. The zero time means now. The function gets it in whole seconds, as from AWS.
	Time time.Time

	// Group is the EventGroupId, in which a FIFO subscriber keeps order. It needs a subscriber.
	Group string

	// DeduplicationID is what a producer recognises its own retry by: of several events with the same one and the same group
	// within 5 minutes, a custom event bus keeps the first. It needs a subscriber.
	DeduplicationID string
}

// RawEvent is what PutRawEvents publishes on a custom event bus: data without an envelope.
type RawEvent struct {
	// Data is JSON.
	Data string
	// Metadata are the publisher's own, which the function gets if the subscriber has WithMetadata.
	Metadata map[string]string
	// Group and DeduplicationID are as in Event.
	Group, DeduplicationID string
}

const (
	// maxEntry is the most bytes of an entry, 1 MB
	// (https://aws.amazon.com/blogs/compute/more-room-to-build-serverless-services-now-support-payloads-up-to-1-mb).
	maxEntry = 1 << 20
	// maxID is the most bytes of a group or deduplication ID
	// (https://docs.aws.amazon.com/eventbridgev2/latest/APIReference/API_PutEventsSystemMetadata.html).
	maxID = 128
)

// check checks e as PutEvents does, and returns an error that says what is wrong with it.
func (e *Event) check() error {
	size := len(e.Source) + len(e.DetailType) + len(e.Detail)
	for _, arn := range e.Resources {
		size += len(arn)
	}
	switch {
	case e.Source == "":
		return fmt.Errorf("eventbridgetest: Source of the event is empty")
	case e.DetailType == "":
		return fmt.Errorf("eventbridgetest: DetailType of the event is empty")
	case !json.Valid([]byte(e.Detail)) || bytes.TrimSpace([]byte(e.Detail))[0] != '{':
		return fmt.Errorf("eventbridgetest: Detail is %.100q, but must be a JSON object", e.Detail)
	}
	return checkEntry(size, e.Group, e.DeduplicationID)
}

func (e *RawEvent) check() error {
	size := len(e.Data)
	for name, value := range e.Metadata {
		size += len(name) + len(value)
	}
	if !json.Valid([]byte(e.Data)) {
		return fmt.Errorf("eventbridgetest: Data is %.100q, but must be JSON", e.Data)
	}
	return checkEntry(size, e.Group, e.DeduplicationID)
}

func checkEntry(size int, group, deduplicationID string) error {
	switch {
	case size > maxEntry:
		return fmt.Errorf("eventbridgetest: event has %d bytes, but must have at most %d", size, maxEntry)
	case len(group) > maxID:
		return fmt.Errorf("eventbridgetest: Group has %d bytes, but must have at most %d", len(group), maxID)
	case len(deduplicationID) > maxID:
		return fmt.Errorf("eventbridgetest: DeduplicationID has %d bytes, but must have at most %d", len(deduplicationID), maxID)
	}
	return nil
}

// event is an event that a bus has accepted.
type event struct {
	Event
	id       string
	number   int    // among the bus's events, from 1
	raw      string // data of PutRawEvents, "" for an event with an envelope
	metadata map[string]string
	put      time.Time

	// Guarded by the bus's mutex.
	deliveries         int // that are neither done nor given up
	delivered          []time.Time
	done, deadLettered time.Time
}

// envelope is what a function gets of an event
// (https://docs.aws.amazon.com/eventbridge/latest/ref/events-structure.html).
type envelope struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	ReplayName string          `json:"replay-name,omitempty"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// withMetadata is what the transformer WITH_METADATA makes of an event
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-addressing.html). Only PutRawEvents gives events
// metadata of the publisher's own.
type withMetadata struct {
	Data           json.RawMessage
	Metadata       map[string]string `json:",omitempty"`
	SystemMetadata map[string]string
}

// encode returns the event as a function gets it. replay is the name of the replay that it comes from, or "".
func (b *Bus) encode(e *event, replay string) []byte {
	s := b.options.Subscriber
	data := []byte(e.raw)
	if e.raw == "" {
		envelope := envelope{
			Version: "0", ID: e.id, DetailType: e.DetailType, Source: e.Source, Account: account,
			Time: e.Time.UTC().Format(time.RFC3339), Region: region, Resources: e.Resources, Detail: json.RawMessage(e.Detail),
		}
		if s == nil {
			envelope.ReplayName = replay
		}
		data = encode(envelope)
	}
	if s == nil || !s.WithMetadata {
		return data
	}
	system := map[string]string{
		"ContentType": "application/eventbridge+json", "aws:EventId": e.id, "aws:DeliveryType": "LIVE",
		"aws:IngestionTime": e.put.UTC().Format(time.RFC3339), "aws:SequenceNumber": fmt.Sprint(10000000000000000000 + uint64(e.number)),
		"aws:Source": e.Source, "aws:DetailType": e.DetailType, "EventGroupId": e.Group, "DeduplicationId": e.DeduplicationID,
	}
	if e.raw != "" {
		system["ContentType"] = "application/json"
	}
	if replay != "" {
		system["aws:DeliveryType"] = "REPLAY"
	}
	maps.DeleteFunc(system, func(_, value string) bool { return value == "" })
	return encode(withMetadata{Data: data, Metadata: e.metadata, SystemMetadata: system})
}

func encode(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Errorf("eventbridgetest: event: %w", err))
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// NewEvent returns the event as a rule's target gets it, with an id, for tests that need no bus. A test that needs a
// stranger event changes this one. It is also what Handler.Handle of package eventbridge takes.
//
// NewEvent panics if the event is one that EventBridge would refuse, as httptest.NewRequest does for ease of use.
func NewEvent(e Event) events.EventBridgeEvent {
	if err := e.check(); err != nil {
		panic(err)
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	return events.EventBridgeEvent{
		Version: "0", ID: lambdatest.NewSeed(0).UUID(), DetailType: e.DetailType, Source: e.Source, AccountID: account,
		Time: e.Time.UTC().Truncate(time.Second), Region: region, Resources: resources(e.Resources),
		Detail: json.RawMessage(e.Detail),
	}
}

// Payload returns the event as the bytes that Lambda passes to Invoke. It panics if the event cannot be encoded: if its
// Detail is not JSON.
func Payload(event events.EventBridgeEvent) []byte { return encode(event) }

// Array returns the events as the bytes that Lambda passes to Invoke for a subscriber whose batches are larger than 1. It
// panics as Payload does.
func Array(events ...events.EventBridgeEvent) []byte {
	elements := make([][]byte, len(events))
	for i, event := range events {
		elements[i] = encode(event)
	}
	return array(elements)
}

func array(elements [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(elements, []byte(",")), []byte("]"))
}

// resources returns a copy of the list, which is never null.
func resources(arns []string) []string { return append([]string{}, arns...) }
