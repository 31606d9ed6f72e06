package stream

import (
	"errors"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Event is an event that is taken apart into records of type R. A source embeds it in its envelope.Visitor.
type Event[R any] struct {
	Records []R
	Shards  Shards
	Window  Members
	// Piped is whether the event comes through EventBridge Pipes: as an array, to be answered with eventIDs
	// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html).
	Piped bool
	size  int
}

// Parse takes the payload apart by visitor, which embeds e.
func (e *Event[R]) Parse(payload []byte, visitor envelope.EventVisitor) error {
	e.size = len(payload)
	if e.Piped = envelope.IsArray(payload); e.Piped {
		return envelope.Elements(payload, visitor)
	}
	err := envelope.Split(payload, visitor)
	if errors.Is(err, envelope.ErrNoRecords) && e.Window.Present() {
		return nil // a window can end without records
	}
	return err
}

// EventMember notes a member of the event beside its records.
func (e *Event[R]) EventMember(name, value string) { e.Window.member(name, value) }

// Add adds a record, of which raw is the JSON.
func (e *Event[R]) Add(r R, raw string) {
	if e.Records == nil {
		e.Records = make([]R, 0, envelope.Room(e.size, raw))
	}
	e.Records = append(e.Records, r)
}

// NoWindow returns an error if the event is that of a tumbling window.
func (e *Event[R]) NoWindow() error {
	if e.Window.Present() {
		return errors.New("event is that of a tumbling window, want a handler made by NewWindowHandler for it: " +
			"Lambda takes an answer without the window's state for a failure")
	}
	return nil
}
