package eventbridgetest

import (
	"slices"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Stats counts what has happened to a bus. Put, Replayed and Duplicates together are always Done, DeadLettered, Waiting and
// InFlight together.
type Stats struct {
	// Put is how many events were published. One that was recognised by its DeduplicationID is not counted.
	Put int
	// Replayed is how many events were replayed.
	Replayed int
	// Duplicates is how many copies of events were delivered, or are to be, although nothing went wrong.
	Duplicates int
	// Invocations is how often the handler was to be invoked.
	Invocations int
	// Done is how many deliveries of events have ended well.
	Done int
	// DeadLettered is how many were given up.
	DeadLettered int
	// Throttles is how many invocations Options.Throttle kept from happening, TargetFaults is the same for
	// Options.TargetFault.
	Throttles, TargetFaults int
	// Crashes, Timeouts and Errors are how many invocations ended so; a panic is an error.
	Crashes, Timeouts, Errors int
	// GivenUp is how many invocations a subscriber did not wait for to the end.
	GivenUp int
	// Waiting is how many events are still to be delivered, or to be delivered again; InFlight is how many are with a
	// handler that is waited for. Neither counts the other's.
	Waiting, InFlight int
}

// String returns the counters that are not zero in one line, such as "3 put, 4 invocations, 3 done", and "0 put" if all are.
func (s Stats) String() string {
	return lambdatest.Counters{
		{N: s.Put, One: "put", More: "put"},
		{N: s.Replayed, One: "replayed", More: "replayed"},
		{N: s.Duplicates, One: "duplicate", More: "duplicates"},
		{N: s.Invocations, One: "invocation", More: "invocations"},
		{N: s.Done, One: "done", More: "done"},
		{N: s.DeadLettered, One: "dead-lettered", More: "dead-lettered"},
		{N: s.Throttles, One: "throttle", More: "throttles"},
		{N: s.TargetFaults, One: "target fault", More: "target faults"},
		{N: s.Crashes, One: "crash", More: "crashes"},
		{N: s.Timeouts, One: "timeout", More: "timeouts"},
		{N: s.Errors, One: "error", More: "errors"},
		{N: s.GivenUp, One: "given up", More: "given up"},
		{N: s.Waiting, One: "waiting", More: "waiting"},
		{N: s.InFlight, One: "in flight", More: "in flight"},
	}.String()
}

// Stats returns the counters as they are now.
func (b *Bus) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	stats := b.stats
	for element := b.work.Front(); element != nil; element = element.Next() {
		if w := element.Value.(*work); w.call != nil {
			stats.InFlight += len(w.parts)
		}
	}
	stats.Waiting = b.left() - stats.InFlight
	return stats
}

// History is what has happened to one event, all its deliveries together.
type History struct {
	ID string
	// Event is the event as it was put, with its time. Of a raw event it has the Group and the DeduplicationID.
	Event Event
	// Put is when the bus took it.
	Put time.Time
	// Delivered is when the event was handed to an invocation, each time.
	Delivered []time.Time
	// Done is when a delivery last ended well, and zero if none has.
	Done time.Time
	// DeadLettered is when a delivery was last given up, and zero if none was.
	DeadLettered time.Time
	// Waiting is whether a delivery is still to come, or to end. An event that is neither waiting nor done nor dead-lettered
	// would be a lost one.
	Waiting bool
}

// Histories returns the history of every event that was ever put, in that order.
func (b *Bus) Histories() []History {
	b.mu.Lock()
	defer b.mu.Unlock()
	histories := make([]History, len(b.events))
	for i, e := range b.events {
		histories[i] = History{
			ID: e.id, Event: e.Event, Put: e.put, Delivered: slices.Clone(e.delivered), Done: e.done,
			DeadLettered: e.deadLettered, Waiting: e.deliveries > 0,
		}
		histories[i].Event.Resources = resources(e.Resources)
	}
	return histories
}
