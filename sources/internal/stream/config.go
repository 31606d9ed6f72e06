package stream

import (
	"log/slog"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// wait is for how long a record waits for a claim that is held elsewhere: as long as there is time. A shard's records come
// back at once, and not when the claim's lease has ended, so giving up early gains nothing.
const wait = 24 * time.Hour

// Config is what the batches of one handler have in common.
type Config struct {
	source   string
	pipeline pipeline.Config
	serial   bool
	age      *pipeline.AgeWarning
}

// Order is what a source says about the order of its records.
type Order struct {
	// Serial is whether the user asks for one record at a time.
	Serial bool
	// Keyed is whether the user names records by a key of their own, which may be missing.
	Keyed bool
}

// NewConfig returns the Config for options, which it keeps and adapts: where a record may run without protection, the
// shard is serial, or at least stops at its first failure if the user asks for more at once. Whatever succeeded behind
// that failure would run again, as the checkpoint stands before it. The source is the package's name, for errors, and
// life how long keys live where the guard does not say.
func NewConfig(source string, options *batch.Options, guard *idempotency.Guard, life time.Duration, order Order) *Config {
	c := &Config{source: source, serial: order.Serial, age: pipeline.NewAgeWarning(0)}
	c.pipeline = pipeline.Config{Batch: options, Guard: guard, Expiry: life, Wait: wait, Redelivers: true}
	if guard == nil || mayRunUnprotected(guard.Options(), order) {
		options.StopOnFailure = true
		c.serial = c.serial || options.Concurrency <= 1
	}
	if guard != nil {
		if expiry := guard.Options().Expiry; expiry > 0 {
			life = expiry
		}
		c.age = pipeline.NewAgeWarning(life)
	}
	return c
}

// mayRunUnprotected reports whether a record may run that is not remembered as done.
func mayRunUnprotected(guard idempotency.Options, order Order) bool {
	return guard.Disabled || guard.FailOpen || order.Keyed && guard.MissingKey == idempotency.MissingKeyRunsUnprotected
}

// shardLane is the lane of the records that have no other. No partition key is empty, and those that are this are only
// kept in an order that they do not need.
const shardLane = "\x00shard"

// Lanes sets the lanes of the records, by the key that their source keeps in order. An empty key means that a record has
// none, and is kept in order with all others like it. If the key of one is not known, it may be any, and all are kept in
// one order.
func (c *Config) Lanes(records []batch.Record, lane func(i int) (key string, known bool)) {
	serial := c.serial
	for i := range records {
		key, known := lane(i)
		if key == "" {
			key = shardLane
		}
		records[i].Lane = key
		serial = serial || !known
	}
	if serial {
		for i := range records {
			records[i].Lane = shardLane
		}
	}
}

// WantsAge reports whether a record that is older than keys live would be warned about.
func (c *Config) WantsAge() bool { return c.age.Wanted() }

// CheckAge warns if a batch's oldest record, which is its first, is older than keys live.
func (c *Config) CheckAge(logger *slog.Logger, id string, at time.Time) { c.age.Check(logger, id, at) }
