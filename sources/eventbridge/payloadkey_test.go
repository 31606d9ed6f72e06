package eventbridge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

func payloadKey(f func([]byte) (string, error)) func(*eventbridge.Options) {
	return func(o *eventbridge.Options) { o.PayloadKey = f }
}

// The payload is the detail, or the text of one that is a string, or all data without an envelope.
func TestPayloadKey(t *testing.T) {
	hash, err := idempotency.PayloadHash([]byte(`{"amount":1,"id":"o1"}`))
	if err != nil {
		t.Fatal(err)
	}
	byID := jmespath.MustCompile("id").Key
	replays := func(o *eventbridge.Options) { o.RunReplays = true }
	for _, test := range []struct {
		name, event string
		key         func([]byte) (string, error)
		option      func(*eventbridge.Options)
		want        string
	}{
		{"expression", placed(1, "o1"), byID, nil, "o1"},
		{"hash", placed(1, "o1"), idempotency.PayloadHash, nil, hash},
		{"string", change(placed(1, "o1"), `{"id":"o1","amount":1}`, quote(`{"amount": 1,"id":"o1"}`)), idempotency.PayloadHash, nil, hash},
		{"raw data", `{"id":"o1"}`, byID, nil, "o1"},
		{"replay", change(placed(1, "o1"), `"version"`, `"replay-name":"fix","version"`), byID, nil, "o1"},
		{"replay that runs again", change(placed(1, "o1"), `"version"`, `"replay-name":"fix","version"`), byID, replays, "replay-name#fix#o1"},
	} {
		w, r := &worker{}, &results{}
		h := newHandler(t, w.handle, guarded(t), r.option, payloadKey(test.key), test.option)
		wantDone(t, t.Context(), h, []byte(test.event))
		wantDone(t, t.Context(), h, []byte(test.event))
		if diff := cmp.Diff([]string{test.want, test.want}, r.keys); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", test.name, diff)
		}
		w.wantOrder(t, "o1")
	}
}

// Cases 15 to 17.
func TestPayloadErrors(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), payloadKey(jmespath.MustCompile("id").Key),
		func(o *eventbridge.Options) { o.PayloadFingerprint = idempotency.PayloadHash })
	wantDone(t, t.Context(), h, []byte(placed(1, "o1")))
	wantDone(t, t.Context(), h, []byte(change(placed(2, "o1"), `{"id":"o1","amount":2}`, `{ "amount":1.0,"id":"\u006f1"}`)))
	e := wantFailed(t, t.Context(), h, []byte(placed(3, "o1")), 1, 1)
	if !errors.Is(e, idempotency.ErrFingerprintMismatch) {
		t.Errorf("error is %v, want %v", e, idempotency.ErrFingerprintMismatch)
	}
	for detail, want := range map[string]string{
		`{"id":""}`:           "key is missing",
		`"{"`:                 "payload ends within a value",
		`"\ud800"`:            "it has broken UTF-8 or half a surrogate pair",
		`{"id":"a","id":"b"}`: "payload has two members of one name",
	} {
		event := change(placed(4, "o4"), `{"id":"o4","amount":4}`, detail)
		wantFailed(t, t.Context(), h, []byte(event), 1, 1, "eventbridge: key of event "+quote(uuid(4))+": ", want)
	}
	wantFailed(t, t.Context(), h, []byte(change(placed(5, "o5"), `,"detail":{"id":"o5","amount":5}`, "")), 1, 1)
	w.wantOrder(t, "o1")
}

// What is wrong with the bytes stays wrong, so that it is given up at once where there is a sink and nobody counts.
func TestPayloadKeyThatStaysWrong(t *testing.T) {
	for _, option := range []func(*eventbridge.Options){
		payloadKey(jmespath.MustCompile("lower(amount)").Key),
		func(o *eventbridge.Options) { o.PayloadFingerprint = jmespath.MustCompile("lower(amount)").Fingerprint },
	} {
		w, given := &worker{}, 0
		h := newHandler(t, w.handle, guarded(t), option, func(o *eventbridge.Options) {
			o.DeadLetter = func(context.Context, *batch.Record, error) error { given++; return nil }
		})
		wantDone(t, t.Context(), h, []byte(placed(1, "o1")))
		w.wantOrder(t)
		if given != 1 {
			t.Errorf("%d events were given up, want 1", given)
		}
	}
}

func TestPayloadKeyOptionErrors(t *testing.T) {
	both := func(o *eventbridge.Options) {
		o.Key = func(eventbridge.View) (string, error) { return "k", nil }
		o.PayloadKey, o.Fingerprint, o.PayloadFingerprint = idempotency.PayloadHash, eventbridge.DetailSHA256, idempotency.PayloadHash
	}
	_, err := eventbridge.NewHandler((&worker{}).handle, guarded(t), both, byOrder())
	wantError(t, err, "eventbridge: both KeyOf and Options.PayloadKey are set, want one",
		"eventbridge: both Options.Key and Options.PayloadKey are set, want one",
		"eventbridge: both Options.Fingerprint and Options.PayloadFingerprint are set, want one")
	_, err = eventbridge.NewHandler((&worker{}).handle, both)
	wantError(t, err, "eventbridge: Options.PayloadKey is set, but Options.Idempotency is nil", "eventbridge: Options.PayloadFingerprint is set, but")
}
