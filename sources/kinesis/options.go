package kinesis

import (
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// The default and the limit of Options.MaxInflated, in bytes.
const (
	DefaultMaxInflated = 16 << 20
	InflatedLimit      = 1 << 30
)

// Options are the options of a Handler. The zero value is a good default, but for Idempotency.
type Options struct {
	// In middleware, hooks and DeadLetter, Record.Value is the handler's *Record[T]. Where the data could not be decoded, or
	// did not have to be, as for a replay, Data is zero there and RawData has the bytes. Middleware does not run for either.
	//
	// Kinesis does not count deliveries, so MaxAttempts needs idempotency.Options.CountAttempts, with which the guard
	// counts how often the handler was started with a record. A record that is in progress elsewhere or skipped is not counted;
	// a crash is counted for every record that was in flight. Each record that is given up takes MaxAttempts-1 of the retries of
	// its batch, so the mapping's MaximumRetryAttempts must be (MaxAttempts-1) * n + 2 or more, where n is how many records
	// of one partition key may fail in one batch: when the retries run out, Lambda discards the batch.
	//
	// DeadLetter also gets records that cannot be decoded, or that have no key: at MaxAttempts, and where nobody counts at
	// once, since they would block their shard and will not get better. What a Decode, Key or Fingerprint of one's own
	// returns is such an error only if it is batch.Permanent.
	//
	// Without a guard, or where a missing key lets records run unprotected, StopOnFailure is always on, and Concurrency
	// is 1 unless it is set: see Serial.
	batch.Options

	// Serial runs the records of a shard strictly one at a time, in their order, and nothing behind one that failed or
	// that waits for a claim held elsewhere. By default only records with the same partition key are kept in order, and
	// a failure stops these.
	Serial bool

	// Idempotency is the guard that keeps finished records from running again. Nil means that there is none: a record
	// runs as often as it is delivered, and the shard is serial. A guard without an expiry of its own keeps keys for 8
	// days. A stream that keeps its records for longer needs an expiry that is longer than that.
	Idempotency *idempotency.Guard

	// Key returns the key of a record, from the record as it was delivered. It is computed before the data are decoded and
	// the handler runs. Nil means KeyOf, if that is set, or the data's IdempotencyKey method, if they have one, or the
	// record's place: stream, shard, sequence number and sub-sequence number. A producer that sends again
	// after a lost reply makes a second record in another place, which only a key of its own recognises.
	Key func(v View) (string, error)

	// PayloadKey returns the key of a record from the bytes that Data are decoded from: those of a record of an aggregate, and
	// inflated if Gunzip is set, for this function alone. It is for functions that know no source, such as the Key of an
	// expression of package jmespath, or idempotency.PayloadHash where equal data are the same work. The bytes are a copy, for
	// it to keep and to change. An error that is idempotency.ErrKeyMissing is the same as no key. Any error counts as one that
	// will not get better, since the bytes stay what they are. Nil means that there is none. It excludes Key and KeyOf.
	PayloadKey func(payload []byte) (string, error)

	// Fingerprint returns a fingerprint of what the key stands for, for example DataSHA256. A record with the key of
	// another and a different fingerprint fails with idempotency.ErrFingerprintMismatch, instead of passing for the
	// other. It is stored as it is, so it should be a hash. Nil means none.
	Fingerprint func(v View) (string, error)

	// PayloadFingerprint is Fingerprint from the bytes that PayloadKey gets, such as idempotency.PayloadHash, to which data of
	// the same JSON value are the same, or the Fingerprint of an expression of package jmespath. It excludes Fingerprint.
	PayloadFingerprint func(payload []byte) (string, error)

	// Decode decodes data, of which it may keep the bytes, into v, a pointer to the handler's T. Nil means that a string,
	// []byte or json.RawMessage has the data as they are, and that anything else is decoded as JSON, by the rules of
	// encoding/json. Data that are JSON null then fail, unless T is a pointer, an interface, a map, a slice, or has
	// an UnmarshalJSON of its own.
	Decode func(data []byte, v any) error

	// KeepAggregates hands the records of the Kinesis Producer Library on as they are. By default a record that begins
	// with the library's magic bytes and ends with the right digest is taken apart, and each of its records is one of its
	// own, in the order of its own partition key. Changing this changes the keys of these records, so that those that
	// are delivered again across the change run again.
	KeepAggregates bool

	// Gunzip inflates data that begin with the header of gzip, as those that CloudWatch Logs sends do, before they are
	// decoded. By default they are decoded as they are.
	Gunzip bool

	// MaxInflated is how many bytes data may have after they are inflated, so that a small record does not fill the
	// memory. A record with more fails. 0 means DefaultMaxInflated, 16 MiB; the limit is InflatedLimit, 1 GiB.
	MaxInflated int

	// Watermark replaces Idempotency by one item for the shard, where the mapping's parallelization factor is 1. Nil
	// means that there is none. See AssumeParallelizationFactorOne, which is how to make one.
	Watermark *Watermark

	dataKey any // a func(T) string, see KeyOf
}

func (o *Options) validate(windows bool) error {
	errs := []error{stream.Validate("kinesis", &o.Options, o.Idempotency, payload.KeyOptions{
		Key: o.Key != nil, KeyOf: o.dataKey != nil, PayloadKey: o.PayloadKey != nil,
		Fingerprint: o.Fingerprint != nil, PayloadFingerprint: o.PayloadFingerprint != nil,
	}, windows)}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("kinesis: "+format, args...)) }
	if o.MaxInflated < 0 || o.MaxInflated > InflatedLimit {
		add("Options.MaxInflated is %d, want 0 (for %d) to %d", o.MaxInflated, DefaultMaxInflated, InflatedLimit)
	}
	if o.MaxInflated > 0 && !o.Gunzip {
		add("Options.MaxInflated is set, but Options.Gunzip is not, want both or neither")
	}
	switch {
	case o.Watermark != nil && windows:
		add("Options.Watermark is set, want none in a handler of windows: records behind it would be missing in the state")
	case o.Watermark != nil:
		errs = append(errs, o.Watermark.validate(o))
	}
	return errors.Join(errs...)
}

// maxInflated returns 0 if data are not to be inflated.
func (o *Options) maxInflated() int {
	switch {
	case !o.Gunzip:
		return 0
	case o.MaxInflated == 0:
		return DefaultMaxInflated
	default:
		return o.MaxInflated
	}
}
