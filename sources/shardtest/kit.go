package shardtest

import "github.com/oncekit/oncekit/sources/lambdatest"

// Config is what a kit says of a stream.
type Config[R any] struct {
	// Kit is the kit's package name, with which errors begin.
	Kit string
	// Name is how errors name the stream, such as `stream "clicks"`.
	Name string
	// ARN is the eventSourceARN of a window's event.
	ARN string
	// Observe is called once for every invocation that has ended, after its records are dealt with and before Drain, Run
	// or Close return. It is called concurrently, and must not call Close, which would wait for it. The default is nothing.
	Observe func(Delivery[R])
}

// Kit is a stream as the kit has it, which opens shards and puts records in. New makes one. Its methods are safe for
// concurrent use.
type Kit[R any] struct {
	// Stream is what the kit hands on to its user.
	Stream *Stream[R]
}

// New returns a stream without shards, which the kit's user closes. A stream that is made in a testing/synctest bubble
// belongs to the bubble. An option out of its limits is an error that names option, value and limit.
func New[R any](config Config[R], options Options) (*Kit[R], error) {
	if err := options.resolve(config.Kit); err != nil {
		return nil, err
	}
	return &Kit[R]{Stream: &Stream[R]{
		config:  config,
		options: options,
		seed:    lambdatest.NewSeed(options.Seed),
		function: lambdatest.NewFunction(lambdatest.FunctionOptions{
			Timeout: options.FunctionTimeout, Crash: options.Crash, StoreFault: options.StoreFault,
		}),
		changed: make(chan struct{}),
		byID:    make(map[string]*shard[R]),
	}}, nil
}

// Seed is what the kit's own random choices come from.
func (k *Kit[R]) Seed() lambdatest.Seed { return k.Stream.seed }

// Write calls fn with the stream locked, so that what the kit itself knows of the stream can be guarded by it too. It
// returns fn's error, or lambdatest.ErrClosed without a call after Close.
func (k *Kit[R]) Write(fn func(w Writer[R]) error) error {
	s := k.Stream
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
