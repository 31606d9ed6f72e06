package dynamodbstream

import (
	"fmt"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// record is where things are in the JSON of a change. All of it are parts of one string.
type record struct {
	raw          string
	id           string
	operation    string
	userIdentity string // JSON
	arn          string
	source       string
	dynamodb     string // JSON, and below what is in it
	sequence     string
	created      string // JSON
	keys         string // JSON
	oldImage     string // JSON
	newImage     string // JSON
	problem      error  // it is no change
}

// member notes a member of the record. The value is JSON.
func (r *record) member(name, value string) {
	switch name {
	case "eventID":
		r.id = text(value)
	case "eventName":
		r.operation = text(value)
	case "userIdentity":
		r.userIdentity = value
	case "eventSourceARN":
		r.arn = text(value)
	case "eventSource":
		r.source = text(value)
	case "dynamodb":
		r.dynamodb = value
	}
}

// end completes the record, of which raw is all. If it is no change, r.problem is set.
func (r *record) end(raw string) {
	r.raw = raw
	for name, value := range envelope.Members(r.dynamodb) {
		switch name {
		case "SequenceNumber":
			if r.sequence = text(value); envelope.Broken(r.sequence) {
				r.sequence = "" // none that Lambda would know
			}
		case "ApproximateCreationDateTime":
			r.created = value
		case "Keys":
			r.keys = value
		case "OldImage":
			r.oldImage = value
		case "NewImage":
			r.newImage = value
		}
	}
	switch {
	case raw[0] != '{':
		r.problem = fmt.Errorf("dynamodbstream: record is %s, want an object", envelope.KindOf(raw))
	case r.source != "" && r.source != eventSource:
		r.problem = fmt.Errorf("dynamodbstream: record is of event source %.100q, want %q", r.source, eventSource)
	case envelope.Broken(r.id):
		// Two that differ there only would pass for one.
		r.problem = fmt.Errorf("dynamodbstream: eventID is %.100q, want text without broken characters", r.id)
	case r.dynamodb == "" || r.dynamodb[0] != '{':
		r.problem = fmt.Errorf("dynamodbstream: dynamodb of change %.200q is %s, want an object", r.id, envelope.KindOf(r.dynamodb))
	}
}

// principal returns who made the change, which a record says only if it was a service.
func (r *record) principal() (kind, id string) {
	for name, value := range envelope.Members(r.userIdentity) {
		switch name {
		case "type", "Type": // an event has the first, a reply of the stream's GetRecords the second
			kind = text(value)
		case "principalId", "PrincipalId":
			id = text(value)
		}
	}
	return kind, id
}

const eventSource = "aws:dynamodb"
