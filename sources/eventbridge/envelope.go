package eventbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/eventkey"
)

// The members of SystemMetadata that are used here
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-addressing.html). Every value is a string, and only
// aws:DeliveryType is always there.
const (
	systemID           = "aws:EventId"
	systemSource       = "aws:Source"
	systemDetailType   = "aws:DetailType"
	systemIngested     = "aws:IngestionTime"
	systemDeliveryType = "aws:DeliveryType" // LIVE or REPLAY
	systemGroup        = "EventGroupId"
)

// members are those of an envelope, as JSON, and empty where it has none
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html).
type members struct {
	version, id, detailType, source, account, time, region, resources, replayName, detail string
}

func (m *members) set(name, value string) {
	switch name {
	case "version":
		m.version = value
	case "id":
		m.id = value
	case "detail-type":
		m.detailType = value
	case "source":
		m.source = value
	case "account":
		m.account = value
	case "time":
		m.time = value
	case "region":
		m.region = value
	case "resources":
		m.resources = value
	case "replay-name":
		m.replayName = value
	case "detail":
		m.detail = value
	}
}

// isEnvelope tells an envelope by the names of its members: detail-type, which nothing else is likely to have, source, and
// detail. One without detail has to have a version to pass for an envelope that has lost it: an input template may well
// keep detail-type and source beside members of its own.
func (m *members) isEnvelope() bool {
	return m.detailType != "" && m.source != "" && (m.detail != "" || m.version != "")
}

// event is where things are in the JSON of an event.
type event struct {
	raw       string // as it was delivered
	system    string // JSON: SystemMetadata, empty: there is none
	members          // of its envelope
	enveloped bool   // whether it has one; otherwise detail is all of the data
	id        string
	source    string
	own       string // EventBridge's own identity of it, as a key, empty: it has none
	problem   error  // why it is no event
	none      bool   // it is null, or another source's
	unordered error  // why its lane is not known
}

// invocation is what one payload has, while it is taken apart: an envelope.Visitor.
type invocation struct {
	events       []event
	size         int     // of the payload
	parsing      members // of the element being parsed
	data, system string  // its Data and SystemMetadata
}

// parse takes a payload apart.
func parse(payload []byte) ([]event, error) {
	p := &invocation{size: len(payload)}
	if err := envelope.Elements(payload, p); err != nil {
		return nil, err
	}
	if len(p.events) == 0 {
		// EventBridge sends none. Whatever did wants something done, and an answer without an error would be the end of it.
		return nil, errors.New("event is an empty array, want at least one event")
	}
	return p.events, nil
}

func (p *invocation) Member(name, value string) {
	switch name {
	case "Data":
		p.data = value
	case "SystemMetadata":
		p.system = value
	default:
		p.parsing.set(name, value)
	}
}

func (p *invocation) End(raw string) {
	if p.events == nil {
		p.events = make([]event, 0, envelope.Room(p.size, raw))
	}
	p.events = append(p.events, event{raw: raw})
	e := &p.events[len(p.events)-1]
	switch {
	case p.parsing.isEnvelope():
		e.members, e.enveloped = p.parsing, true
	case p.data != "" && strings.HasPrefix(p.system, "{"):
		e.system = p.system
		e.open(p.data)
	default:
		e.open(raw)
	}
	e.problem = e.identify()
	p.parsing, p.data, p.system = members{}, "", ""
}

// open looks for the envelope in a value, which may be one, or a string that holds one. Without an envelope the value is all
// that was published.
func (e *event) open(value string) {
	object := value
	if text, ok := envelope.String(value); ok && holdsJSON(text) && json.Valid([]byte(text)) {
		object = text
	}
	var m members
	for name, value := range envelope.Members(object) {
		m.set(name, value)
	}
	if e.enveloped = m.isEnvelope(); e.enveloped {
		e.members = m
	} else {
		e.members = members{detail: value}
	}
}

// holdsJSON reports whether a text begins as an object or an array of JSON does.
func holdsJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[')
}

