package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/sqs"
)

type keyFunction = func(sqs.View) (string, error)

// s3Object returns an S3 event of one record, with members of its object changed.
func s3Object(changes ...members) string {
	object := append([]members{{"key": "a+b%2Fc%23.jpg", "versionId": "v1", "sequencer": "0C0F6F405D6ED209E1"}}, changes...)
	return `{"Records":[` + s3Record("", members{
		"s3": members{"bucket": members{"name": "photos"}, "object": json.RawMessage(toJSON(object...))},
	}) + `]}`
}

// Case 35: the identity of what is inside is available as key.
func TestInnerKey(t *testing.T) {
	for _, test := range []struct {
		name   string
		key    keyFunction
		unwrap []sqs.Envelope
		body   string
		want   string
	}{
		{"SNS", sqs.SNSMessageID, []sqs.Envelope{sqs.SNS}, notification("x"), snsID},
		{"SNS or raw", sqs.SNSMessageID, []sqs.Envelope{sqs.SNSOrRaw}, notification("x"), snsID},
		{"EventBridge", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}"), "com.example.orders#" + eventID},
		{"EventBridge in SNS", sqs.EventBridgeID, []sqs.Envelope{sqs.SNS, sqs.EventBridge}, notification(published("{}")), "com.example.orders#" + eventID},
		{"EventBridge, parts are escaped", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"source": "a#b"}), "a%23b#" + eventID},
		{"a scheduled rule", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(nil), "arn:aws:events:us-east-2:123456789012:rule/tick#2017-12-22T18:43:48Z"},
		{"a scheduled rule without a time", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"time": "soon"}), "aws.events#" + eventID},
		{"a scheduled rule without a rule", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"resources": nil}), "aws.events#" + eventID},
		{"a scheduled rule of two", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"resources": []string{"a", "b"}}), "aws.events#" + eventID},
		{"a scheduled rule of none", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"resources": []string{}}), "aws.events#" + eventID},
		{"a scheduled rule without a name", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"resources": []string{""}}), "aws.events#" + eventID},
		{"a scheduled rule without an id", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"id": nil}), "arn:aws:events:us-east-2:123456789012:rule/tick#2017-12-22T18:43:48Z"},
		{"S3", sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Object(), "photos#a b/c%23.jpg#v1#0C0F6F405D6ED209E1"},
		{"S3 in SNS", sqs.S3ObjectKey, []sqs.Envelope{sqs.SNS, sqs.S3}, notification(s3Object()), "photos#a b/c%23.jpg#v1#0C0F6F405D6ED209E1"},
		{"S3 without versions", sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Object(members{"versionId": nil}), "photos#a b/c%23.jpg#0C0F6F405D6ED209E1"},
		{"S3, version null", sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Object(members{"versionId": json.RawMessage("null")}), "photos#a b/c%23.jpg#0C0F6F405D6ED209E1"},
		{"S3, version empty", sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Object(members{"versionId": ""}), "photos#a b/c%23.jpg#0C0F6F405D6ED209E1"},
		{"S3, no version, key like one", sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Object(members{"versionId": nil, "key": "a%23v1"}), "photos#a%23v1#0C0F6F405D6ED209E1"},
		{"S3 in EventBridge", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge, sqs.S3}, published(s3Object()), "photos#a b/c%23.jpg#v1#0C0F6F405D6ED209E1"},
		{"S3 by EventBridge", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, objectCreated(), "photos#a b/c%23.jpg#v1#0C0F6F405D6ED209E1"},
		{"S3 by EventBridge, a key like an encoded one", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, objectCreated(members{"key": "a+b%zz"}), "photos#a+b%25zz#v1#0C0F6F405D6ED209E1"},
		{"S3 by EventBridge, no version", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, objectCreated(members{"version-id": nil}), "photos#a b/c%23.jpg#0C0F6F405D6ED209E1"},
		{"S3 by EventBridge in SNS", sqs.S3ObjectKey, []sqs.Envelope{sqs.SNS, sqs.EventBridge}, notification(objectCreated()), "photos#a b/c%23.jpg#v1#0C0F6F405D6ED209E1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ran := false
			h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
				ran = true
				if got, err := test.key(m.View); err != nil || got != test.want {
					t.Errorf("key is %q, error %v, want %q", got, err, test.want)
				}
				return nil
			}, unwrap(test.unwrap...))
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.body}))
			if !ran {
				t.Error("handler did not run")
			}
		})
	}
}

