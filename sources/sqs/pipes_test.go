package sqs_test

import (
	"encoding/json"
	"testing"

	"github.com/oncekit/oncekit/sources/sqs"
)

// piped returns the array in which EventBridge Pipes delivers the messages of an event
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-sqs.html).
func piped(t *testing.T, event []byte) []byte {
	t.Helper()
	var e struct{ Records json.RawMessage }
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatal(err)
	}
	return e.Records
}

// Pipes takes the same answer as Lambda's own mapping.
func TestPipesAnswer(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{errs: failing("m2", "m4")}
		h := newHandler(t, w.handle, options)
		wantFailures(t, t.Context(), h, piped(t, event(numbered(5)...)), "m2", "m4")
		w.want(t, "m1", "m2", "m3", "m4", "m5")
		wantFailures(t, t.Context(), h, []byte("[]"))
		wantFailures(t, t.Context(), h, piped(t, event(grouped("a1", "b1")...)))
	})
}

// A message has the same key by either way, so that what ran through the one does not run again through the other.
func TestPipesKey(t *testing.T) {
	for _, pipesFirst := range []bool{false, true} {
		payloads := [][]byte{event(numbered(3)...), piped(t, event(numbered(3)...))}
		if pipesFirst {
			payloads[0], payloads[1] = payloads[1], payloads[0]
		}
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t))
		wantFailures(t, t.Context(), h, payloads[0])
		w.want(t, "m1", "m2", "m3")
		wantFailures(t, t.Context(), h, payloads[1])
		w.want(t)
	}
}

// What is no message fails the whole array, as it does an event.
func TestPipesBadInput(t *testing.T) {
	for _, payload := range []string{"[null]", "[1]", "[{}]", `[{"eventSource":"aws:kinesis"}]`, `[[]]`} {
		w := &worker{}
		if answer, err := newHandler(t, w.handle).Invoke(t.Context(), []byte(payload)); err == nil {
			t.Errorf("%s: answer is %s, want an error", payload, answer)
		}
		w.want(t)
	}
}
