package kinesistest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

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
	// Stream has the methods that the kits for streams share. Drain and Run deliver records to a handler, and Redeliver
	// has records delivered again. Store and Call make calls of the handler take part in crashes and faults. Stats,
	// Histories and Discarded tell what has happened. Close ends the stream.
	*shardtest.Stream[events.KinesisEventRecord]

	name    string
	options Options
	kit     *shardtest.Kit[events.KinesisEventRecord]

	// Guarded by kit.Write.
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
	s.kit, err = shardtest.New(shardtest.Config[events.KinesisEventRecord]{
		Kit: "kinesistest", Name: fmt.Sprintf("stream %q", name), ARN: s.sourceARN(), Observe: s.options.Observe,
	}, s.options.Options)
	if err != nil {
		return nil, err
	}
	s.Stream = s.kit.Stream
	s.sequences = newSequences(s.kit.Seed(), s.options.SameSequenceNumbers)
	return s, s.kit.Write(func(w writer) error {
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
