package kinesis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// keyLife is how long keys live by default: a day longer than the seven days to which the retention of a stream was
// limited for long. A stream can keep records up to 365 days
// (https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html); those need an expiry of their own.
const keyLife = 8 * 24 * time.Hour

// KeyOf is an option that takes the key of a record from its decoded data. T is the handler's: NewHandler returns an
// error for another. An empty key is a missing one, see idempotency.Options.MissingKey.
func KeyOf[T any](key func(T) string) func(*Options) {
	return func(o *Options) { o.dataKey = key }
}

// DataSHA256 is a fingerprint for Options.Fingerprint: the hash of the data's bytes, as they were put.
func DataSHA256(v View) (string, error) {
	sum := sha256.Sum256(v.RawData())
	return hex.EncodeToString(sum[:]), nil
}

// newNaming returns how records are decoded and named.
func newNaming[T any](o *Options) (*stream.Naming[*Record[T]], error) {
	decoder := newDecoder[T](o)
	n := &stream.Naming[*Record[T]]{
		Source: "kinesis", Noun: "record", Batch: &o.Options, Guard: o.Idempotency,
		ID:     func(v *Record[T]) string { return v.r.id },
		Decode: decoder.decode, DecodeMayRecover: o.Decode != nil,
		Own: func(v *Record[T]) (string, error) { return v.r.ownKey() },
	}
	switch {
	case o.Fingerprint != nil:
		n.Fingerprint = func(v *Record[T]) (string, error) { return o.Fingerprint(v.View) }
	case o.PayloadFingerprint != nil:
		n.Fingerprint = stream.OfPayload(o.PayloadFingerprint, decoder.payload)
	}
	switch {
	case o.Key != nil:
		n.Key = func(v *Record[T]) (string, error) { return o.Key(v.View) }
		return n, nil
	case o.PayloadKey != nil:
		n.Key = stream.OfPayload(o.PayloadKey, decoder.payload)
		return n, nil
	}
	key, err := payload.Key[T](o.dataKey)
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w", err)
	}
	if key != nil {
		n.Key, n.KeyOfData = func(v *Record[T]) (string, error) { return key(&v.Data), nil }, true
	}
	return n, nil
}

// ownKey is the record's place in the stream: the stream's ARN, and the eventID, which names the shard as well. A
// sequence number alone is not enough: it is one of its shard.
func (r *record) ownKey() (string, error) {
	arn, id := streamARN(r.arn), r.eventID()
	shard, sequence, ok := strings.Cut(id, ":")
	switch {
	case arn == "":
		return "", fmt.Errorf("%w: eventSourceARN is missing, want the stream's", idempotency.ErrKeyMissing)
	case !ok || shard == "" || sequence == "" || sequence != r.sequence:
		return "", fmt.Errorf("%w: eventID is %.200q and the sequence number %.200q, want the eventID to be the shard's ID, "+
			"a colon and the sequence number", idempotency.ErrKeyMissing, id, r.sequence)
	}
	if r.sub == whole {
		return idempotency.JoinKey(arn, id), nil
	}
	return idempotency.JoinKey(arn, id, r.id[len(id)+1:]), nil
}
