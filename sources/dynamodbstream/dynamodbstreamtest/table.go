package dynamodbstreamtest

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
)

// Table is a DynamoDB table in memory, together with its stream and the event source mapping that reads it and invokes
// a handler. NewTable makes one. Its methods are safe for concurrent use.
type Table struct {
	name    string
	key     Key
	options Options
	shards  *shardtest.Stream[events.DynamoDBEventRecord]

	// Guarded by shards.Write.
	items     map[string]Item // by the text of their key
	open      []hashRange
	opened    int
	sequences sequences
}

// Key is the names of a table's key attributes.
type Key struct {
	// Partition is the name of the partition key.
	Partition string
	// Sort is the name of the sort key, "" if there is none.
	Sort string
}

// What the kits for streams share.
type (
	// Delivery is one invocation that has ended.
	Delivery = shardtest.Delivery[events.DynamoDBEventRecord]
	// Discarded is what an on-failure destination is told.
	Discarded = shardtest.Discarded
	// Reason is why records were discarded.
	Reason = shardtest.Reason
	// History is what has happened to one record.
	History = shardtest.History[events.DynamoDBEventRecord]
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

// NewTable returns an empty table. The caller closes it. A table that is made in a testing/synctest bubble belongs to
// the bubble.
//
// Name and key are checked as AWS does. An option out of its limits is an error that names option, value and limit.
func NewTable(name string, key Key, options ...func(*Options)) (*Table, error) {
	switch {
	case !validName(name):
		return nil, fmt.Errorf("dynamodbstreamtest: table name is %q, but must be 3 to 255 letters, digits, underscores, dots "+
			"and hyphens", name)
	case len(key.Partition) < 1 || len(key.Partition) > 255 || len(key.Sort) > 255 || key.Partition == key.Sort:
		return nil, fmt.Errorf("dynamodbstreamtest: key attributes are %q and %q, but must be one or two different names of 1 to "+
			"255 bytes", key.Partition, key.Sort)
	}
	t := &Table{name: name, key: key, options: Options{Options: shardtest.Defaults()}, items: make(map[string]Item)}
	for _, option := range options {
		option(&t.options)
	}
	if err := t.options.resolve(); err != nil {
		return nil, err
	}
	var err error
	t.shards, err = shardtest.New(shardtest.Config[events.DynamoDBEventRecord]{
		Kit: "dynamodbstreamtest", Name: fmt.Sprintf("table %q", name), ARN: t.ARN(), Observe: t.options.Observe,
	}, t.options.Options)
	if err != nil {
		return nil, err
	}
	t.sequences = newSequences(t.shards.Seed())
	return t, t.shards.Write(func(w writer) error {
		for _, r := range (hashRange{0, 1 << 32, ""}).divide(t.options.Shards) {
			t.openShard(w, r)
		}
		return nil
	})
}

type writer = shardtest.Writer[events.DynamoDBEventRecord]

// validName reports whether CreateTable takes the name: 3 to 255 letters, digits, underscores, dots and hyphens.
func validName(name string) bool {
	bad := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-')
	}
	return len(name) >= 3 && len(name) <= 255 && !strings.ContainsFunc(name, bad)
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// ARN returns the ARN of the table's stream, which is the eventSourceARN of its records.
func (t *Table) ARN() string {
	return "arn:aws:dynamodb:" + region + ":" + account + ":table/" + t.name + "/stream/2026-11-01T00:00:00.000"
}

// Drain delivers records to h until all shards are drained: every record is done or discarded, and every tumbling window
// has had its final invocation. Then no invocation is running either, but parked goroutines of dead ones may be left,
// until Close.
//
// A batch that fails for ever keeps Drain from ending. If neither retries nor age are limited, Drain returns an error
// that names its first record after more than 1,000 deliveries without progress. When ctx is done, Drain delivers no
// more, waits for what it has invoked, and returns the context's error and what is left, unless nothing is. The values
// of ctx are those of Invoke's context; its end is not. After Close, Drain returns lambdatest.ErrClosed.
func (t *Table) Drain(ctx context.Context, h lambdatest.Handler) error { return t.shards.Drain(ctx, h) }

// Run delivers records to h until ctx is done, waits for what it has invoked, and returns nil. Otherwise it is like
// Drain.
func (t *Table) Run(ctx context.Context, h lambdatest.Handler) error { return t.shards.Run(ctx, h) }

// Redeliver has the mapping go back to the record with the given sequence number: what it has read of the shard from
// there on is delivered once more, behind the batch that is in work. Streams deliver at least once, and do this after a
// poller has lost its checkpoint.
//
// A record that was not delivered yet is an error, and so is a table with tumbling windows: AWS does not say what
// becomes of their state.
func (t *Table) Redeliver(shardID, sequenceNumber string) error {
	return t.shards.Redeliver(shardID, sequenceNumber)
}

// Store returns a store that belongs to the function that reads the stream: its calls take part in crashes and in the
// faults of Options.StoreFault. See lambdatest.Function.Store.
func (t *Table) Store(inner idempotency.Store) idempotency.Store { return t.shards.Store(inner) }

// Call makes a call by which the function leaves its process, such as that of a store of another kind, so that it takes
// part in crashes and faults. See lambdatest.Function.Call.
func (t *Table) Call(ctx context.Context, name, key string, apply func() error) error {
	return t.shards.Call(ctx, name, key, apply)
}

// Stats returns the counters as they are now.
func (t *Table) Stats() Stats { return t.shards.Stats() }

// Discarded returns what the mapping has given up, in that order.
func (t *Table) Discarded() []Discarded { return t.shards.Discarded() }

// Histories returns the history of every record that was ever put into the stream, in that order. A record that is
// neither waiting nor done nor discarded would be a lost one.
func (t *Table) Histories() []History { return t.shards.Histories() }

// Close ends the table and every invocation that still runs. The contexts of all invocations are cancelled, then the
// goroutines that a crash or a timeout left parked are let go. Close waits until all calls of Invoke have returned, for
// at most 5 seconds. Closing twice is allowed. See lambdatest.Function.Close.
func (t *Table) Close() error { return t.shards.Close() }
