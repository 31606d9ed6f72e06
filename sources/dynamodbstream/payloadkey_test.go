package dynamodbstream_test

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

func payloadKey(expression string) func(*dynamodbstream.Options) {
	return func(o *dynamodbstream.Options) { o.PayloadKey = jmespath.MustCompile(expression).Key }
}

// The payload is the change as the stream has it.
func TestPayloadKey(t *testing.T) {
	testKey[order](t, "expression", "o1#v7", payloadKey("[NewImage.id.S, NewImage.note.S]"))
	testKey[keyed](t, "expression of the stream's own", sequence(1), payloadKey("SequenceNumber"))
}

// Cases 15 and 16: a change without the parts of its key fails, and stops those of its item.
func TestPayloadErrors(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), payloadKey("NewImage.note.S"), func(o *dynamodbstream.Options) {
		o.PayloadFingerprint = jmespath.MustCompile("Keys.id.S").Fingerprint
	})
	wantCheckpoint(t, t.Context(), h, event(record{ID: "a", Note: "v1", N: 1}, record{ID: "a", Note: "v1", N: 2}), "")
	wantCheckpoint(t, t.Context(), h, event(record{ID: "b", Note: "v1", N: 3}), sequence(3)) // another item's
	wantCheckpoint(t, t.Context(), h, event(record{ID: "a", Note: "v2", N: 4, Operation: "REMOVE"}), sequence(4))
	w.want(t, "v1")
}

// All of a change is another one for each, since its sequence number is in it.
func TestPayloadHashOfAChange(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), func(o *dynamodbstream.Options) { o.PayloadKey = idempotency.PayloadHash })
	change := record{ID: "a", Note: "v1", N: 1}.json()
	for _, payload := range [][]byte{rawEvent(change), rawEvent(change), event(record{ID: "a", Note: "v1", N: 2})} {
		wantCheckpoint(t, t.Context(), h, payload, "")
	}
	w.want(t, "v1", "v1")
}

func TestPayloadKeyOptionErrors(t *testing.T) {
	both := func(o *dynamodbstream.Options) {
		o.Key = func(dynamodbstream.View) (string, error) { return "k", nil }
		o.Fingerprint = o.Key
		o.PayloadKey, o.PayloadFingerprint = idempotency.PayloadHash, idempotency.PayloadHash
	}
	_, err := dynamodbstream.NewHandler((&worker{}).handle, guarded(t), both)
	wantError(t, err, "dynamodbstream: both Options.Key and Options.PayloadKey are set, want one",
		"dynamodbstream: both Options.Fingerprint and Options.PayloadFingerprint are set, want one")
	_, err = dynamodbstream.NewWindowHandler(count, finishNothing, guarded(t), both)
	wantError(t, err, "dynamodbstream: Options.PayloadKey is set, want none in a handler of windows")
}
