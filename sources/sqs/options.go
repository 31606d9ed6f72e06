package sqs

import (
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// Options are the options of a Handler. The zero value is a good default, but for Idempotency.
type Options struct {
	// In middleware, hooks and DeadLetter, Record.Value is the handler's *Message[T]. If the body could not be decoded,
	// or did not have to be, as for a replay, Body is not set there and RawBody has the text. Middleware does not run for
	// either.
	//
	// MaxAttempts counts receives, as SQS does: also those that were skipped, in progress elsewhere or throttled. A
	// message behind a failing one of its FIFO group may so be given up at its first failure. With
	// idempotency.Options.CountAttempts it counts starts of the handler instead. A body that cannot be decoded or a
	// missing key is given up at MaxAttempts, a key that was used with another payload at once.
	batch.Options

	// Idempotency is the guard that keeps finished messages from running again. Nil means that there is none: a message
	// runs as often as it is delivered. A guard without an expiry of its own keeps keys for 15 days, a day longer than
	// SQS keeps a message.
	Idempotency *idempotency.Guard

	// Key returns the key of a message, from the record as it was delivered. It is computed after the body is decoded
	// and before the handler runs. Nil means KeyOf, if that is set, or the body's IdempotencyKey method, if it has one,
	// or the messageId, for a record of an S3 event with its number. A key must not depend on what changes with each
	// delivery: receipt handle, receive count, time. An error that is idempotency.ErrKeyMissing is the same as no key.
	// SNSMessageID, EventBridgeID and S3ObjectKey take it from what Unwrap opened.
	Key func(v View) (string, error)

	// PayloadKey returns the key of a message from its payload, which is what Body is decoded from: the body, or what
	// Unwrap found in it. It is for functions that know no source, such as the Key of an expression of package jmespath, or
	// idempotency.PayloadHash where equal payloads are the same work. The bytes are a copy, for it to keep and to change. An
	// error that is idempotency.ErrKeyMissing is the same as no key. Nil means that there is none. It excludes Key and KeyOf.
	PayloadKey func(payload []byte) (string, error)

	// Fingerprint returns a fingerprint of what the key stands for, for example BodySHA256. A message with the key of
	// another and a different fingerprint fails with idempotency.ErrFingerprintMismatch, instead of passing for the
	// other. It is stored as it is, so it should be a hash. Nil means none.
	Fingerprint func(v View) (string, error)

	// PayloadFingerprint is Fingerprint from the bytes that PayloadKey gets, such as idempotency.PayloadHash, to which
	// payloads of the same JSON value are the same, or the Fingerprint of an expression of package jmespath. It excludes
	// Fingerprint.
	PayloadFingerprint func(payload []byte) (string, error)

	// Decode decodes a body, or what Unwrap found in it, into v, a pointer to the handler's T. It may keep the bytes. Nil
	// means that a string, []byte or json.RawMessage is the body as it is, and that anything else is decoded as JSON, by
	// the rules of encoding/json. A body that is JSON null then fails, unless T is a pointer, an interface, a map, a slice,
	// or has an UnmarshalJSON of its own.
	Decode func(body []byte, v any) error

	// Unwrap names the envelopes that bodies are in, the outermost first, as in []Envelope{SNS, S3}. Body is decoded from
	// what is inside of all of them. A body that has another form fails, and it alone does. Nil means that bodies are
	// decoded as they are, also those that look like an envelope.
	Unwrap []Envelope

	// Visibility changes when failed messages come back: those whose error is a batch.RetryAfter, after its delay, and
	// those that are in progress elsewhere, when they are free. On a FIFO queue the rest of such a message's group comes
	// back with it. Nil means that all failed messages come back when the
	// queue's visibility timeout ends. The function's role needs sqs:ChangeMessageVisibility for it.
	Visibility Visibility

	bodyKey any // a func(T) string, see KeyOf
}

func (o *Options) validate() error {
	var errs []error
	if err := o.Options.Validate(); err != nil {
		errs = append(errs, err)
	}
	if f, ok := o.Visibility.(VisibilityFunc); ok && f == nil {
		errs = append(errs, errors.New("sqs: Options.Visibility is a nil VisibilityFunc, want a function or nil"))
	}
	if err := validateUnwrap(o.Unwrap); err != nil {
		errs = append(errs, err)
	}
	keys := payload.KeyOptions{
		Key: o.Key != nil, KeyOf: o.bodyKey != nil, PayloadKey: o.PayloadKey != nil,
		Fingerprint: o.Fingerprint != nil, PayloadFingerprint: o.PayloadFingerprint != nil,
	}
	errs = append(errs, keys.Validate("sqs")...)
	if o.Idempotency == nil {
		for _, name := range keys.Names() {
			errs = append(errs, fmt.Errorf("sqs: %s is set, but Options.Idempotency is nil, want a guard or neither", name))
		}
	}
	return errors.Join(errs...)
}
