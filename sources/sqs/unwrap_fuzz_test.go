package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Whatever a body is, unwrapping it fails its message or hands out what is inside: never a panic, and never a failure of the
// message beside it. What the sink gets of one record does the work of that record when it is sent again.
func FuzzUnwrap(f *testing.F) {
	for _, body := range []string{
		"", "x", "null", "[]", "{}", `""`, "{", testEvent, notification("x"), notification(s3Event("a")), published("{}"),
		published("{}", members{"detail": "x"}), published(notification(s3Event("a", "b"))), s3Event("a", "a", "b"), notification(testEvent),
		s3Object(), `{"Records":[]}`, `{"Records":[null,{},{"s3":{}}]}`, `{"Records":null,"Event":"s3:TestEvent"}`, "{\"Type\":\"Notification\",\"\\ud800\":\"\xff\"}",
		`{"Type":"Notification","TopicArn":"","MessageId":"","Message":"\ud800","Message":"\"}"}`,
		`{"detail-type":"","source":"","detail":"","detail":[1,{"a":"\u0000"}]}`,
	} {
		for order := range byte(7) {
			f.Add(body, order)
		}
	}
	orders := [][]sqs.Envelope{
		{sqs.SNS}, {sqs.SNSOrRaw}, {sqs.EventBridge}, {sqs.S3}, {sqs.SNS, sqs.S3}, {sqs.SNSOrRaw, sqs.EventBridge, sqs.S3},
		{sqs.EventBridge, sqs.SNSOrRaw, sqs.S3},
	}
	keys := []keyFunction{sqs.SNSMessageID, sqs.EventBridgeID, sqs.S3ObjectKey}
	f.Fuzz(func(t *testing.T, body string, order byte) {
		envelopes := orders[int(order)%len(orders)]
		good := message{ID: "m2", Body: published(notification(s3Event("a")))}
		var mu sync.Mutex
		ran, inners, sunk := map[string]bool{}, map[string]string{}, map[string]string{}
		h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
			mu.Lock()
			defer mu.Unlock()
			if ran[m.ID()] {
				t.Errorf("%s ran twice", m.ID())
			}
			ran[m.ID()] = true
			for _, e := range []sqs.Envelope{sqs.SNS, sqs.EventBridge, sqs.S3} {
				if text := m.Envelope(e); text != "" && !json.Valid([]byte(text)) {
					t.Errorf("%v of %s is %q, want JSON", e, m.ID(), text)
				}
			}
			for _, key := range keys {
				if key, err := key(m.View); (key == "") != (err != nil) {
					t.Errorf("key is %q, error %v, want one of them", key, err)
				}
			}
			if m.Body != m.Inner() {
				t.Errorf("body is %q, inner is %q", m.Body, m.Inner())
			}
			inners[m.ID()] = m.Inner()
			return batch.Permanent(errors.New("to the sink"))
		}, unwrap(envelopes...), concurrency(2), func(o *sqs.Options) {
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
				mu.Lock()
				defer mu.Unlock()
				sunk[r.ID] = r.Value.(*sqs.Message[string]).JSON()
				return nil
			}
		})
		response, err := h.Invoke(context.Background(), event(message{ID: "m1", Body: body}, good))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range answer(t, response) {
			if id != "m1" && id != "m2" || id == "m2" && ran["m2"] {
				t.Errorf("%q is reported", id)
			}
		}
		for id, record := range sunk {
			again := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
				if first, _, _ := strings.Cut(m.ID(), "#"); !strings.HasPrefix(id, first) || m.Body != inners[id] {
					t.Errorf("%s is sent again with %q, want %q", m.ID(), m.Body, inners[id])
				}
				delete(inners, id)
				return nil
			}, unwrap(envelopes...), concurrency(1))
			wantFailures(t, context.Background(), again, rawEvent(record))
			if _, left := inners[id]; left {
				t.Errorf("%s did not run again", id)
			}
		}
	})
}
