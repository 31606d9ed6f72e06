package dynamodbstream

import (
	"fmt"
	"reflect"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// keyLife is how long keys live by default: an hour longer than a stream keeps its records
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html).
const keyLife = 25 * time.Hour

// KeyOf is an option that takes the key of a change from its decoded items. T is the handler's: NewHandler returns an
// error for another. An empty key is a missing one, see idempotency.Options.MissingKey. A key must tell the changes of
// an item apart that are to run each, by a version number of the item's, for example.
func KeyOf[T any](key func(*Change[T]) string) func(*Options) {
	return func(o *Options) { o.changeKey = key }
}

// newNaming returns how changes are decoded and named.
func newNaming[T any](o *Options) (*stream.Naming[*Change[T]], error) {
	decoder := newDecoder[T]()
	n := &stream.Naming[*Change[T]]{
		Source: "dynamodbstream", Noun: "change", Batch: &o.Options, Guard: o.Idempotency,
		ID:     func(c *Change[T]) string { return c.r.id },
		Decode: func(c *Change[T]) error { return decoder.decode(c.r, c) },
		Own:    func(c *Change[T]) (string, error) { return c.r.ownKey() },
	}
	change := func(c *Change[T]) ([]byte, error) { return []byte(c.r.dynamodb), nil }
	switch {
	case o.Fingerprint != nil:
		n.Fingerprint = func(c *Change[T]) (string, error) { return o.Fingerprint(c.View) }
	case o.PayloadFingerprint != nil:
		n.Fingerprint = stream.OfPayload(o.PayloadFingerprint, change)
	}
	switch key, ok := o.changeKey.(func(*Change[T]) string); {
	case o.Key != nil:
		n.Key = func(c *Change[T]) (string, error) { return o.Key(c.View) }
	case o.PayloadKey != nil:
		n.Key = stream.OfPayload(o.PayloadKey, change)
	case o.changeKey == nil:
	case !ok:
		return nil, fmt.Errorf("dynamodbstream: KeyOf has a %T, want a %v, as the handler gets such changes",
			o.changeKey, reflect.TypeFor[func(*Change[T]) string]())
	case key == nil:
		return nil, fmt.Errorf("dynamodbstream: KeyOf has a nil function, want a %v", reflect.TypeFor[func(*Change[T]) string]())
	default:
		n.Key, n.KeyOfData = func(c *Change[T]) (string, error) { return key(c), nil }, true
	}
	return n, nil
}

// ownKey is the stream's ARN and the eventID.
func (r *record) ownKey() (string, error) {
	switch {
	case r.arn == "":
		return "", fmt.Errorf("%w: eventSourceARN is missing, want the stream's", idempotency.ErrKeyMissing)
	case r.id == "":
		return "", fmt.Errorf("%w: eventID is missing, want the change's", idempotency.ErrKeyMissing)
	}
	return idempotency.JoinKey(r.arn, r.id), nil
}
