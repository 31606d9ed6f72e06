package kinesistest

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

const (
	region  = "us-east-1"
	account = "123456789012"
	role    = "arn:aws:iam::" + account + ":role/lambda-kinesis-role"

	// consumerCreated is the time in the ARN of a consumer.
	consumerCreated = "1607497475"
)

// Stream is a Kinesis stream in memory, together with the event source mapping that reads it and invokes a handler.
// NewStream makes one. Its methods are safe for concurrent use.
type Stream struct {
	name    string
	options Options
	shards  *shardtest.Stream[events.KinesisEventRecord]

	// Guarded by shards.Write.
	open      []hashRange
	opened    int
	sequences sequences
	keyless   int
}

// What the kits for streams share.
type (
	// Delivery is one invocation that has ended.
	Delivery = shardtest.Delivery[events.KinesisEventRecord]
	// Discarded is what an on-failure destination is told.
	Discarded = shardtest.Discarded
	// Reason is why records were discarded.
	Reason = shardtest.Reason
	// History is what has happened to one record.
	History = shardtest.History[events.KinesisEventRecord]
	// Stats counts what has happened to a stream.
	Stats = shardtest.Stats
	// Window is the tumbling window of an invocation.
	Window = shardtest.Window
)

// The reasons for which records are discarded.
const (
	RetryAttemptsExhausted = shardtest.RetryAttemptsExhausted
	RecordAgeExceeded      = shardtest.RecordAgeExceeded
	PayloadTooLarge        = shardtest.PayloadTooLarge
)

// NewStream returns an empty stream. The caller closes it. A stream that is made in a testing/synctest bubble belongs to
// the bubble.
//
// The name is checked as AWS does. An option out of its limits is an error that names option, value and limit.
func NewStream(name string, options ...func(*Options)) (*Stream, error) {
	if !validName(name) {
		return nil, fmt.Errorf("kinesistest: stream name is %q, but must be 1 to 128 letters, digits, underscores, dots and "+
			"hyphens", name)
	}
	s := &Stream{name: name, options: Options{Options: shardtest.Defaults()}}
	for _, option := range options {
		option(&s.options)
	}
	if err := s.options.resolve(); err != nil {
		return nil, err
	}
	var err error
	s.shards, err = shardtest.New(shardtest.Config[events.KinesisEventRecord]{
		Kit: "kinesistest", Name: fmt.Sprintf("stream %q", name), ARN: s.sourceARN(), Observe: s.options.Observe,
	}, s.options.Options)
	if err != nil {
		return nil, err
	}
	s.sequences = newSequences(s.shards.Seed(), s.options.SameSequenceNumbers)
	return s, s.shards.Write(func(w writer) error {
		for _, r := range wholeRange().divide(s.options.Shards) {
			s.openShard(w, r)
		}
		return nil
	})
}

type writer = shardtest.Writer[events.KinesisEventRecord]

// validName reports whether CreateStream takes the name: 1 to 128 letters, digits, underscores, dots and hyphens.
func validName(name string) bool {
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-')
	}
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, bad)
}

// Name returns the stream's name.
func (s *Stream) Name() string { return s.name }

// ARN returns the stream's ARN, which the eventSourceARN of its records is, or begins with if there is a consumer.
func (s *Stream) ARN() string {
	return "arn:aws:kinesis:" + region + ":" + account + ":stream/" + s.name
}

func (s *Stream) sourceARN() string {
	if s.options.Consumer == "" {
		return s.ARN()
	}
	return s.ARN() + "/consumer/" + s.options.Consumer + ":" + consumerCreated
}

// Drain delivers records to h until all shards are drained: every record is done or discarded, and every tumbling window
// has had its final invocation. Then no invocation is running either, but parked goroutines of dead ones may be left,
// until Close.
//
// A batch that fails for ever keeps Drain from ending. If neither retries nor age are limited, Drain returns an error
// that names its first record after more than 1,000 deliveries without progress. When ctx is done, Drain delivers no
// more, waits for what it has invoked, and returns the context's error and what is left, unless nothing is. The values
// of ctx are those of Invoke's context; its end is not. After Close, Drain returns lambdatest.ErrClosed.
func (s *Stream) Drain(ctx context.Context, h lambdatest.Handler) error {
	return s.shards.Drain(ctx, h)
}

// Run delivers records to h until ctx is done, waits for what it has invoked, and returns nil. Otherwise it is like
// Drain.
func (s *Stream) Run(ctx context.Context, h lambdatest.Handler) error { return s.shards.Run(ctx, h) }

// Redeliver has the mapping go back to the record with the given sequence number: what it has read of the shard from
// there on is delivered once more, behind the batch that is in work. Streams deliver at least once, and do this after a
// poller has lost its checkpoint.
//
// A record that was not delivered yet is an error, and so is a stream with tumbling windows: AWS does not say what
// becomes of their state.
func (s *Stream) Redeliver(shardID, sequenceNumber string) error {
	return s.shards.Redeliver(shardID, sequenceNumber)
}

// Store returns a store that belongs to the function that reads the stream: its calls take part in crashes and in the
// faults of Options.StoreFault. See lambdatest.Function.Store.
func (s *Stream) Store(inner idempotency.Store) idempotency.Store { return s.shards.Store(inner) }

// Call makes a call by which the function leaves its process, such as that of a store of another kind, so that it takes
// part in crashes and faults. See lambdatest.Function.Call.
func (s *Stream) Call(ctx context.Context, name, key string, apply func() error) error {
	return s.shards.Call(ctx, name, key, apply)
}

// Stats returns the counters as they are now.
func (s *Stream) Stats() Stats { return s.shards.Stats() }

// Discarded returns what the mapping has given up, in that order.
func (s *Stream) Discarded() []Discarded { return s.shards.Discarded() }

// Histories returns the history of every record that was ever put into the stream, in that order. A record that is
// neither waiting nor done nor discarded would be a lost one.
func (s *Stream) Histories() []History { return s.shards.Histories() }

// Close ends the stream and every invocation that still runs. The contexts of all invocations are cancelled, then the
// goroutines that a crash or a timeout left parked are let go. Close waits until all calls of Invoke have returned, for
// at most 5 seconds. Closing twice is allowed. See lambdatest.Function.Close.
func (s *Stream) Close() error { return s.shards.Close() }
