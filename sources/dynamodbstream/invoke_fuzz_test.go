package dynamodbstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Whatever the payload is, Invoke does not panic, and answers with one sequence number out of the payload, or none, or with
// an error.
func FuzzInvoke(f *testing.F) {
	f.Add(event(noted("a0", "fails", "a2", "b3")...))
	f.Add(window{State: `{"MODIFY":1}`, Final: true}.event(texts(noted("a0", "fails"))...))
	f.Add(rawEvent(noted("a0")[0].withoutKeys(), noted("a0")[0].undecodable()))
	for _, seed := range []string{
		``, `null`, `{}`, `{"Records":[]}`, `{"Records":[null,1,{}]}`, `{"Records":[{"eventID":"e","dynamodb":{"Keys":{"k":{"S":"x"}}}}]}x`,
		`{"Records":[{"eventID":"e","eventSourceARN":"a","dynamodb":{"Keys":{"k":{"N":"1e1"}},"NewImage":{"f":{"NS":["1"]}},"SequenceNumber":"\ud800"}}]}`,
		"{\"Records\":[{\"eventID\":\"\xff\",\"dynamodb\":{\"Keys\":{\"f\":{\"B\":\"AA==\"}},\"SequenceNumber\":\"1\"}}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		handle := func(_ context.Context, c *dynamodbstream.Change[map[string]any]) error {
			_, _, _, _ = c.Raw(), c.CreatedAt(), c.ByTTL(), c.StreamARN()
			if strings.Contains(c.JSON(), "f") {
				return batch.RetryAfter(time.Second, context.Canceled)
			}
			return nil
		}
		fold := func(ctx context.Context, state map[string]any, c *dynamodbstream.Change[map[string]any]) (map[string]any, error) {
			state[c.ID()] = c.New
			return state, handle(ctx, c)
		}
		finish := func(context.Context, *dynamodbstream.Window[map[string]any]) error { return nil }
		for _, h := range []invoker{
			newHandler(t, handle, concurrency(2)), newHandler(t, handle, guarded(t, countAttempts)), newWindowHandler(t, fold, finish, guarded(t)),
		} {
			response, err := h.Invoke(context.Background(), payload)
			if (response == nil) != (err != nil) {
				t.Fatalf("answer is %q, error is %v, want one of them", response, err)
			}
			if err != nil {
				continue
			}
			var answer struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			if err := json.Unmarshal(response, &answer); err != nil || len(answer.BatchItemFailures) > 1 {
				t.Fatalf("answer is %q, error is %v, want one failure at most", response, err)
			}
			for _, failure := range answer.BatchItemFailures {
				if id := failure.ItemIdentifier; id == "" || strings.Contains(id, "\ufffd") || !stringsOf(payload)[id] {
					t.Errorf("%q is reported, want text of the payload", id)
				}
			}
		}
	})
}

// stringsOf returns every string that is in the payload, as encoding/json reads it.
func stringsOf(payload []byte) map[string]bool {
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
