package sqs_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// s3Record returns the record of an object that was put, with members changed.
func s3Record(key string, changes ...members) string {
	return toJSON(append([]members{{
		"eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-east-2", "eventTime": "2019-09-03T19:37:27.192Z",
		"eventName": "ObjectCreated:Put", "userIdentity": members{"principalId": "AWS:AIDAINPONIXQXHT3IKHL2"},
		"s3": members{
			"s3SchemaVersion": "1.0", "configurationId": "828aa6fc-f7b5-4305-8584-487c791949c1",
			"bucket": members{"name": "photos", "arn": "arn:aws:s3:::photos"},
			"object": members{"key": url.QueryEscape(key), "size": 1305107, "eTag": "b21b84d653bb07b05b1e6b33684dc11b", "sequencer": "0C0F6F405D6ED209E1"},
		},
	}}, changes...)...)
}

// s3Event returns an event of objects that were put.
func s3Event(keys ...string) string {
	records := make([]string, len(keys))
	for i, key := range keys {
		records[i] = s3Record(key)
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

// failKeys returns a handler of S3 records that notes the IDs it ran with and fails for these object keys.
func failKeys(w *worker, keys ...string) func(context.Context, *sqs.Message[events.S3EventRecord]) error {
	return func(_ context.Context, m *sqs.Message[events.S3EventRecord]) error {
		w.mu.Lock()
		w.ran = append(w.ran, m.ID())
		w.mu.Unlock()
		if key := m.Body.S3.Object.URLDecodedKey; slices.Contains(keys, key) {
			return fmt.Errorf("%s fails", key)
		}
		return nil
	}
}

// outcomes is a hook that notes the outcomes of records.
type outcomes struct {
	mu  sync.Mutex
	got map[string]batch.Outcome
}

func (o *outcomes) OnRecordFinished(_ context.Context, r *batch.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.got == nil {
		o.got = map[string]batch.Outcome{}
	}
	o.got[r.Record.ID] = r.Outcome
}

func (o *outcomes) option(options *sqs.Options) { options.Hooks = []batch.Hook{o} }

func (o *outcomes) want(t testing.TB, want map[string]batch.Outcome) {
	t.Helper()
	if diff := gocmp.Diff(want, o.got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	o.got = nil
}

// Case 36: what S3 sends to test a configuration is acknowledged without a handler call, directly and through SNS.
func TestS3TestEvent(t *testing.T) {
	for _, test := range []struct {
		name   string
		unwrap []sqs.Envelope
		body   string
	}{
		{"direct", []sqs.Envelope{sqs.S3}, testEvent},
		{"in SNS", []sqs.Envelope{sqs.SNS, sqs.S3}, notification(testEvent)},
		{"in raw SNS", []sqs.Envelope{sqs.SNSOrRaw, sqs.S3}, testEvent},
		{"with Records null", []sqs.Envelope{sqs.S3}, `{"Event":"s3:TestEvent","Records":null}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var seen outcomes
				w := &worker{}
				h := newHandler(t, failKeys(w), options, seen.option, unwrap(test.unwrap...))
				// Its group goes on, and a twin of it is none.
				m := message{ID: "m1", Body: test.body, Group: "a", ARN: fifoARN}
				wantFailures(t, t.Context(), h, event(m, m, message{ID: "m2", Body: test.body, Group: "a", ARN: fifoARN}))
				w.want(t)
				seen.want(t, map[string]batch.Outcome{"m1": batch.Ignored, "m2": batch.Ignored})
			})
		})
	}
	// A test event needs no key, and its body need be no T.
	h := newHandler(t, func(context.Context, *sqs.Message[int]) error { return nil }, guarded(t), unwrap(sqs.S3),
		func(o *sqs.Options) { o.Key, o.Fingerprint = sqs.S3ObjectKey, sqs.BodySHA256 })
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: testEvent}))
}

// Several records of one body are several calls. A failure names the message once. When that comes again, with a guard,
// what is done does not run.
func TestS3Records(t *testing.T) {
	for _, test := range []struct {
		name   string
		unwrap []sqs.Envelope
		wrap   func(string) string
	}{
		{"S3", []sqs.Envelope{sqs.S3}, func(body string) string { return body }},
		{"S3 in SNS", []sqs.Envelope{sqs.SNS, sqs.S3}, func(body string) string { return notification(body) }},
		{"S3 in SNS in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS, sqs.S3}, func(body string) string { return published(notification(body)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var seen outcomes
				w := &worker{}
				payload := event(
					message{ID: "m1", Body: test.wrap(s3Event("a", "b", "c"))},
					message{ID: "m2", Body: test.wrap(s3Event("a"))},
					message{ID: "m3", Body: test.wrap(s3Event("d", "e"))},
				)
				fail := []string{"b", "c", "e"}
				fn := func(ctx context.Context, m *sqs.Message[events.S3EventRecord]) error {
					return failKeys(w, fail...)(ctx, m)
				}
				h := newHandler(t, fn, options, seen.option, unwrap(test.unwrap...))
				wantFailures(t, t.Context(), h, payload, "m1", "m3")
				w.want(t, "m1#0", "m1#1", "m1#2", "m2#0", "m3#0", "m3#1")
				seen.want(t, map[string]batch.Outcome{
					"m1#0": batch.Succeeded, "m1#1": batch.Failed, "m1#2": batch.Failed, "m2#0": batch.Succeeded,
					"m3#0": batch.Succeeded, "m3#1": batch.Failed,
				})
				fail = []string{"c"}
				wantFailures(t, t.Context(), h, payload, "m1")
				if strings.HasSuffix(t.Name(), "true") {
					w.want(t, "m1#1", "m1#2", "m3#1")
				} else {
					w.want(t, "m1#0", "m1#1", "m1#2", "m2#0", "m3#0", "m3#1")
				}
			})
		})
	}
}

// A record that is none fails alone, and its siblings run.
func TestS3BadRecord(t *testing.T) {
	for _, test := range []struct{ record, want string }{
		{"null", `sqs: S3 record 1 of message "m1" is null, want an object`},
		{`"SECRET"`, `sqs: S3 record 1 of message "m1" is a string, want an object`},
		{`{"SECRET":1}`, `sqs: S3 record 1 of message "m1" has s3 that is missing, want an object`},
		{`{"s3":"SECRET"}`, `sqs: S3 record 1 of message "m1" has s3 that is a string, want an object`},
		{`{"messageId":"x","eventSource":"aws:sqs","body":"SECRET"}`, `has s3 that is missing, want an object`},
		{`{"s3":{"object":{"key":7}}}`, `sqs: what was unwrapped from message "m1#1" is not a valid events.S3EventRecord: `},
	} {
		eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
			var logged logs
			w := &worker{}
			h := newHandler(t, failKeys(w), options, logged.option, unwrap(sqs.S3))
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: `{"Records":[` + s3Record("a") + "," + test.record + "," + s3Record("c") + `]}`}), "m1")
			w.want(t, "m1#0", "m1#2")
			if got := logged.Failure(t, "m1#1").Error; !strings.Contains(got, test.want) {
				t.Errorf("error is %q, want %q in it", got, test.want)
			}
			if strings.Contains(logged.Text(), "SECRET") {
				t.Errorf("%s: shows the body", logged.Text())
			}
		})
	}
}

// On a FIFO queue the records of a message are a part of its group's order.
func TestS3FIFO(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{}
		h := newHandler(t, failKeys(w, "b"), options, unwrap(sqs.SNS, sqs.S3))
		of := func(id, group string, keys ...string) message {
			return message{ID: id, Group: group, ARN: fifoARN, Body: notification(s3Event(keys...))}
		}
		wantFailures(t, t.Context(), h, event(of("a1", "a", "a", "b", "c"), of("b1", "b", "d", "e"), of("a2", "a", "f")), "a1", "a2")
		ran := w.take()
		var a []string
		for _, id := range ran {
			if id[0] == 'a' {
				a = append(a, id)
			}
		}
		if diff := gocmp.Diff([]string{"a1#0", "a1#1"}, a); diff != "" || len(ran) != 4 {
			t.Errorf("%v ran, of group a (-want +got):\n%s", ran, diff)
		}
	})
}

// A message comes back once, and so its visibility is changed once: to the longest timeout that one of its records wants.
func TestS3Visibility(t *testing.T) {
	for _, arn := range []string{standardARN, fifoARN} {
		var c changer
		fn := func(_ context.Context, m *sqs.Message[events.S3EventRecord]) error {
			if d, err := time.ParseDuration(m.Body.S3.Object.Key); err == nil {
				return retryAfter(d)
			} else if m.Body.S3.Object.Key == "no" {
				return errors.New("no")
			}
			return nil
		}
		group := map[string]string{fifoARN: "a"}[arn]
		h := newHandler(t, fn, c.option, unwrap(sqs.S3))
		if group == "" {
			wantFailures(t, t.Context(), h, event(
				message{ID: "m1", ARN: arn, Body: s3Event("no", "1m", "ok", "2m", "30s")}, message{ID: "m2", ARN: arn, Body: s3Event("ok", "7s")},
				message{ID: "m3", ARN: arn, Body: s3Event("no", "no")}, message{ID: "m4", ARN: arn, Body: s3Event("ok")},
			), "m1", "m2", "m3")
			c.want(t, change(arn, "m1", 2*time.Minute), change(arn, "m2", 7*time.Second))
			continue
		}
		wantFailures(t, t.Context(), h, event(
			message{ID: "m0", ARN: arn, Group: group, Body: s3Event("ok")},
			message{ID: "m1", ARN: arn, Group: group, Body: s3Event("ok", "1m", "2m")},
			message{ID: "m2", ARN: arn, Group: group, Body: s3Event("ok", "7s")},
		), "m1", "m2")
		c.want(t, change(arn, "m1", time.Minute), change(arn, "m2", time.Minute))
	}
}

// A message that is in the batch twice, and records of one body with one key, run once.
func TestS3Twins(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{}
		h := newHandler(t, failKeys(w, "b"), options, unwrap(sqs.S3))
		m := message{ID: "m1", Body: s3Event("a", "b", "a")}
		wantFailures(t, t.Context(), h, event(m, m), "m1")
		w.want(t, "m1#0", "m1#1", "m1#2")
	})
	for _, fingerprint := range []func(sqs.View) (string, error){nil, sqs.BodySHA256} {
		var seen outcomes
		w := &worker{}
		h := newHandler(t, failKeys(w, "b"), guarded(t), seen.option, concurrency(1), unwrap(sqs.S3), func(o *sqs.Options) {
			o.Key, o.Fingerprint = sqs.S3ObjectKey, fingerprint
		})
		wantFailures(t, t.Context(), h, event(
			message{ID: "m1", Body: s3Event("a", "a", "b", "b")}, message{ID: "m2", Body: s3Event("c", "a")}, message{ID: "m3", Body: s3Event("b")},
		), "m1", "m3")
		w.want(t, "m1#0", "m1#2", "m2#0")
		seen.want(t, map[string]batch.Outcome{
			"m1#0": batch.Succeeded, "m1#1": batch.Replayed, "m1#2": batch.Failed, "m1#3": batch.Failed,
			"m2#0": batch.Succeeded, "m2#1": batch.Replayed, "m3#0": batch.Failed,
		})
	}
}

// A record that is given up goes to the sink alone, as a message that has nothing else in it: sent again, it does the work of
// that record and of no other. The rest of its message is not given up with it.
func TestS3DeadLetter(t *testing.T) {
	for _, test := range []struct {
		name   string
		unwrap []sqs.Envelope
		wrap   func(string) string
	}{
		{"S3", []sqs.Envelope{sqs.S3}, func(body string) string { return body }},
		{"S3 in SNS", []sqs.Envelope{sqs.SNS, sqs.S3}, func(body string) string { return notification(body) }},
		{"S3 in raw SNS", []sqs.Envelope{sqs.SNSOrRaw, sqs.S3}, func(body string) string { return body }},
		{"S3 in SNS in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS, sqs.S3}, func(body string) string { return published(notification(body)) }},
		{"S3 in SNS in a string in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS, sqs.S3}, func(body string) string {
			return published("{}", members{"detail": notification(body)})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var mu sync.Mutex
				var sunk []string
				w := &worker{}
				poison := func(_ context.Context, m *sqs.Message[events.S3EventRecord]) error {
					if m.Body.S3.Object.URLDecodedKey == "b é\"" {
						return batch.Permanent(errors.New("poison"))
					}
					return nil
				}
				h := newHandler(t, poison, options, unwrap(test.unwrap...), func(o *sqs.Options) {
					o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
						mu.Lock()
						defer mu.Unlock()
						sunk = append(sunk, r.ID+" "+r.Value.(interface{ JSON() string }).JSON())
						return nil
					}
				})
				wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.wrap(s3Event("a", `b é"`, "c"))}))
				if len(sunk) != 1 {
					t.Fatalf("dead-lettered: %q, want one record", sunk)
				}
				record, ok := strings.CutPrefix(sunk[0], "m1#1 ")
				if !ok {
					t.Fatalf("dead-lettered: %q, want m1#1", sunk)
				}
				again := newHandler(t, failKeys(w, `b é"`), unwrap(test.unwrap...))
				wantFailures(t, t.Context(), again, rawEvent(record), "m1")
				w.want(t, "m1#0")

				// Beside the body and its hash, the message is what it was.
				var was, is members
				if err := cmp.Or(json.Unmarshal([]byte(message{ID: "m1"}.record()), &was), json.Unmarshal([]byte(record), &is)); err != nil {
					t.Fatal(err)
				}
				if body, want := is["body"], test.wrap(s3Event(`b é"`)); !sameJSON(t, body.(string), want) {
					t.Errorf("body is %s, want %s", body, want)
				}
				delete(was, "body")
				delete(was, "md5OfBody")
				delete(is, "body")
				delete(was, "attributes") // the time at which it was sent
				delete(is, "attributes")
				if diff := gocmp.Diff(was, is); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// sameJSON compares JSON, with the JSON in its strings.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var opened func(any) any
	opened = func(v any) any {
		switch v := v.(type) {
		case string:
			var inner any
			if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
				return []any{"a string with", opened(inner)}
			}
		case map[string]any:
			for name := range v {
				v[name] = opened(v[name])
			}
		}
		return v
	}
	return gocmp.Equal(opened(a), opened(b))
}

// The default key of a record is its message's, with its number. Whatever the messageId is, no two are the same.
func TestS3DefaultKey(t *testing.T) {
	var keys []string
	var mu sync.Mutex
	h := newHandler(t, func(context.Context, *sqs.Message[string]) error { return nil }, guarded(t), unwrap(sqs.S3), func(o *sqs.Options) {
		o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				mu.Lock()
				keys = append(keys, r.Key)
				mu.Unlock()
				return next(ctx, r)
			}
		}}
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: s3Event("a", "b")}, message{ID: "m1#0", Body: s3Event("a")}))
	slices.Sort(keys)
	if diff := gocmp.Diff([]string{"m1#0", "m1#1", "m1%230#0"}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Records of messages without an identifier are no twins of each other, and a failure of one brings the batch back.
func TestS3WithoutMessageID(t *testing.T) {
	record := strings.Replace(message{ID: "m1", Body: s3Event("a", "b")}.record(), `"messageId"`, `"other"`, 1)
	ran := 0
	fn := func(fail error) func(context.Context, *sqs.Message[string]) error {
		return func(context.Context, *sqs.Message[string]) error { ran++; return fail }
	}
	wantFailures(t, t.Context(), newHandler(t, fn(nil), concurrency(1), unwrap(sqs.S3)), rawEvent(record, record))
	_, err := newHandler(t, fn(errors.New("no")), concurrency(1), unwrap(sqs.S3)).Invoke(t.Context(), rawEvent(record))
	wantError(t, err, "has no messageId and failed, so the whole batch has to come back: no")
	if ran != 6 {
		t.Errorf("%d records ran, want 6", ran)
	}
	_, err = newHandler(t, fn(nil), guarded(t), unwrap(sqs.S3)).Invoke(t.Context(), rawEvent(record))
	if !errors.Is(err, idempotency.ErrKeyMissing) {
		t.Errorf("error is %v, want ErrKeyMissing", err)
	}
}
