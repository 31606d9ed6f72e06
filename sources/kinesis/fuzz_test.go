package kinesis_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// Whatever the payload is, Invoke does not panic, and answers with a sequence number out of the payload or with an error.
func FuzzInvoke(f *testing.F) {
	f.Add(event(keyed("a1", "f", "a2")...))
	f.Add(event(record{Data: aggregate("a1", "f", "a2"), Key: "p"}, record{Data: brokenAggregate, Key: "p", N: 1}))
	f.Add(event(record{Data: deflate(`{"id":"c1"}`), Key: "a"}, record{Data: aggregateOf(deflate("f")), Key: "a", N: 1}))
	f.Add(rawEvent(documented))
	f.Add(windowed{records: keyed("a", "f", "b"), state: `{"a":1}`, final: true}.event())
	f.Add(windowed{state: `{"a":1}`, final: true, early: true}.event())
	for _, seed := range []string{
		``, `null`, `{}`, `{"Records":[]}`, `{"Records":[null,1,{}]}`, `{"Records":[{"kinesis":{"data":"YQ=="}}]}x`,
		`{"Records":[{"eventID":"a:5","kinesis":{"sequenceNumber":"5","data":"ZQ=="},"eventSourceARN":"a"},{"eventID":"b:6","kinesis":{"sequenceNumber":"6","data":"Zg=="}}]}`,
		`{"Records":[{"eventID":"#:\ud800","kinesis":{"sequenceNumber":"\ud800","data":"Zg=="}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		read := func(v kinesis.View) error {
			_, _, _, _, _ = v.PartitionKey(), v.ShardID(), v.StreamARN(), v.ArrivedAt(), v.Raw()
			_, _ = v.SubSequenceNumber()
			if !json.Valid([]byte(v.JSON())) {
				t.Errorf("JSON of record %q is %q", v.ID(), v.JSON())
			}
			if strings.Contains(string(v.RawData()), "f") {
				return batch.RetryAfter(time.Second, context.Canceled)
			}
			return nil
		}
		handle := func(_ context.Context, r *kinesis.Record[string]) error { return read(r.View) }
		fold := func(_ context.Context, s map[string]any, r *kinesis.Record[string]) (map[string]any, error) {
			s[r.Data] = true
			return s, read(r.View)
		}
		numbers := stringsOf(payload)
		for _, h := range []invoker{
			newHandler(t, func(_ context.Context, r *kinesis.Record[any]) error { return read(r.View) }, concurrency(2)),
			newHandler(t, handle, guarded(t), gunzip(1<<20), func(o *kinesis.Options) { o.Fingerprint = kinesis.DataSHA256 }),
			newHandler(t, handle, func(o *kinesis.Options) {
				o.Watermark = kinesis.AssumeParallelizationFactorOne("c", watermark.NewMemoryStore())
			}),
			newWindowHandler(t, fold, func(context.Context, *kinesis.Window[map[string]any]) error { return nil }, guarded(t)),
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			begin := time.Now()
			response, err := h.Invoke(ctx, payload)
			cancel()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v, want no time: nothing waits here", took)
			}
			if (response == nil) != (err != nil) {
				t.Fatalf("answer is %q, error is %v, want one of them", response, err)
			}
			if err != nil {
				continue
			}
			var decoded struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			if err := json.Unmarshal(response, &decoded); err != nil || len(decoded.BatchItemFailures) > 1 {
				t.Fatalf("answer is %s, error is %v, want JSON with one identifier at most", response, err)
			}
			for _, item := range decoded.BatchItemFailures {
				if item.ItemIdentifier == "" || !slices.Contains(numbers, item.ItemIdentifier) {
					t.Errorf("%q is reported, want one of %q", item.ItemIdentifier, numbers)
				}
			}
		}
	})
}

// stringsOf returns every string that is in the payload as encoding/json reads it.
func stringsOf(payload []byte) (texts []string) {
	decoder := json.NewDecoder(strings.NewReader(string(payload)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return texts
		}
		if text, ok := token.(string); ok {
			texts = append(texts, text)
		}
	}
}
