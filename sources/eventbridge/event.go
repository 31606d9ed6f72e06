package eventbridge

import (
	"time"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Event is an event, with its detail decoded into a T. It is the handler's to keep, but as long as it is kept, so is the
// text of the whole invocation, up to 6 MB; Detail does not hold on to that unless T is a string. A test of a handler can
// make one by a literal, &Event[T]{Detail: detail}; the methods of View then return zero values. To have those set too, send
// the event through Handler.Invoke or package eventbridgetest.
type Event[T any] struct {
	// Detail is the decoded detail, or, of data that were published without an envelope, all of the data.
	Detail T
	View
}

// View is an event as it was delivered. Its methods decode what they return when they are called. What of an event is
// missing, or is not of the type that AWS documents, is a zero value.
type View struct{ e *event }

// ID returns the event's id: the envelope's, or the one that a custom event bus gave to data without an envelope, which is
// delivered with metadata only.
func (v View) ID() string {
	if v.e == nil {
		return ""
	}
	return v.e.id
}

// Source returns who the event is from, such as "aws.ec2" or "com.example.orders".
func (v View) Source() string {
	if v.e == nil {
		return ""
	}
	return v.e.source
}

// DetailType returns what kind of event it is, such as "EC2 Instance State-change Notification".
func (v View) DetailType() string {
	if v.e == nil {
		return ""
	}
	return v.e.detailTypeText()
}

// Account returns the account that the event is from, a number of twelve digits.
func (v View) Account() string {
	if v.e == nil {
		return ""
	}
	return textOf(v.e.account)
}

// Region returns the Region that the event is from, such as "eu-central-1".
func (v View) Region() string {
	if v.e == nil {
		return ""
	}
	return textOf(v.e.region)
}

// Time returns the envelope's time, which whoever published the event may have chosen, or the zero time if it is missing
// or malformed. For data without an envelope it is when the bus took them in, as far as they are delivered with metadata.
func (v View) Time() time.Time {
	switch {
	case v.e == nil:
		return time.Time{}
	case v.e.enveloped:
		return timeOf(v.e.time)
	default:
		return v.e.ingested()
	}
}

// Resources returns the ARNs of what the event is about. The caller owns the slice.
func (v View) Resources() []string {
	if v.e == nil {
		return nil
	}
	return v.e.resourceNames()
}

// ReplayName returns the name of the replay that the event comes from, or "" if it comes from none. A custom event bus does
// not name its replays: see IsReplay.
func (v View) ReplayName() string {
	if v.e == nil {
		return ""
	}
	return textOf(v.e.replayName)
}

// IsReplay reports whether the event is replayed: from the archive of a bus with rules, which gives the replay a name, or
// out of what a custom event bus retains, which shows in events with metadata only.
func (v View) IsReplay() bool { return v.e != nil && v.e.replay() != "" }

// Group returns the event group, in which a custom event bus keeps order, or "" if the event has none or is delivered
// without metadata.
func (v View) Group() string {
	if v.e == nil {
		return ""
	}
	return textOf(envelope.Member(v.e.system, systemGroup))
}

// JSON returns the event as it was delivered, with its envelope and its metadata, or "" for a literal.
func (v View) JSON() string {
	if v.e == nil {
		return ""
	}
	return v.e.raw
}

// RawDetail returns the JSON of what Detail is decoded from, or nil if there is none. The caller owns it.
func (v View) RawDetail() []byte {
	if v.e == nil || v.e.detail == "" {
		return nil
	}
	return []byte(v.e.detail)
}