// objectCreated returns the event of S3 by EventBridge for what s3Object is of, with members of its object changed.
func objectCreated(changes ...members) string {
	object := append([]members{{"key": "a b/c#.jpg", "size": 5, "version-id": "v1", "sequencer": "0C0F6F405D6ED209E1"}}, changes...)
	detail := toJSON(members{"version": "0", "bucket": members{"name": "photos"}, "object": json.RawMessage(toJSON(object...))})
	return published(detail, members{"source": "aws.s3", "detail-type": "Object Created"})
}

func scheduled(changes members) string {
	return published("{}", members{
		"source": "aws.events", "detail-type": "Scheduled Event", "resources": []string{"arn:aws:events:us-east-2:123456789012:rule/tick"},
	}, changes)
}

// What has no inner identity has no key, and fails, or runs if the guard says so. The error shows nothing of the body.
func TestInnerKeyMissing(t *testing.T) {
	s3 := []sqs.Envelope{sqs.S3}
	for _, test := range []struct {
		name   string
		key    keyFunction
		unwrap []sqs.Envelope
		body   string
		want   string
	}{
		{"SNS not unwrapped", sqs.SNSMessageID, nil, notification("SECRET"), "no SNS notification was unwrapped, want SNS in Options.Unwrap"},
		{"SNS raw", sqs.SNSMessageID, []sqs.Envelope{sqs.SNSOrRaw}, "SECRET", "no SNS notification was unwrapped"},
		{"SNS empty", sqs.SNSMessageID, []sqs.Envelope{sqs.SNS}, notification("SECRET", members{"MessageId": ""}), `MessageId is "", want a text`},
		{"SNS broken", sqs.SNSMessageID, []sqs.Envelope{sqs.SNS}, notification("SECRET", members{"MessageId": "SECRET\xff"}), `MessageId has broken characters`},
		{"EventBridge not unwrapped", sqs.EventBridgeID, []sqs.Envelope{sqs.SNS}, notification(published("{}")), "no EventBridge event was unwrapped"},
		{"EventBridge without id", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"id": nil}), "the envelope has no id, want one"},
		{"EventBridge with a number as id", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"id": 7}), "id is a number, want a string"},
		{"EventBridge with an empty source", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"source": ""}), "the envelope has no source, want one"},
		{"EventBridge with a broken id", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"id": "SECRET\xff"}), "id has broken characters, want none"},
		{"EventBridge, a tick with a number as id", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"id": 7}), "id is a number, want a string"},
		{"Scheduler", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, scheduled(members{"source": "aws.scheduler"}),
			"Scheduler's default input has nothing that is the same at every attempt"},
		{"Scheduler, a misspelt ARN", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"source": "<aws.scheduler.schedule_arn>"}),
			"Scheduler did not replace a keyword"},
		{"Scheduler, a misspelt time", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}", members{"id": "<aws.scheduler.scheduledtime>"}),
			"Scheduler did not replace a keyword"},
		{"S3 by EventBridge without sequencer", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, objectCreated(members{"sequencer": nil, "key": "SECRET"}),
			"detail.object.sequencer is missing, want a string"},
		{"another event by EventBridge", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, published("{}"), "no S3 record was unwrapped"},
		{"S3 by EventBridge, not an object", sqs.S3ObjectKey, []sqs.Envelope{sqs.EventBridge}, published(`"SECRET"`, members{"source": "aws.s3"}),
			"detail.bucket.name is missing, want a string"},
		{"S3 not unwrapped", sqs.S3ObjectKey, nil, s3Event("SECRET"), "no S3 record was unwrapped"},
		{"S3 without sequencer", sqs.S3ObjectKey, s3, s3Object(members{"sequencer": nil, "key": "SECRET"}), "s3.object.sequencer is missing, want a string"},
		{"S3 without key", sqs.S3ObjectKey, s3, s3Object(members{"key": nil}), "s3.object.key is missing, want a string"},
		{"S3 with a number as version", sqs.S3ObjectKey, s3, s3Object(members{"versionId": 7}), "s3.object.versionId is a number, want a string"},
		{"S3 with a key that is not encoded", sqs.S3ObjectKey, s3, s3Object(members{"key": "SECRET%zz"}), "s3.object.key is not URL-encoded"},
		{"S3 without bucket", sqs.S3ObjectKey, s3, `{"Records":[{"s3":{"object":{"key":"a","sequencer":"1"}}}]}`, "s3.bucket.name is missing, want a string"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, policy := range []idempotency.MissingKey{idempotency.MissingKeyFails, idempotency.MissingKeyRunsUnprotected} {
				var logged logs
				failed := errorHook{}
				ran := 0
				h := newHandler(t, func(context.Context, *sqs.Message[string]) error { ran++; return nil }, unwrap(test.unwrap...),
					guarded(t, func(o *idempotency.Options) { o.MissingKey = policy }), logged.option,
					func(o *sqs.Options) { o.Key, o.Hooks = test.key, []batch.Hook{failed} })
				payload := event(message{ID: "m1", Body: test.body})
				if policy == idempotency.MissingKeyRunsUnprotected {
					wantFailures(t, t.Context(), h, payload)
					wantFailures(t, t.Context(), h, payload)
					if ran != 2 {
						t.Errorf("unprotected: ran %d times, want 2", ran)
					}
					continue
				}
				wantFailures(t, t.Context(), h, payload, "m1")
				if ran != 0 {
					t.Errorf("ran %d times, want 0", ran)
				}
				for id, err := range failed {
					wantError(t, err, `sqs: key of message "`+id+`": idempotency: key is missing: `+test.want)
					if !errors.Is(err, idempotency.ErrKeyMissing) {
						t.Errorf("error is %v, want ErrKeyMissing", err)
					}
				}
				if len(failed) != 1 || strings.Contains(logged.Text(), "SECRET") {
					t.Errorf("%d failed, logged:\n%s", len(failed), logged.Text())
				}
			}
		})
	}
}

