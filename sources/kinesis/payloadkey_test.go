package kinesis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
	"github.com/oncekit/oncekit/sources/kinesis"
)

func payloadKey(f func([]byte) (string, error)) func(*kinesis.Options) {
	return func(o *kinesis.Options) { o.PayloadKey = f }
}

func payloadFingerprint(o *kinesis.Options) { o.PayloadFingerprint = idempotency.PayloadHash }

// The payload is what data are decoded from: each record of an aggregate, inflated.
func TestPayloadKey(t *testing.T) {
	byID := payloadKey(jmespath.MustCompile("id").Key)
	testKey[click](t, "expression", "c1", byID)
	testKey[string](t, "expression of data that are not decoded", "c1", byID)
	testKey[valueKeyed](t, "expression before the method", "c1", byID)
	testKey[string](t, "parts", "business#c1", payloadKey(jmespath.MustCompile("[k, id]").Key))
	payload := event(record{Data: deflate(`{"id":"a"}`), Key: "p", N: 1}, record{Data: aggregate(`{"id":"b"}`, deflate(`{"id":"c"}`)), Key: "p", N: 2})
	if diff := cmp.Diff([]string{"a", "b", "c"}, keysOf[click](t, payload, byID, gunzip(0))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Cases 16 and 17.
func TestPayloadFingerprint(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), payloadKey(jmespath.MustCompile("id").Key), payloadFingerprint)
	for n, data := range []string{`{"id":"a","n":1}`, ` {"n":1e0,"id":"\u0061"}`} {
		wantCheckpoint(t, t.Context(), h, event(record{Data: data, Key: "p", N: n + 1}), "")
	}
	wantCheckpoint(t, t.Context(), h, event(record{Data: `{"id":"a","n":2}`, Key: "p", N: 3}), sequence(3))
	w.want(t, `{"id":"a","n":1}`)
}

// What is wrong with the bytes stays wrong, so that it is given up at once where there is a sink and nobody counts. The
// error of a Key of one's own may be of another kind.
func TestPayloadKeyThatStaysWrong(t *testing.T) {
	down := errors.New("the service is down")
	for name, test := range map[string]struct {
		option func(*kinesis.Options)
		data   string
		given  bool
	}{
		"no JSON":     {payloadKey(jmespath.MustCompile("id").Key), "x", true},
		"no key":      {payloadKey(jmespath.MustCompile("id").Key), "{}", true},
		"fingerprint": {payloadFingerprint, `{"a":1,"a":2}`, true},
		"no gzip":     {func(o *kinesis.Options) { payloadFingerprint(o); gunzip(0)(o) }, "\x1f\x8b\x08", true},
		"Key":         {func(o *kinesis.Options) { o.Key = func(kinesis.View) (string, error) { return "", down } }, "x", false},
		"Fingerprint": {func(o *kinesis.Options) { o.Fingerprint = func(kinesis.View) (string, error) { return "", down } }, "x", false},
		"panic":       {payloadKey(func([]byte) (string, error) { panic("bug") }), "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			var given atomic.Int32
			w := &worker{}
			h := newHandler(t, w.handle, guarded(t), test.option, func(o *kinesis.Options) {
				o.DeadLetter = func(context.Context, *batch.Record, error) error { given.Add(1); return nil }
			})
			checkpoint, want := sequence(1), int32(0)
			if test.given {
				checkpoint, want = "", 1
			}
			wantCheckpoint(t, t.Context(), h, event(record{Data: test.data, Key: "p", N: 1}), checkpoint)
			if given.Load() != want {
				t.Errorf("%d records were given up, want %d", given.Load(), want)
			}
			w.want(t)
		})
	}
}

// A function may do with its bytes what it likes: those of an aggregate are the text of all of its records.
func TestPayloadKeyOwnsItsBytes(t *testing.T) {
	spoil := func(payload []byte) (string, error) {
		key := string(payload)
		for i := range payload {
			payload[i] = '#'
		}
		return key, nil
	}
	got := keysOf[string](t, event(record{Data: aggregate("a0", "b1"), Key: "p", N: 1}, record{Data: "c2", Key: "p", N: 2}), payloadKey(spoil),
		func(o *kinesis.Options) { o.PayloadFingerprint = spoil })
	if diff := cmp.Diff([]string{"a0", "b1", "c2"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), payloadKey(spoil))
	wantCheckpoint(t, t.Context(), h, event(record{Data: aggregate("a0", "b1"), Key: "p", N: 1}), "")
	w.want(t, "a0", "b1")
}

func TestPayloadKeyOptionErrors(t *testing.T) {
	both := func(o *kinesis.Options) {
		o.Key = func(kinesis.View) (string, error) { return "k", nil }
		o.PayloadKey, o.Fingerprint, o.PayloadFingerprint = idempotency.PayloadHash, kinesis.DataSHA256, idempotency.PayloadHash
	}
	_, err := kinesis.NewHandler((&worker{}).handle, guarded(t), both)
	wantError(t, err, "kinesis: both Options.Key and Options.PayloadKey are set, want one",
		"kinesis: both Options.Fingerprint and Options.PayloadFingerprint are set, want one")
	_, err = kinesis.NewHandler((&worker{}).handle, both)
	wantError(t, err, "kinesis: Options.PayloadKey is set, but Options.Idempotency is nil", "kinesis: Options.PayloadFingerprint is set, but")
	fold := func(_ context.Context, state int, _ *kinesis.Record[string]) (int, error) { return state, nil }
	_, err = kinesis.NewWindowHandler(fold, func(context.Context, *kinesis.Window[int]) error { return nil }, guarded(t), both)
	wantError(t, err, "kinesis: Options.PayloadKey is set, want none in a handler of windows")
}
