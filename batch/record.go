package batch

import "context"

// Record is one record of a batch, as the engine sees it. Handlers, middleware, sinks and hooks read it and do not change
// it: the engine works with it, and with others at the same time.
type Record struct {
	// ID is the identity that the source gives the record. Records of one batch with the same ID are one record
	// delivered twice: they are run once. An empty ID is no identity.
	ID string
	// Lane names the order the record belongs to. Records of one lane run one at a time, in input order. A record with
	// an empty lane is free.
	Lane string
	// Key is the key of the record's work, if it has one: records of one batch with the same key are run once, like those
	// with the same ID. The handlers of the sources set it to the idempotency key once the record is decoded, for
	// middleware, sinks and hooks.
	Key string
	// Source names where the record is from, for log lines: on AWS the ARN of the queue or stream.
	Source string
	// Attempt is the number of this delivery, from 1, as far as the source tells. Zero means that it is unknown.
	Attempt int
	// Value is whatever the source hands on to the handler. The engine never looks at it.
	Value any

	position int // in the batch, from 1: a Record of the user's own making is told apart by its zero
}

// Handler handles one record. Returning nil means that the record is done. An error wrapped by Permanent means that
// trying again is useless, one made by RetryAfter that it is useful only later, any other that it may be tried again.
type Handler func(ctx context.Context, r *Record) error