// The identity of what is around an S3 event is that of all its records. As a key it would let one run, and lose the others.
func TestInnerKeyAroundS3(t *testing.T) {
	for _, test := range []struct {
		name   string
		key    keyFunction
		unwrap []sqs.Envelope
		body   string
	}{
		{"SNS", sqs.SNSMessageID, []sqs.Envelope{sqs.SNS, sqs.S3}, notification(s3Event("a", "b", "c"))},
		{"SNS, one record", sqs.SNSMessageID, []sqs.Envelope{sqs.SNS, sqs.S3}, notification(s3Event("a"))},
		{"EventBridge", sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge, sqs.S3}, published(s3Event("a", "b", "c"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, failed := &worker{}, errorHook{}
			h := newHandler(t, w.handle, guarded(t), concurrency(1), unwrap(test.unwrap...), func(o *sqs.Options) { o.Key, o.Hooks = test.key, []batch.Hook{failed} })
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.body}), "m1")
			w.want(t)
			for _, err := range failed {
				wantError(t, err, "idempotency: key is missing: S3 is unwrapped, want S3ObjectKey")
			}
			h = newHandler(t, w.handle, guarded(t), unwrap(test.unwrap...), func(o *sqs.Options) { o.Key = sqs.S3ObjectKey })
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.body}))
			if ran := w.take(); len(ran) != strings.Count(test.body, "sequencer") {
				t.Errorf("%v ran with S3ObjectKey, want all", ran)
			}
		})
	}
}

// A redrive and another subscription give the message another messageId. The inner identity stays, and so nothing runs
// twice.
func TestInnerKeyOfRedrive(t *testing.T) {
	for _, test := range []struct {
		key    keyFunction
		unwrap []sqs.Envelope
		body   string
	}{
		{sqs.SNSMessageID, []sqs.Envelope{sqs.SNS}, notification("x")},
		{sqs.EventBridgeID, []sqs.Envelope{sqs.EventBridge}, published("{}")},
		{sqs.S3ObjectKey, []sqs.Envelope{sqs.S3}, s3Event("a")},
	} {
		w := &worker{}
		h := newHandler(t, w.handle, unwrap(test.unwrap...), guarded(t), func(o *sqs.Options) {
			o.Key, o.Fingerprint = test.key, sqs.BodySHA256
		})
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.body}))
		wantFailures(t, t.Context(), h, event(message{ID: "m2", Body: test.body}))
		if ran := w.take(); len(ran) != 1 || !strings.HasPrefix(ran[0], "m1") {
			t.Errorf("%v ran, want m1 only", ran)
		}
	}
}

