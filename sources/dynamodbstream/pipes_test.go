package dynamodbstream_test

import (
	"strings"
	"testing"

	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// piped returns the array in which EventBridge Pipes delivers changes
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-dynamodb.html).
func piped(records ...record) []byte {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = r.json()
	}
	return []byte("[" + strings.Join(texts, ",") + "]")
}

// The answer to Pipes names the eventID of the first change that failed.
func TestPipesAnswer(t *testing.T) {
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
		w := &worker{errs: failing("fails")}
		h := newHandler(t, w.handle, inOrder(isGuarded, options))
		wantCheckpoint(t, t.Context(), h, piped(noted("a0", "b1")...), "")
		w.want(t, "a0", "b1")
		wantCheckpoint(t, t.Context(), h, []byte("[]"), "")
		changes := []record{{ID: "c", Note: "c2", N: 2}, {ID: "d", Note: "fails", N: 3}, {ID: "e", Note: "fails", N: 4}}
		wantCheckpoint(t, t.Context(), h, piped(changes...), eventID(3))
	})
}

// A change has the same key by either way, so that what ran through the one does not run again through the other.
func TestPipesKey(t *testing.T) {
	changes := noted("a0", "b1")
	for _, payloads := range [][2][]byte{{piped(changes...), event(changes...)}, {event(changes...), piped(changes...)}} {
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t))
		wantCheckpoint(t, t.Context(), h, payloads[0], "")
		w.want(t, "a0", "b1")
		wantCheckpoint(t, t.Context(), h, payloads[1], "")
		w.want(t)
	}
}

// A change that nobody can name makes all of them come back, as by the other way.
func TestPipesWithoutAnEventID(t *testing.T) {
	good := string(piped(record{ID: "a", Note: "fails"}))
	for _, payload := range []string{
		strings.Replace(good, `"eventID":`, `"other":`, 1), strings.Replace(good, `"eventID":"`, `"eventID":"\ud800`, 1),
	} {
		w := &worker{errs: failing("fails")}
		wantInvokeError(t, t.Context(), newHandler(t, w.handle), []byte(payload), "record 0 has no eventID and failed")
	}
}
