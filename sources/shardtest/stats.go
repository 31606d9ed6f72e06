package shardtest

import (
	"slices"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Stats counts what has happened to a stream.
type Stats struct {
	// Put is how many records were put into the stream.
	Put int
	// Deliveries is how many records were handed out, each time that they were.
	Deliveries int
	// Invocations is how often the handler was to be invoked.
	Invocations int
	// Done is how many records the checkpoint has passed because they had succeeded, each time that it has.
	Done int
	// Discarded is how many records were given up.
	Discarded int
	// Repeated is how many records come again although they had succeeded: because the answer was lost, which is counted
	// then, or by Redeliver, which is counted when they are delivered. Retries of what came again are not counted.
	Repeated int
	// Crashes, Timeouts and Errors are how many invocations ended so; a panic is an error.
	Crashes, Timeouts, Errors int
	// Waiting is how many records are still to be delivered, or to be delivered again; InFlight is how many are with the
	// handler now. Neither counts the other's.
	Waiting, InFlight int
}

// String returns the counters that are not zero in one line, such as "3 put, 4 deliveries, 2 invocations, 3 done", and
// "0 put" if all are.
func (s Stats) String() string {
	return lambdatest.Counters{
		{N: s.Put, One: "put", More: "put"},
		{N: s.Deliveries, One: "delivery", More: "deliveries"},
		{N: s.Invocations, One: "invocation", More: "invocations"},
		{N: s.Done, One: "done", More: "done"},
		{N: s.Discarded, One: "discarded", More: "discarded"},
		{N: s.Repeated, One: "repeated", More: "repeated"},
		{N: s.Crashes, One: "crash", More: "crashes"},
		{N: s.Timeouts, One: "timeout", More: "timeouts"},
		{N: s.Errors, One: "error", More: "errors"},
		{N: s.Waiting, One: "waiting", More: "waiting"},
		{N: s.InFlight, One: "in flight", More: "in flight"},
	}.String()
}

// Stats returns the counters as they are now.
func (s *Stream[R]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	for _, sh := range s.shards {
		for i := range sh.lanes {
			l := &sh.lanes[i]
			stats.Waiting += l.waiting()
			stats.InFlight += l.inFlight
		}
	}
	stats.Waiting -= stats.InFlight
	return stats
}

// History is what has happened to one record.
type History[R any] struct {
	Shard          string
	SequenceNumber string
	Record         R
	// Put is when the record was put into the stream.
	Put time.Time
	// Delivered is when the record was handed to an invocation, each time.
	Delivered []time.Time
	// Done is when the checkpoint last passed the record because it had succeeded, and zero if it has not.
	Done time.Time
	// Discarded is when the record was last given up, and zero if it was not.
	Discarded time.Time
	// Waiting is whether the record is still to be delivered, or to be delivered again. A record that is neither waiting
	// nor done nor discarded would be a lost one.
	Waiting bool
}

// Histories returns the history of every record that was ever put into the stream, in that order.
func (s *Stream[R]) Histories() []History[R] {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make(map[*record[R]]bool)
	for _, sh := range s.shards {
		for i := range sh.lanes {
			l := &sh.lanes[i]
			for _, r := range l.unread() {
				waiting[r] = true
			}
			for _, b := range l.work {
				for _, r := range b.records {
					waiting[r] = true
				}
			}
		}
	}
	histories := make([]History[R], len(s.records))
	for i, r := range s.records {
		histories[i] = History[R]{
			Shard: r.shard.id, SequenceNumber: r.SequenceNumber, Record: r.Event, Put: r.ArrivedAt,
			Delivered: slices.Clone(r.delivered), Done: r.done, Discarded: r.discarded, Waiting: waiting[r],
		}
	}
	return histories
}
