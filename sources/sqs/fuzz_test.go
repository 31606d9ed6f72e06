package sqs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Whatever the payload is, Invoke does not panic, and answers with identifiers out of the payload or with an error.
func FuzzInvoke(f *testing.F) {
	f.Add(event(numbered(2)...))
	f.Add(event(grouped("a1", "a2", "b1", "a1")...))
	f.Add(rawEvent(documented))
	for _, seed := range []string{
		``, `null`, `{}`, `{"Records":[]}`, `{"Records":[null,1,{}]}`, `{"Records":[{"messageId":"m","body":"{}"}]}x`,
		`{"Records":[{"messageId":"m","body":null},{"messageId":"\ud800","body":"f"}]}`,
		"{\"Records\":[{\"messageId\":\"\xff\",\"body\":\"{\\\"id\\\":\\\"x\\\"}\"}]}",
		`{"Records":[{"messageId":"m","body":"\"fail\"","attributes":{"MessageGroupId":"g"},"eventSourceARN":".fifo"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		read := func(_ context.Context, v sqs.View, body string) error {
			_, _, _, _, _ = v.ReceiveCount(), v.SentAt(), v.GroupID(), v.ReceiptHandle(), v.Raw()
			_, _ = v.MessageAttribute("a")
			if strings.Contains(body, "f") {
				return batch.RetryAfter(time.Second, context.Canceled)
			}
			return nil
		}
		for _, h := range []invoker{
			newHandler(t, func(ctx context.Context, m *sqs.Message[any]) error { return read(ctx, m.View, m.RawBody()) }, concurrency(2)),
			newHandler(t, func(ctx context.Context, m *sqs.Message[string]) error { return read(ctx, m.View, m.Body) },
				guarded(t), func(o *sqs.Options) { o.Fingerprint, o.Visibility = sqs.BodySHA256, &changer{} }),
		} {
			response, err := h.Invoke(context.Background(), payload)
			if (response == nil) != (err != nil) {
				t.Fatalf("answer is %q, error is %v, want one of them", response, err)
			}
			if err != nil {
				continue
			}
			known := identifiersOf(payload)
			for _, id := range answer(t, response) {
				if id == "" || !known[id] {
					t.Errorf("%q is reported, want one of %v", id, known)
				}
			}
		}
	})
}

// identifiersOf returns every string that is in the payload, as encoding/json reads it.
func identifiersOf(payload []byte) map[string]bool {
	known := map[string]bool{}
	decoder := json.NewDecoder(strings.NewReader(string(payload)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return known
		}
		if text, ok := token.(string); ok {
			known[text] = true
		}
	}
}
