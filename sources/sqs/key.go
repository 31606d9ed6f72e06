package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"time"

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

// BodySHA256 is a fingerprint for Options.Fingerprint: the hash of the body's bytes. A body that is JSON of the same
// value, but in other words, is another one.
func BodySHA256(v View) (string, error) {
	sum := sha256.Sum256([]byte(v.RawBody()))
	return hex.EncodeToString(sum[:]), nil
}

// keyed is a payload that names its own key.
type keyed interface{ IdempotencyKey() string }

// keyFunction returns the function that names messages, or nil for the messageId.
func keyFunction[T any](o *Options) (func(*Message[T]) (string, error), error) {
	switch {
	case o.Key != nil && o.bodyKey != nil:
		return nil, fmt.Errorf("sqs: both KeyOf and Options.Key are set, want one")
	case o.Key != nil:
		return func(m *Message[T]) (string, error) { return o.Key(m.View) }, nil
	case o.bodyKey != nil:
		key, ok := o.bodyKey.(func(T) string)
		switch {
		case !ok:
			return nil, fmt.Errorf("sqs: KeyOf has a %T, want a func(%v) string, as the handler's messages have such a body",
				o.bodyKey, reflect.TypeFor[T]())
		case key == nil:
			return nil, fmt.Errorf("sqs: KeyOf has a nil function, want a func(%v) string", reflect.TypeFor[T]())
		}
		return func(m *Message[T]) (string, error) { return key(m.Body), nil }, nil
	}
	t := reflect.TypeFor[T]()
	switch of := reflect.TypeFor[keyed](); {
	case t.Implements(of):
		return func(m *Message[T]) (string, error) { return any(m.Body).(keyed).IdempotencyKey(), nil }, nil
	case reflect.PointerTo(t).Implements(of):
		return func(m *Message[T]) (string, error) { return any(&m.Body).(keyed).IdempotencyKey(), nil }, nil
	}
	return nil, nil
}

// identify names the message to the guard.
func (h *Handler[T]) identify(m *Message[T]) (pipeline.Identity, error) {
	identity := pipeline.Identity{Key: m.ID(), Own: true}
	var err error
	if h.key != nil {
		identity.Own = false
		if identity.Key, err = h.key(m); err != nil {
			return identity, fmt.Errorf("sqs: key of message %q: %w", m.ID(), err)
		}
	}
	if h.options.Fingerprint != nil {
		if identity.Fingerprint, err = h.options.Fingerprint(m.View); err != nil {
			return identity, fmt.Errorf("sqs: fingerprint of message %q: %w", m.ID(), err)
		}
	}
	return identity, nil
}

// warnOfAge says once that a message is older than its key lives: a redelivery of it may run again.
func (h *Handler[T]) warnOfAge(v View) {
	if h.expiry == 0 || h.warned.Load() {
		return
	}
	sent := v.SentAt()
	if sent.IsZero() || time.Since(sent) <= h.expiry || h.warned.Swap(true) {
		return
	}
	warn(h.logger(), "message is older than its idempotency key lives, so a redelivery may run again",
		"record", v.ID(), "sent", sent, "expiry", h.expiry)
}
