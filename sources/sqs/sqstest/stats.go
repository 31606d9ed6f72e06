package sqstest

import (
	"slices"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Stats counts what has happened to a queue.
type Stats struct {
	// Sent is how many messages were put into the queue: by Send, by dead-lettering, by Redrive. A message that a FIFO
	// queue did not keep as a duplicate is not counted.
	Sent int
	// Receives is how many messages were handed out, every copy each time it was.
	Receives int
	// Invocations is how often the handler was to be invoked.
	Invocations int
	// Deleted is how many copies of messages were deleted, those that Redrive has moved included.
	Deleted int
	// DeadLettered is how many copies of messages were moved to the dead-letter queue.
	DeadLettered int
	// Duplicates is how many second copies were made.
	Duplicates int
	// Crashes, Timeouts and Errors are how many invocations ended so; a panic is an error.
	Crashes, Timeouts, Errors int
	// Visible, InFlight and Delayed are how many copies are in the queue now, by what they wait for.
	Visible, InFlight, Delayed int
}

// String returns the counters that are not zero in one line, such as "3 sent, 4 receives, 2 invocations, 3 deleted",
// and "0 sent" if all are.
func (s Stats) String() string {
	return lambdatest.Counters{
		{N: s.Sent, One: "sent", More: "sent"},
		{N: s.Receives, One: "receive", More: "receives"},
		{N: s.Invocations, One: "invocation", More: "invocations"},
		{N: s.Deleted, One: "deleted", More: "deleted"},
		{N: s.DeadLettered, One: "dead-lettered", More: "dead-lettered"},
		{N: s.Duplicates, One: "duplicate", More: "duplicates"},
		{N: s.Crashes, One: "crash", More: "crashes"},
		{N: s.Timeouts, One: "timeout", More: "timeouts"},
		{N: s.Errors, One: "error", More: "errors"},
		{N: s.Visible, One: "visible", More: "visible"},
		{N: s.InFlight, One: "in flight", More: "in flight"},
		{N: s.Delayed, One: "delayed", More: "delayed"},
	}.String()
}

// Stats returns the counters as they are now.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	stats := q.stats
	for element := q.entries.Front(); element != nil; element = element.Next() {
		switch e := element.Value.(*entry); {
		case !e.visibleAt.After(now):
			stats.Visible++
		case e.receipt != "":
			stats.InFlight++
		default:
			stats.Delayed++
		}
	}
	return stats
}

// History is what has happened to one message of a queue, all its copies together.
type History struct {
	ID      string
	Message Message // as it was sent; on a FIFO queue with its deduplication ID
	Sent    time.Time
	// Received is when the message was handed to an invocation, each time.
	Received []time.Time
	// Deleted is when a copy was last deleted, and zero if none was.
	Deleted time.Time
	// DeadLettered is when a copy was last moved to the dead-letter queue, and zero if none was.
	DeadLettered time.Time
}

// History returns the history of the message with the given ID, and whether the queue ever had it.
func (q *Queue) History(id string) (History, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.byID[id]
	if m == nil {
		return History{}, false
	}
	return m.history(), true
}

// Histories returns the history of every message that was ever put into the queue, in that order. A message that is
// neither deleted nor dead-lettered there and not in the queue any more would be a lost one.
func (q *Queue) Histories() []History {
	q.mu.Lock()
	defer q.mu.Unlock()
	histories := make([]History, len(q.messages))
	for i, m := range q.messages {
		histories[i] = m.history()
	}
	return histories
}

func (m *message) history() History {
	return History{
		ID: m.id, Message: m.Message, Sent: m.sentAt,
		Received: slices.Clone(m.received), Deleted: m.deleted, DeadLettered: m.deadLettered,
	}
}
