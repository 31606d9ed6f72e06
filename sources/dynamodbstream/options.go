package dynamodbstream

import (
	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Options are the options of a Handler. The zero value is a good default, but for Idempotency.
type Options struct {
	// In middleware, hooks and DeadLetter, Record.Value is the handler's *Change[T]. Where the change could not be
	// decoded, or did not have to be, as for a replay, its Old, New and Keys are not set, and JSON has the record. Middleware does not
	// run for either.
	//
	// A stream does not count deliveries, so MaxAttempts needs idempotency.Options.CountAttempts, with which the guard
	// counts how often the handler was started with a change. A change that is in progress elsewhere or skipped is not counted;
	// a crash is counted for every change that was in flight. Each change that is given up takes MaxAttempts-1 of the retries of
	// its batch, so the mapping's MaximumRetryAttempts must be (MaxAttempts-1) * n + 2 or more, where n is how many changes
	// of one item may fail in one batch: when the retries run out, Lambda discards the batch.
	//
	// DeadLetter also gets changes that cannot be decoded, or that have no key: at MaxAttempts, and where nobody counts at
	// once, since they would block their shard and will not get better. What a Key or Fingerprint of one's own returns is
	// such an error only if it is batch.Permanent.
	//
	// Without a guard, or where a missing key lets changes run unprotected, StopOnFailure is always on, and Concurrency
	// is 1 unless it is set: see Serial.
	batch.Options

	// Serial runs the changes of a shard strictly one at a time, in their order, and nothing behind one that failed or
	// that waits for a claim held elsewhere. By default only changes of the same item are kept in order, and a failure
	// stops these.
	Serial bool

	// Idempotency is the guard that keeps finished changes from running again. Nil means that there is none: a change
	// runs as often as it is delivered, and the shard is serial. A guard without an expiry of its own keeps keys for 25
	// hours, an hour longer than a stream keeps a change.
	Idempotency *idempotency.Guard

	// Key returns the key of a change, from the record as it was delivered. It is computed before the change is
	// decoded and the handler runs. Nil means KeyOf, if that is set, or the change's own identity: the stream and the
	// eventID. A method IdempotencyKey of the item's type is not used: two changes of an item would have one key.
	Key func(v View) (string, error)

	// PayloadKey returns the key of a change from the JSON of its record's member dynamodb, which has Keys, OldImage and NewImage
	// as DynamoDB writes them, and SequenceNumber. It is for functions that know no source, such as the Key of an expression of
	// package jmespath: [NewImage.id.S, NewImage.version.N]. The hash of all of it is another one for each change. The bytes are
	// a copy, for it to keep and to change. An error that is idempotency.ErrKeyMissing is the same as no key. Any error counts as
	// one that will not get better, since the bytes stay what they are. Nil means that there is none. It excludes Key and KeyOf.
	PayloadKey func(payload []byte) (string, error)

	// Fingerprint returns a fingerprint of what the key stands for. A change with the key of another and a different
	// fingerprint fails with idempotency.ErrFingerprintMismatch, instead of passing for the other. It is stored as it is,
	// so it should be a hash. Nil means none.
	Fingerprint func(v View) (string, error)

	// PayloadFingerprint is Fingerprint from the bytes that PayloadKey gets, such as the Fingerprint of an expression of package
	// jmespath. It excludes Fingerprint.
	PayloadFingerprint func(payload []byte) (string, error)

	changeKey any // a func(*Change[T]) string, see KeyOf
}

func (o *Options) validate(windows bool) error {
	return stream.Validate("dynamodbstream", &o.Options, o.Idempotency, payload.KeyOptions{
		Key: o.Key != nil, KeyOf: o.changeKey != nil, PayloadKey: o.PayloadKey != nil,
		Fingerprint: o.Fingerprint != nil, PayloadFingerprint: o.PayloadFingerprint != nil,
	}, windows)
}