// identify finds out who the event is, or why it is none.
func (e *event) identify() (err error) {
	switch {
	case e.raw == "null":
		e.none = true
		return errors.New("eventbridge: event is null, want one")
	case !e.enveloped && e.system == "":
		if source := otherSource(e.detail); source != "" {
			e.none = true
			return fmt.Errorf("eventbridge: event is of event source %.100q, want one of EventBridge", source)
		}
	}
	if err = e.nameFrom("id", e.members.id, "source", e.members.source); err == nil && e.system != "" {
		err = e.nameFrom(systemID, envelope.Member(e.system, systemID), systemSource, envelope.Member(e.system, systemSource))
	}
	if err != nil {
		return fmt.Errorf("eventbridge: %w", err)
	}
	return nil
}

// nameFrom takes what the event has no id and source of yet from members, given by names and values.
func (e *event) nameFrom(idName, id, sourceName, source string) (err error) {
	if e.id == "" {
		if e.id, err = eventkey.Identifier(idName, id); err != nil {
			return err
		}
	}
	if e.source == "" {
		e.source, err = eventkey.Identifier(sourceName, source)
	}
	return err
}

// otherSource returns the event source of a record of a queue or stream, or of one of an event's Records, or the ARN that a
// stream's window is of, or "" if the data name none. A function that is behind another source by mistake must not take its
// records for data that were published: an event source mapping would take the answer for success.
func otherSource(data string) string {
	var records string
	for name, value := range envelope.Members(data) {
		if name == "Records" {
			records = value
		} else if source := recordSource(name, value); source != "" {
			return source
		} else if arn := textOf(value); name == "eventSourceARN" && strings.HasPrefix(arn, "arn:") {
			return arn
		}
	}
	if !strings.HasPrefix(records, "[") {
		return ""
	}
	var first firstSource
	_ = envelope.Elements([]byte(records), &first) // of JSON that was read before
	return string(first)
}

// firstSource is the event source of the first record that names one: an envelope.Visitor.
type firstSource string

func (s *firstSource) Member(name, value string) {
	if *s == "" {
		*s = firstSource(recordSource(name, value))
	}
}

func (s *firstSource) End(string) {}

// recordSource returns the event source that a member of a record names, or "". Others have an eventSource too, such as
// CloudTrail, whose are domains.
func recordSource(name, value string) string {
	if name != "eventSource" && name != "EventSource" { // the latter is that of SNS
		return ""
	}
	if source := textOf(value); strings.HasPrefix(source, "aws:") {
		return source
	}
	return ""
}

func (e *event) detailTypeText() string {
	if e.enveloped {
		return textOf(e.detailType)
	}
	return textOf(envelope.Member(e.system, systemDetailType))
}

func (e *event) resourceNames() (names []string) {
	if e.resources == "" || json.Unmarshal([]byte(e.resources), &names) != nil {
		return nil
	}
	return names
}

// ingested returns when a custom event bus took the event in.
func (e *event) ingested() time.Time { return timeOf(envelope.Member(e.system, systemIngested)) }

// at returns since when EventBridge has had the event, as well as can be known: the envelope's time may be when something
// happened, long before it was published.
func (e *event) at() time.Time {
	if at := e.ingested(); !at.IsZero() {
		return at
	}
	return timeOf(e.time)
}

// replay names the replay that the event comes from, and is empty if it comes from none. A custom event bus says no more than
// that there is one.
func (e *event) replay() string {
	if name := textOf(e.replayName); name != "" {
		return name
	}
	if kind := textOf(envelope.Member(e.system, systemDeliveryType)); kind == "REPLAY" {
		return kind
	}
	return ""
}

// textOf returns the text of a JSON string, or "" for anything else.
func textOf(value string) string {
	text, _ := envelope.String(value)
	return text
}

// timeOf returns the time that a JSON string has as RFC 3339, or the zero time for anything else.
func timeOf(value string) time.Time {
	t, err := time.Parse(time.RFC3339, textOf(value))
	if err != nil {
		return time.Time{}
	}
	return t
}
