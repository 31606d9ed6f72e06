package eventbridge_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// Whatever the payload is, Invoke does not panic. It answers with null if all events were handled, and else with an error,
// and what is no JSON for encoding/json or an empty array is one.
func FuzzInvoke(f *testing.F) {
	f.Add(array(orders("a", "f", "b")...))
	f.Add(array(withMetadata(1, placed(1, "a"), "g"), withMetadata(2, quote(placed(2, "b")), "g"), withMetadata(3, `"aGVsbG8="`, "")))
	f.Add([]byte(tick))
	f.Add([]byte(scheduled))
	f.Add([]byte(templated))
	for _, seed := range []string{
		``, `null`, `[]`, `[null]`, `{}`, `17`, `"{"`, `"{}"`, `[1,"f"]x`, `{"Records":[{"eventSource":"aws:sqs"}]}`,
		`{"detail-type":1,"source":"\ud800","detail":"{\"a\":","id":"#","replay-name":"x"}`,
		`{"Data":null,"SystemMetadata":{"aws:EventId":"1","EventGroupId":17,"aws:DeliveryType":"REPLAY"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		elements := 1
		if trimmed := strings.TrimLeft(string(payload), " \t\r\n"); strings.HasPrefix(trimmed, "[") {
			var all []json.RawMessage
			if json.Unmarshal(payload, &all) == nil {
				elements = len(all)
			}
		}
		valid := json.Valid(payload) && elements > 0
		read := func(v eventbridge.View) error {
			see(v, nil)
			for _, text := range []string{v.JSON(), string(v.RawDetail())} {
				if !json.Valid([]byte(text)) {
					t.Errorf("of event %q there is %q, want JSON", v.ID(), text)
				}
			}
			if strings.Contains(v.JSON(), "f") {
				return batch.RetryAfter(time.Second, context.Canceled)
			}
			return nil
		}
		unprotected := func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }
		for _, h := range []invoker{
			newHandler(t, func(_ context.Context, e *eventbridge.Event[any]) error { return read(e.View) }),
			newHandler(t, func(_ context.Context, e *eventbridge.Event[string]) error { return read(e.View) },
				guarded(t, unprotected), runReplays, func(o *eventbridge.Options) { o.Fingerprint = eventbridge.DetailSHA256 }),
			newHandler(t, func(_ context.Context, e *eventbridge.Event[order]) error { return read(e.View) },
				guarded(t, countAttempts), byOrder(), maxAge(time.Hour), (&sink{}).option, concurrency(1)),
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			begin := time.Now()
			answer, err := h.Invoke(ctx, payload)
			cancel()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v, want no time: nothing waits here", took)
			}
			switch {
			case (answer == nil) != (err != nil):
				t.Fatalf("answer is %q, error is %v, want one of them", answer, err)
			case err == nil && (string(answer) != "null" || !valid):
				t.Errorf("answer is %q to %d elements, valid %v, want null to some that are valid", answer, elements, valid)
			case isFailed(err) != (valid && err != nil):
				t.Errorf("error is %v of %d elements, valid %v", err, elements, valid)
			}
		}
	})
}