// The fingerprint is that of what is inside: a publisher that sends the same again sends it in another envelope.
func TestBodySHA256IsOfTheInside(t *testing.T) {
	for _, test := range []struct {
		name   string
		second string
		want   []string
	}{
		{"the same in another notification", notification(`{"id":"o1"}`, members{"MessageId": "another", "Timestamp": "2012-05-02T00:54:07.655Z"}), nil},
		{"something else", notification(`{"id":"o2"}`), []string{"m2"}},
	} {
		w := &worker{}
		h := newHandler(t, w.handle, unwrap(sqs.SNS), guarded(t), func(o *sqs.Options) {
			o.Key = func(sqs.View) (string, error) { return "k", nil }
			o.Fingerprint = sqs.BodySHA256
		})
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: notification(`{"id":"o1"}`)}))
		wantFailures(t, t.Context(), h, event(message{ID: "m2", Body: test.second}), test.want...)
		w.want(t, "m1")
	}
}

// With one guard an event runs once, whether a rule sends it to the function or to the function's queue.
func TestEventBridgeIDIsEventBridgesKey(t *testing.T) {
	for name, body := range map[string]string{
		"event": published(`"x"`), "a # in the source": published(`"x"`, members{"source": "a#b"}),
		"scheduled rule": scheduled(nil), "scheduled rule without a time": scheduled(members{"time": nil}),
		"scheduled rule without an id": scheduled(members{"id": nil}), "scheduled rule without a name": scheduled(members{"resources": []string{""}}),
		"scheduled rule of two": scheduled(members{"resources": []string{"a", "b"}}), "Scheduler's input": published(`"x"`, members{"source": "arn", "id": "2026"}),
		"of another time zone": scheduled(members{"time": "2017-12-22T19:43:48.5+01:00"}),
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, idempotency.NewMemoryStore())
			ran := 0
			direct, err := eventbridge.NewHandler(func(context.Context, *eventbridge.Event[any]) error { ran++; return nil },
				func(o *eventbridge.Options) { o.Idempotency, o.Logger = guard, discard() })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := direct.Invoke(t.Context(), []byte(body)); err != nil || ran != 1 {
				t.Fatalf("ran %d times, error %v, want once", ran, err)
			}
			w := &worker{}
			h := newHandler(t, w.handle, unwrap(sqs.EventBridge), func(o *sqs.Options) { o.Idempotency, o.Key = guard, sqs.EventBridgeID })
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
			w.want(t)
		})
	}
}

// What has no key behind a rule has none behind a queue.
func TestEventBridgeIDMissingAsInEventBridge(t *testing.T) {
	for name, body := range map[string]string{
		"Scheduler": scheduled(members{"source": "aws.scheduler"}), "misspelt ARN": published("{}", members{"source": "<aws.scheduler.schedule_arn>"}),
		"misspelt time": published("{}", members{"id": "<aws.scheduler.scheduledtime>"}), "no id": published("{}", members{"id": nil}),
		"id null": published("{}", members{"id": json.RawMessage("null")}), "id empty": published("{}", members{"id": ""}),
		"id a number": published("{}", members{"id": 7}), "source empty": published("{}", members{"source": ""}),
		"tick, id a number": scheduled(members{"id": 7}),
	} {
		t.Run(name, func(t *testing.T) {
			direct, err := eventbridge.NewHandler(func(context.Context, *eventbridge.Event[any]) error { t.Error("ran directly"); return nil },
				func(o *eventbridge.Options) {
					o.Idempotency, o.Logger = newGuard(t, idempotency.NewMemoryStore()), discard()
				})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := direct.Invoke(t.Context(), []byte(body)); err == nil {
				t.Error("no error, want that of a missing key")
			}
			w := &worker{}
			h := newHandler(t, w.handle, guarded(t), unwrap(sqs.EventBridge), func(o *sqs.Options) { o.Key = sqs.EventBridgeID })
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}), "m1")
			w.want(t)
		})
	}
}

// With one guard and fingerprints, a detail that is a string is no mismatch between the two ways.
func TestBodySHA256IsDetailSHA256(t *testing.T) {
	for name, body := range map[string]string{"object": published(`{"id":"o1"}`), "string": published(`"{\"id\":\"o1\"}"`)} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, idempotency.NewMemoryStore())
			direct, err := eventbridge.NewHandler(func(context.Context, *eventbridge.Event[order]) error { return nil }, func(o *eventbridge.Options) {
				o.Idempotency, o.Logger, o.Fingerprint = guard, discard(), eventbridge.DetailSHA256
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := direct.Invoke(t.Context(), []byte(body)); err != nil {
				t.Fatal(err)
			}
			w := &worker{}
			h := newHandler(t, w.handle, unwrap(sqs.EventBridge), func(o *sqs.Options) {
				o.Idempotency, o.Key, o.Fingerprint = guard, sqs.EventBridgeID, sqs.BodySHA256
			})
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
			w.want(t)
		})
	}
}
