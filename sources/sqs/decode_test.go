package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// A message that is done is not decoded when it comes again, if its key is its own.
func TestReplaysAreNotDecoded(t *testing.T) {
	const n = 20
	byView := func(o *sqs.Options) { o.Key = func(v sqs.View) (string, error) { return v.ID(), nil } }
	byPayload := func(o *sqs.Options) { o.PayloadKey = idempotency.PayloadHash }
	fingerprint := func(o *sqs.Options) { o.Fingerprint = sqs.BodySHA256 }
	for _, test := range []struct {
		name    string
		options []func(*sqs.Options)
		want    []int32 // how many are decoded with the first delivery and with the second
	}{
		{"messageId", []func(*sqs.Options){guarded(t)}, []int32{n, 0}},
		{"messageId and a fingerprint", []func(*sqs.Options){guarded(t), fingerprint}, []int32{n, n}},
		{"Options.Key", []func(*sqs.Options){guarded(t), byView}, []int32{n, n}},
		{"Options.PayloadKey", []func(*sqs.Options){guarded(t), byPayload}, []int32{n, n}},
		{"KeyOf", []func(*sqs.Options){guarded(t), sqs.KeyOf(func(o order) string { return o.ID })}, []int32{n, n}},
		{"no guard", nil, []int32{n, n}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var decoded atomic.Int32
			h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
				if want := "o" + m.ID()[1:]; m.Body.ID != want {
					t.Errorf("body of %s has ID %q, want %q", m.ID(), m.Body.ID, want)
				}
				return nil
			}, append(test.options, func(o *sqs.Options) {
				o.Decode = func(body []byte, v any) error { decoded.Add(1); return json.Unmarshal(body, v) }
			})...)
			messages := numbered(n)
			for i := range messages {
				messages[i].Body = `{"id":"o` + messages[i].ID[1:] + `"}`
			}
			var got []int32
			for range 2 {
				decoded.Store(0)
				wantFailures(t, t.Context(), h, event(messages...))
				got = append(got, decoded.Load())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("messages that were decoded (-want +got):\n%s", diff)
			}
		})
	}
}

// A body that cannot be decoded leaves no claim, and goes to the sink once, inside a claim.
func TestUndecodableUnderItsOwnKey(t *testing.T) {
	for _, decode := range []func([]byte, any) error{nil, func([]byte, any) error { panic("no") }} {
		store := idempotency.NewMemoryStore()
		sinks := 0
		h := newHandler(t, func(context.Context, *sqs.Message[order]) error {
			t.Error("the handler ran")
			return nil
		}, withStore(t, store), func(o *sqs.Options) {
			o.Decode = decode
			o.Middleware = []batch.Middleware{func(batch.Handler) batch.Handler {
				return func(context.Context, *batch.Record) error { return nil } // what is empty is no work
			}}
			o.MaxAttempts = 2
			o.DeadLetter = func(_ context.Context, _ *batch.Record, err error) error {
				sinks++
				wantEntry(t, store, "m1", idempotency.InProgress)
				return nil
			}
		})
		poison := message{ID: "m1", Body: `{"id":`, Receives: 1}
		wantFailures(t, t.Context(), h, event(poison, message{ID: "m2", Body: `{"id":`, Receives: 1}), "m1", "m2")
		wantEntry(t, store, "m1", idempotency.Absent)
		poison.Receives = 2
		for range 2 { // the queue did not hear the first answer
			wantFailures(t, t.Context(), h, event(poison))
			wantEntry(t, store, "m1", idempotency.Completed)
		}
		if sinks != 1 {
			t.Errorf("%d calls of the sink, want 1", sinks)
		}
	}
}

// A fingerprint that fails because the body is broken does not hide what is wrong with it.
func TestUndecodableWithAFingerprint(t *testing.T) {
	sinks := 0
	h := newHandler(t, func(context.Context, *sqs.Message[order]) error { return nil }, guarded(t), func(o *sqs.Options) {
		o.PayloadFingerprint = idempotency.PayloadHash
		o.Decode = func([]byte, any) error { return batch.Permanent(errors.New("no order")) }
		o.DeadLetter = func(_ context.Context, _ *batch.Record, err error) error { sinks++; return nil }
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: `{"id":`}))
	if sinks != 1 {
		t.Errorf("%d calls of the sink, want 1", sinks)
	}
}

// A body that cannot be decoded takes no other message with the same business key with it.
func TestUndecodableBesideItsKey(t *testing.T) {
	one := func(o *sqs.Options) { o.Key = func(sqs.View) (string, error) { return "k", nil } }
	for _, n := range []int{1, 10} {
		w := &worker{}
		h := newHandler(t, func(ctx context.Context, m *sqs.Message[order]) error {
			return w.handle(ctx, &sqs.Message[string]{View: m.View})
		}, guarded(t), one, concurrency(n))
		messages := []message{{ID: "m1", Body: `{"id":`}, {ID: "m2", Body: `{}`}, {ID: "m3", Body: `{}`}}
		wantFailures(t, t.Context(), h, event(messages...), "m1")
		if ran := w.take(); len(ran) != 1 || ran[0] == "m1" {
			t.Errorf("%q ran, want m2 or m3", ran)
		}
	}
}
