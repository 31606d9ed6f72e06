package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// SQS keeps a message up to 14 days
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html). A key lives a day
// longer by default.
const (
	messageLife = 14 * 24 * time.Hour
	keyLife     = messageLife + 24*time.Hour
)

// KeyOf is an option that takes the key of a message from its decoded body. T is the handler's: NewHandler returns an
// error for another. An empty key is a missing one, see idempotency.Options.MissingKey.
func KeyOf[T any](key func(T) string) func(*Options) {
	return func(o *Options) { o.bodyKey = key }
}

// BodySHA256 is a fingerprint for Options.Fingerprint: the hash of the bytes that the body is decoded from, which is what
// Options.Unwrap found. A body that is JSON of the same value, but in other words, is another one.
func BodySHA256(v View) (string, error) {
	sum := sha256.Sum256([]byte(v.Inner()))
	return hex.EncodeToString(sum[:]), nil
}

// keyFunction returns the function that names messages, or nil for the messageId.
func keyFunction[T any](o *Options) (func(*Message[T]) (string, error), error) {
	switch {
	case o.Key != nil:
		return func(m *Message[T]) (string, error) { return o.Key(m.View) }, nil
	case o.PayloadKey != nil:
		return func(m *Message[T]) (string, error) { return m.r.ofPayload(o.PayloadKey) }, nil
	}
	key, err := payload.Key[T](o.bodyKey)
	if err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	if key == nil {
		return nil, nil
	}
	return func(m *Message[T]) (string, error) { return key(&m.Body), nil }, nil
}

// identify names the message to the guard.
func (h *Handler[T]) identify(m *Message[T]) (pipeline.Identity, error) {
	identity := pipeline.Identity{Key: m.r.ownKey(), Own: true}
	var err error
	if h.key != nil {
		identity.Own = false
		if identity.Key, err = h.key(m); err != nil {
			if !h.runsUnprotected(err) {
				return identity, fmt.Errorf("sqs: key of message %q: %w", m.ID(), err)
			}
			identity.Key = ""
		}
	}
	switch {
	case h.options.Fingerprint != nil:
		identity.Fingerprint, err = h.options.Fingerprint(m.View)
	case h.options.PayloadFingerprint != nil:
		identity.Fingerprint, err = m.r.ofPayload(h.options.PayloadFingerprint)
	default:
		return identity, nil
	}
	if err != nil {
		return identity, fmt.Errorf("sqs: fingerprint of message %q: %w", m.ID(), err)
	}
	return identity, nil
}

// ofPayload returns what f makes of the bytes that the body is decoded from.
func (r *record) ofPayload(f func([]byte) (string, error)) (string, error) {
	data, err := payload.Text(r.body)
	if err == nil && r.inner != nil {
		data, err = payload.Text(r.inner.value)
	}
	if err != nil {
		return "", err
	}
	return f(data)
}

// runsUnprotected reports whether a message without a key, as err may say, runs all the same.
func (h *Handler[T]) runsUnprotected(err error) bool {
	return errors.Is(err, idempotency.ErrKeyMissing) &&
		h.options.Idempotency.Options().MissingKey == idempotency.MissingKeyRunsUnprotected
}
