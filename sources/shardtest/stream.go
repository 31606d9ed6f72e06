package shardtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Stream is a stream in memory, together with the event source mapping that reads it and invokes a handler, as the
// kit's user has it. R is how a record is shown. Its methods are safe for concurrent use.
type Stream[R any] struct {
	config   Config[R]
	options  Options
	seed     lambdatest.Seed
	function *lambdatest.Function

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when something has changed that a waiter could wait for
	closed    bool
	shards    []*shard[R]
	byID      map[string]*shard[R]
	records   []*record[R]
	stats     Stats
	discarded []Discarded
}

// Store returns a store that belongs to the function that reads the stream: its calls take part in crashes and in the
// faults of Options.StoreFault. See lambdatest.Function.Store.
func (s *Stream[R]) Store(inner idempotency.Store) idempotency.Store { return s.function.Store(inner) }

// Call makes a call by which the function leaves its process, such as that of a store of another kind, so that it takes
// part in crashes and faults. See lambdatest.Function.Call.
func (s *Stream[R]) Call(ctx context.Context, name, key string, apply func() error) error {
	return s.function.Call(ctx, name, key, apply)
}

// broadcast wakes everyone who waits for a change. The caller holds s.mu.
func (s *Stream[R]) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// errorf returns an error with the kit's name in front.
func (s *Stream[R]) errorf(format string, args ...any) error {
	return fmt.Errorf(s.config.Kit+": "+format, args...)
}

// Redeliver has the mapping go back to the record with the given sequence number: what it has read of the shard from
// there on is delivered once more, behind the batch that is in work. Streams deliver at least once, and do this after a
// poller has lost its checkpoint.
//
// A record that was not delivered yet is an error, and so is a stream with tumbling windows: AWS does not say what
// becomes of their state.
func (s *Stream[R]) Redeliver(shardID, sequenceNumber string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := s.find(shardID, sequenceNumber)
	switch {
	case s.closed:
		return lambdatest.ErrClosed
	case err != nil:
		return err
	case s.options.TumblingWindow > 0:
		return s.errorf("%s has tumbling windows and does not redeliver", s.config.Name)
	case len(from.delivered) == 0:
		return s.errorf("record %s of %s was not delivered yet", sequenceNumber, shardID)
	}
	for i := range from.shard.lanes {
		from.shard.lanes[i].rewind(from.position)
	}
	s.broadcast()
	return nil
}

// find returns a record. The caller holds s.mu.
func (s *Stream[R]) find(shardID, sequenceNumber string) (*record[R], error) {
	found := s.byID[shardID]
	if found == nil {
		return nil, s.errorf("%s has no shard %q", s.config.Name, shardID)
	}
	for i := range found.lanes {
		for _, r := range found.lanes[i].records {
			if r.SequenceNumber == sequenceNumber {
				return r, nil
			}
		}
	}
	return nil, s.errorf("shard %s has no record %q", shardID, sequenceNumber)
}

// Close ends the stream and every invocation that still runs. The contexts of all invocations are cancelled, then the
// goroutines that a crash or a timeout left parked are let go. Close waits until all calls of Invoke and Observe have
// returned, for at most 5 seconds, and says in its error if they have not. Closing twice is allowed. See
// lambdatest.Function.Close.
func (s *Stream[R]) Close() error {
	s.mu.Lock()
	s.closed = true
	s.broadcast()
	s.mu.Unlock()
	return s.function.Close()
}
