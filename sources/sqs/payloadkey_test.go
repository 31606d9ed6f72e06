package sqs_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
	"github.com/oncekit/oncekit/sources/sqs"
)

func payloadKey(f func([]byte) (string, error)) func(*sqs.Options) {
	return func(o *sqs.Options) { o.PayloadKey = f }
}

func TestPayloadKey(t *testing.T) {
	const body = `{"k":"business", "id":"o1", "n":[1.0]}`
	hash, err := idempotency.PayloadHash([]byte(`{"n":[1],"id":"o1","k":"business"}`))
	if err != nil {
		t.Fatal(err)
	}
	byID := payloadKey(jmespath.MustCompile("id").Key)
	testKey[order](t, "expression", body, "o1", byID)
	testKey[string](t, "expression of a body that is not decoded", body, "o1", byID)
	testKey[valueKeyed](t, "expression before the method", body, "o1", byID)
	testKey[string](t, "parts", body, idempotency.JoinKey("business", "o1"), payloadKey(jmespath.MustCompile("[k, id]").Key))
	testKey[string](t, "hash", body, hash, payloadKey(idempotency.PayloadHash))
	testKey[string](t, "own function", body, strconv.Itoa(len(body)), payloadKey(func(payload []byte) (string, error) {
		return strconv.Itoa(len(payload)), nil
	}))
	unwrapped := func(envelopes ...sqs.Envelope) func(*sqs.Options) {
		return func(o *sqs.Options) { o.Unwrap = envelopes }
	}
	const event = `{"version":"0","id":"e1","source":"s","detail-type":"Placed","detail":{"id":"o2"}}`
	testKey[order](t, "what was unwrapped", event, "o2", byID, unwrapped(sqs.EventBridge))
	testKey[order](t, "what was unwrapped of a string", `{"Type":"Notification","MessageId":"s1","TopicArn":"t","Message":"{\"id\":\"o\\u0033\"}"}`, "o3",
		byID, unwrapped(sqs.SNS))
}

// Case 17 and 16: a body of the same value is a duplicate, whatever its white space, and another one is a mismatch.
func TestPayloadFingerprint(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), payloadKey(jmespath.MustCompile("id").Key), func(o *sqs.Options) {
		o.PayloadFingerprint = idempotency.PayloadHash
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: `{"id":"o1","amount":1}`}))
	wantFailures(t, t.Context(), h, event(message{ID: "m2", Body: ` {"amount":1.0, "id":"o\u0031"}`}))
	wantFailures(t, t.Context(), h, event(message{ID: "m3", Body: `{"id":"o1","amount":2}`}), "m3")
	w.wantOrder(t, "m1")
}

// A message whose payload has no key fails alone, or runs unprotected; one whose payload is broken fails in any case.
func TestPayloadKeyMissing(t *testing.T) {
	payload := event(message{ID: "none", Body: `{}`}, message{ID: "null", Body: `{"id":null}`}, message{ID: "broken", Body: `{"id":`},
		message{ID: "twice", Body: `{"id":"a","id":"b"}`}, message{ID: "fine", Body: `{"id":"a"}`})
	halves := strings.ReplaceAll(string(event(message{ID: "half", Body: `{"id":"HALF"}`})), "HALF", `\ud800`)
	for _, isUnprotected := range []bool{false, true} {
		w := &worker{}
		policy := func(o *idempotency.Options) {
			if isUnprotected {
				o.MissingKey = idempotency.MissingKeyRunsUnprotected
			}
		}
		h := newHandler(t, w.handle, guarded(t, policy), payloadKey(jmespath.MustCompile("id").Key))
		failed, ran := []string{"none", "null", "broken", "twice"}, []string{"fine"}
		if isUnprotected {
			failed, ran = []string{"broken", "twice"}, []string{"none", "null", "fine"}
		}
		wantFailures(t, t.Context(), h, payload, failed...)
		w.want(t, ran...)
		wantFailures(t, t.Context(), h, []byte(halves), "half") // which would have one key with another half
		w.want(t)
	}
}

// What a function does to its bytes is seen by nobody, and its panic is its message's failure.
func TestPayloadKeyOwnsItsBytes(t *testing.T) {
	const body = `{"id":"o1"}`
	var kept [][]byte
	spoil := func(payload []byte) (string, error) {
		got := string(payload)
		for i := range payload {
			payload[i] = '#'
		}
		kept = append(kept, payload)
		if got != body {
			return "", errors.New("payload is " + got)
		}
		return "k", nil
	}
	seen := ""
	h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error { seen = m.Body + m.RawBody(); return nil }, guarded(t),
		payloadKey(spoil), func(o *sqs.Options) { o.PayloadFingerprint = spoil })
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
	if seen != body+body || len(kept) != 2 || &kept[0][0] == &kept[1][0] {
		t.Errorf("handler saw %q, functions %q, want the body and two copies", seen, kept)
	}
	w := &worker{}
	h = newHandler(t, w.handle, guarded(t), payloadKey(func(payload []byte) (string, error) { return string(payload[1:]), nil }))
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: ""}, message{ID: "m2", Body: "xy"}), "m1")
	w.want(t, "m2")
}

func TestPayloadKeyOptionErrors(t *testing.T) {
	all := func(o *sqs.Options) {
		o.Key, o.PayloadKey = sqs.SNSMessageID, idempotency.PayloadHash
		o.Fingerprint, o.PayloadFingerprint = sqs.BodySHA256, idempotency.PayloadHash
	}
	handle := func(context.Context, *sqs.Message[order]) error { return nil }
	_, err := sqs.NewHandler(handle, guarded(t), all, sqs.KeyOf(func(o order) string { return o.ID }))
	wantError(t, err, "sqs: both KeyOf and Options.PayloadKey are set, want one", "sqs: both Options.Key and Options.PayloadKey are set, want one",
		"sqs: both Options.Fingerprint and Options.PayloadFingerprint are set, want one")
	_, err = sqs.NewHandler(handle, all)
	wantError(t, err, "sqs: Options.PayloadKey is set, but Options.Idempotency is nil, want a guard or neither",
		"sqs: Options.PayloadFingerprint is set, but Options.Idempotency is nil")
}
