package eventbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/eventkey"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// EventBridge tries for 24 hours to deliver an event, and Lambda for six more to run the function
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html and
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). A key lives an hour longer by default.
const keyLife = (24 + 6 + 1) * time.Hour

// KeyOf is an option that takes the key of an event from its decoded detail. T is the handler's: NewHandler returns an
// error for another. An empty key is a missing one, see idempotency.Options.MissingKey.
func KeyOf[T any](key func(T) string) func(*Options) {
	return func(o *Options) { o.detailKey = key }
}

// DetailSHA256 is a fingerprint for Options.Fingerprint: the hash of the detail's JSON, or of all data without an envelope. Of
// a JSON string it is the hash of the text, as with sqs.BodySHA256. JSON of the same value, but in other words, is another one.
func DetailSHA256(v View) (string, error) {
	detail := v.RawDetail()
	if text, ok := envelope.String(string(detail)); ok {
		detail = []byte(text)
	}
	sum := sha256.Sum256(detail)
	return hex.EncodeToString(sum[:]), nil
}

// newNaming returns how events are decoded and named.
func newNaming[T any](o *Options) (*stream.Naming[*Event[T]], error) {
	decoder := newDecoder[T](o.Decode)
	n := &stream.Naming[*Event[T]]{
		Source: "eventbridge", Noun: "event", Batch: &o.Options, Guard: o.Idempotency,
		ID:     func(v *Event[T]) string { return v.e.id },
		Decode: decoder.decode, DecodeMayRecover: o.Decode != nil,
		Own: func(v *Event[T]) (string, error) {
			if v.e.own == "" {
				return "", fmt.Errorf("%w: nor has it an id of its own", idempotency.ErrKeyMissing)
			}
			return v.e.own, nil
		},
	}
	switch {
	case o.Fingerprint != nil:
		n.Fingerprint = func(v *Event[T]) (string, error) { return o.Fingerprint(v.View) }
	case o.PayloadFingerprint != nil:
		n.Fingerprint = stream.OfPayload(o.PayloadFingerprint, detailOf[T])
	}
	var ofUser func(*Event[T]) (string, error)
	switch {
	case o.Key != nil:
		ofUser = func(v *Event[T]) (string, error) { return o.Key(v.View) }
	case o.PayloadKey != nil:
		ofUser = stream.OfPayload(o.PayloadKey, detailOf[T])
	}
	if ofUser != nil {
		n.Key = func(v *Event[T]) (string, error) {
			key, err := ofUser(v)
			return o.keyOfRun(v.e, key), err
		}
		return n, nil
	}
	key, err := payload.Key[T](o.detailKey)
	if err != nil {
		return nil, fmt.Errorf("eventbridge: %w", err)
	}
	if key != nil {
		n.Key, n.KeyOfData = func(v *Event[T]) (string, error) { return o.keyOfRun(v.e, key(&v.Detail)), nil }, true
	}
	return n, nil
}

// detailOf returns the bytes that an own Decode gets.
func detailOf[T any](v *Event[T]) ([]byte, error) {
	if v.e.detail == "" {
		return nil, errors.New("detail is missing, want one")
	}
	return payload.Text(v.e.detail)
}

// keyOfRun makes the key of one run of an event: a replay that is to run again has another one.
func (o *Options) keyOfRun(e *event, key string) string {
	if !o.RunReplays {
		return key
	}
	if name := e.replay(); name != "" {
		return idempotency.JoinKey("replay-name", name, key) // still none if key is none
	}
	return key
}

// ownKey returns EventBridge's own identity of the event. The error is an idempotency.ErrKeyMissing that says why it has none.
func (e *event) ownKey() (string, error) {
	switch {
	case e.enveloped:
		m := eventkey.Members{ID: e.id, Source: e.source, DetailType: e.detailType, Resources: e.resources, Time: e.time}
		return m.Key()
	case e.system == "":
		return "", fmt.Errorf("%w: data without an envelope, which has detail-type, source and detail, have no id, want %s, "+
			"or a subscriber that delivers them WITH_METADATA", idempotency.ErrKeyMissing, eventkey.Own)
	case e.id == "":
		return "", fmt.Errorf("%w: the metadata have no %s, want one, or %s", idempotency.ErrKeyMissing, systemID, eventkey.Own)
	case e.source == "":
		return idempotency.JoinKey(systemID, e.id), nil // published as raw data, which have no source
	}
	return idempotency.JoinKey(e.source, e.id), nil
}
