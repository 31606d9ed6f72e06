package kinesis_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// piped returns the array in which EventBridge Pipes delivers records: what Lambda has in an object named kinesis is beside
// the rest (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-kinesis.html).
func piped(t tb, records ...record) []byte {
	t.Helper()
	flat := make([]string, len(records))
	for i, r := range records {
		var members, inner map[string]json.RawMessage
		if err := json.Unmarshal([]byte(r.json()), &members); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(members["kinesis"], &inner); err != nil {
			t.Fatal(err)
		}
		delete(members, "kinesis")
		for name, value := range inner {
			members[name] = value
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		flat[i] = string(text)
	}
	return []byte("[" + strings.Join(flat, ",") + "]")
}

// The answer to Pipes names the eventID, of the first that failed, and of the aggregate for a record of one.
func TestPipesAnswer(t *testing.T) {
	clicks := string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "x", Data: []byte("x")}, {PartitionKey: "y", Data: []byte("fails")}}))
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		w := &worker{errs: failing("fails")}
		h := newHandler(t, w.handle, options)
		wantCheckpoint(t, t.Context(), h, piped(t, record{Data: "a", Key: "a"}, record{Data: "b", Key: "b", N: 1}), "")
		w.want(t, "a", "b")
		wantCheckpoint(t, t.Context(), h, []byte("[]"), "")
		h = newHandler(t, w.handle, options)
		wantCheckpoint(t, t.Context(), h, piped(t, record{Data: "c", Key: "c", N: 2}, record{Data: "fails", Key: "d", N: 3},
			record{Data: "fails", Key: "e", N: 4}), eventID(3))
		h = newHandler(t, w.handle, options)
		wantCheckpoint(t, t.Context(), h, piped(t, record{Data: "f", Key: "f", N: 5}, record{Data: clicks, Key: "a", N: 6}), eventID(6))
	})
}

// A record has the same key by either way, so that what ran through the one does not run again through the other.
func TestPipesKey(t *testing.T) {
	clicks := string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "x", Data: []byte("x")}, {PartitionKey: "y", Data: []byte("y")}}))
	records := []record{{Data: "a", Key: "a"}, {Data: clicks, Key: "a", N: 1}}
	for _, payloads := range [][2][]byte{{piped(t, records...), event(records...)}, {event(records...), piped(t, records...)}} {
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t))
		wantCheckpoint(t, t.Context(), h, payloads[0], "")
		w.want(t, "a", "x", "y")
		wantCheckpoint(t, t.Context(), h, payloads[1], "")
		w.want(t)
	}
}

// What the record shows does not depend on the way that it came.
func TestPipesRecord(t *testing.T) {
	r := record{Data: "a", Key: "k", N: 7}
	clicks := record{Data: string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "x", Data: []byte("a")}})), Key: "a", N: 8}
	seen := func(payload []byte) map[string]any {
		got := map[string]any{}
		h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
			raw := r.Raw()
			got[r.ID()] = []any{r.PartitionKey(), r.SequenceNumber(), r.ShardID(), r.StreamARN(), string(r.RawData()), r.Data,
				r.ArrivedAt().UnixMilli(), raw.EventID, raw.Kinesis.PartitionKey, raw.Kinesis.SequenceNumber, len(raw.Kinesis.Data)}
			if !json.Valid([]byte(r.JSON())) {
				t.Errorf("JSON of %s is none: %s", r.ID(), r.JSON())
			}
			return nil
		})
		wantCheckpoint(t, t.Context(), h, payload, "")
		return got
	}
	at := r.At
	r.At, clicks.At = at.AddDate(2025, 0, 0), at.AddDate(2025, 0, 0)
	want, got := seen(event(r, clicks)), seen(piped(t, r, clicks))
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 2 {
		t.Errorf("records (-Lambda +Pipes):\n%s", diff)
	}
}

// A record that nobody can name makes all of them come back, as by the other way.
func TestPipesWithoutAnEventID(t *testing.T) {
	good := string(piped(t, record{Data: "fails", Key: "a"}))
	for _, payload := range []string{
		strings.Replace(good, `"eventID":`, `"other":`, 1), strings.Replace(good, `"eventID":"`, `"eventID":"\ud800`, 1),
	} {
		w := &worker{errs: failing("fails")}
		wantInvokeError(t, t.Context(), newHandler(t, w.handle), []byte(payload), "record 0 has no eventID and failed")
	}
}
