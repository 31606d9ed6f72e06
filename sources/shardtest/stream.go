package shardtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Config is what a kit says of a stream.
type Config[R any] struct {
	// Kit is the kit's package name, with which errors begin.
	Kit string
	// Name is how errors name the stream, such as `stream "clicks"`.
	Name string
	// ARN is the eventSourceARN of a window's event.
	ARN string
	// Observe is called once for every invocation that has ended, after its records are dealt with and before Drain or
	// Run return. It is called concurrently. The default is nothing.
	Observe func(Delivery[R])
}

// Stream is a stream in memory, together with the event source mapping that reads it and invokes a handler. R is how a
// record is shown to the kit's user. New makes one. Its methods are safe for concurrent use.
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

// New returns a stream without shards. The caller closes it. A stream that is made in a testing/synctest bubble belongs
// to the bubble. An option out of its limits is an error that names option, value and limit.
func New[R any](config Config[R], options Options) (*Stream[R], error) {
	if err := options.resolve(config.Kit); err != nil {
		return nil, err
	}
	return &Stream[R]{
		config:  config,
		options: options,
		seed:    lambdatest.NewSeed(options.Seed),
		function: lambdatest.NewFunction(lambdatest.FunctionOptions{
			Timeout: options.FunctionTimeout, Crash: options.Crash, StoreFault: options.StoreFault,
		}),
		changed: make(chan struct{}),
		byID:    make(map[string]*shard[R]),
	}, nil
}

// Seed is what the kit's own random choices come from.
func (s *Stream[R]) Seed() lambdatest.Seed { return s.seed }

// Store returns a store that belongs to the function that reads the stream. See lambdatest.Function.Store.
func (s *Stream[R]) Store(inner idempotency.Store) idempotency.Store { return s.function.Store(inner) }

// Call makes a call by which the function leaves its process. See lambdatest.Function.Call.
func (s *Stream[R]) Call(ctx context.Context, name, key string, apply func() error) error {
	return s.function.Call(ctx, name, key, apply)
}

// Write calls fn with the stream locked, so that what the kit itself knows of the stream can be guarded by it too. It
// returns fn's error, or lambdatest.ErrClosed without a call after Close.
func (s *Stream[R]) Write(fn func(w Writer[R]) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return lambdatest.ErrClosed
	}
	defer s.broadcast()
	return fn(Writer[R]{s})
}

// Writer changes a stream. It is valid during Write.
type Writer[R any] struct{ stream *Stream[R] }

// Open adds a shard. It is read when its parents, which must be there, are drained.
func (w Writer[R]) Open(id string, parents ...string) {
	s := w.stream
	opened := &shard[R]{id: id, lanes: make([]lane[R], s.options.ParallelizationFactor)}
	for _, parent := range parents {
		opened.parents = append(opened.parents, s.byID[parent])
	}
	for i := range opened.lanes {
		opened.lanes[i].shard = opened
	}
	s.shards = append(s.shards, opened)
	s.byID[id] = opened
}

// CloseShard ends a shard: it takes no more records.
func (w Writer[R]) CloseShard(id string) { w.stream.byID[id].closed = true }

// Append adds a record at the end of a shard that is open.
func (w Writer[R]) Append(shardID string, r Record[R]) {
	s := w.stream
	added := &record[R]{Record: r, shard: s.byID[shardID], position: len(s.records)}
	s.records = append(s.records, added)
	l := added.shard.laneOf(r.Lane)
	l.records = append(l.records, added)
	s.stats.Put++
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
		s.stats.Repeated += from.shard.lanes[i].rewind(from.position)
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

// Close ends the stream and every invocation that still runs, as lambdatest.Function.Close does, with its error.
func (s *Stream[R]) Close() error {
	s.mu.Lock()
	s.closed = true
	s.broadcast()
	s.mu.Unlock()
	return s.function.Close()
}
