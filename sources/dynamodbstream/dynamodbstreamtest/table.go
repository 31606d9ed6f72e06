package dynamodbstreamtest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/shardtest"
)

const (
	region  = "us-east-1"
	account = "123456789012"
)

// Table is a DynamoDB table in memory, together with its stream and the event source mapping that reads it and invokes
// a handler. NewTable makes one. Its methods are safe for concurrent use.
type Table struct {
	// Stream has the methods that the kits for streams share. Drain and Run deliver records to a handler, and Redeliver
	// has records delivered again. Store and Call make calls of the handler take part in crashes and faults. Stats,
	// Histories and Discarded tell what has happened. Close ends the table.
	*shardtest.Stream[events.DynamoDBEventRecord]

	name    string
	key     Key
	options Options
	kit     *shardtest.Kit[events.DynamoDBEventRecord]

	// Guarded by kit.Write.
	items     map[string]Item // by the text of their key
	firstKey  Item            // the first one put
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

// names returns the names of the key attributes that there are.
func (k Key) names() []string {
	if k.Sort == "" {
		return []string{k.Partition}
	}
	return []string{k.Partition, k.Sort}
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
	t.kit, err = shardtest.New(shardtest.Config[events.DynamoDBEventRecord]{
		Kit: "dynamodbstreamtest", Name: fmt.Sprintf("table %q", name), ARN: t.ARN(), Observe: t.options.Observe,
	}, t.options.Options)
	if err != nil {
		return nil, err
	}
	t.Stream = t.kit.Stream
	t.sequences = newSequences(t.kit.Seed())
	return t, t.kit.Write(func(w writer) error {
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
