package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

type click struct {
	ID    string `json:"id"`
	Count int    `json:"count"`
}

// Data types that name their keys.
type (
	valueKeyed   struct{ K string }
	pointerKeyed struct{ K string }
)

func (v valueKeyed) IdempotencyKey() string    { return v.K }
func (p *pointerKeyed) IdempotencyKey() string { return p.K }

// keysOf sends the event to a handler for T, and returns the keys under which its records ran.
func keysOf[T any](t *testing.T, payload []byte, optFns ...func(*kinesis.Options)) (keys []string) {
	t.Helper()
	store := idempotency.NewMemoryStore()
	h := newHandler(t, func(ctx context.Context, _ *kinesis.Record[T]) error {
		info, _ := idempotency.FromContext(ctx)
		keys = append(keys, info.Key)
		return nil
	}, append(optFns, withStore(t, store), concurrency(1))...)
	wantCheckpoint(t, t.Context(), h, payload, "")
	for _, key := range keys {
		if entry, ok := store.Get("clicks#" + key); !ok || entry.Status != idempotency.Completed {
			t.Errorf("entry of %q is %v, want it completed", key, entry.Status)
		}
	}
	return keys
}

// testKey checks the key of one record.
func testKey[T any](t *testing.T, name, want string, optFns ...func(*kinesis.Options)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		got := keysOf[T](t, event(record{Data: `{"k":"business","id":"c1"}`, Key: "p", N: 6}), optFns...)
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

func TestKeySources(t *testing.T) {
	const own = "arn:aws:kinesis:us-east-2:123456789012:stream/clicks" +
		"#shardId-000000000006:49590338271490256608559692538361571095921575900000000006"
	testKey[string](t, "place by default", own)
	testKey[click](t, "place of data without a key", own)
	testKey[valueKeyed](t, "method on a value", "business")
	testKey[*valueKeyed](t, "method on a value, by a pointer", "business")
	testKey[pointerKeyed](t, "method on a pointer", "business")
	testKey[*pointerKeyed](t, "method on a pointer, by a pointer", "business")
	testKey[click](t, "KeyOf", "c1", kinesis.KeyOf(func(c click) string { return c.ID }))
	testKey[*click](t, "KeyOf of a pointer", "c1", kinesis.KeyOf(func(c *click) string { return c.ID }))
	testKey[valueKeyed](t, "KeyOf before the method", "of business", kinesis.KeyOf(func(v valueKeyed) string { return "of " + v.K }))
	testKey[valueKeyed](t, "Options.Key before the method", "p/"+sequence(6), func(o *kinesis.Options) {
		o.Key = func(v kinesis.View) (string, error) { return v.PartitionKey() + "/" + v.SequenceNumber(), nil }
	})
}

// A record's key is its place: of an aggregate's record with its number there, and the same whether or not a consumer with
// enhanced fan-out reads the stream.
func TestKeyOfPlace(t *testing.T) {
	for _, arn := range []string{clicksARN, consumerARN} {
		got := keysOf[string](t, event(record{Data: "x", Key: "p", N: 1, ARN: arn},
			record{Data: aggregate("a0", "b1"), Key: "p", N: 2, ARN: arn}, record{Data: "y", Key: "p", N: 1, ARN: arn, Shard: otherShard}))
		want := []string{clicksARN + "#" + eventID(1), clicksARN + "#" + eventID(2) + "#0", clicksARN + "#" + eventID(2) + "#1",
			clicksARN + "#" + otherShard + ":" + sequence(1)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	}
}

// Case 22: what changes from delivery to delivery, or with the way the record is read, is no part of the key.
func TestKeyOfRedelivery(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t))
	r := record{Data: "a", Key: "p", N: 1}
	wantCheckpoint(t, t.Context(), h, event(r), "")
	r.ARN, r.Key, r.Data = consumerARN, "q", "b"
	r.At = r.At.AddDate(2020, 0, 0)
	wantCheckpoint(t, t.Context(), h, event(r), "")
	wantCheckpoint(t, t.Context(), h, rawEvent(change(r, "arn:aws:iam::123456789012:role/lambda-role", "another")), "")
	w.wantOrder(t, "a")
	r.N = 2 // a producer that sent it again
	wantCheckpoint(t, t.Context(), h, event(r), "")
	w.wantOrder(t, "b")
}

// A record whose place is not sure has no key, and fails with a guard, alone. Without one it runs.
func TestKeyOfNoPlace(t *testing.T) {
	r := record{Data: "a1", Key: "a", N: 1}
	id := `"eventID":"` + eventID(1) + `"`
	for _, test := range []struct{ name, record, number string }{
		{"eventID missing", change(r, id+",", ""), sequence(1)},
		{"eventID null", change(r, id, `"eventID":null`), sequence(1)},
		{"eventID a number", change(r, id, `"eventID":5`), sequence(1)},
		{"eventID empty", change(r, id, `"eventID":""`), sequence(1)},
		{"eventID without a shard", change(r, id, `"eventID":"`+sequence(1)+`"`), sequence(1)},
		{"eventID with an empty shard", change(r, id, `"eventID":":`+sequence(1)+`"`), sequence(1)},
		{"eventID of another record", change(r, id, `"eventID":"`+eventID(2)+`"`), sequence(1)},
		{"eventID of a made-up kind", change(r, id, `"eventID":"1"`), sequence(1)},
		{"ARN missing", change(r, `"eventSourceARN":"`+clicksARN+`",`, ""), sequence(1)},
		{"ARN of a consumer alone", change(r, clicksARN, "/consumer/x:1"), sequence(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{1, 10} {
				for _, child := range []bool{false, true} {
					text := test.record
					if child {
						text = strings.Replace(text, "YTE=", encode(aggregate("a1")), 1)
					}
					payload := rawEvent(record{Data: "z0", Key: "z"}.json(), text, record{Data: "c2", Key: "c", N: 3}.json())
					var failed errorHook
					w := &worker{}
					h := newHandler(t, w.handle, concurrency(n), guarded(t), failed.option)
					wantCheckpoint(t, t.Context(), h, payload, test.number)
					w.want(t, "c2", "z0")
					if err := failed.only(t); !errors.Is(err, idempotency.ErrKeyMissing) {
						t.Errorf("error is %v, want %v", err, idempotency.ErrKeyMissing)
					}
					h = newHandler(t, w.handle, concurrency(n))
					wantCheckpoint(t, t.Context(), h, payload, "")
					w.want(t, "a1", "c2", "z0")
				}
			}
		})
	}
}

// Without a guard, too, two records with one eventID and different sequence numbers are not one record: neither is told as
// done for the other.
func TestKeyOfOneEventIDForTwo(t *testing.T) {
	second := change(record{Data: "b2", Key: "b", N: 2}, `"eventID":"`+eventID(2), `"eventID":"`+eventID(1))
	w := &worker{}
	response, err := newHandler(t, w.handle).Invoke(t.Context(), rawEvent(record{Data: "a1", Key: "a", N: 1}.json(), second))
	if ran := strings.Join(w.take(), " "); ran != "a1 b2" && err == nil && string(response) == answer("") {
		t.Errorf("%s ran, and all is told as done", ran)
	}
}

// So it is where one sequence number is the end of the other.
func TestKeyOfOneEventIDAndTheEndOfItsNumber(t *testing.T) {
	a, b := record{Data: "a", Key: "p", N: 12}, record{Data: "b", Key: "p", N: 12}
	end := change(b, `"sequenceNumber":"`+sequence(12)+`"`, `"sequenceNumber":"`+sequence(12)[1:]+`"`)
	for _, texts := range [][]string{{a.json(), end}, {end, a.json()}} {
		w := &worker{}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle), rawEvent(texts...), "")
		w.want(t, "a", "b")
	}
}

// Records without a sequence number are not one record either, whatever their eventIDs say. Without a guard each runs. With
// one none does: their place is not known.
func TestKeyOfNoSequenceNumber(t *testing.T) {
	for _, id := range []string{shardID + ":", shardID, ":", ""} {
		for _, aggregated := range []bool{false, true} {
			t.Run(fmt.Sprintf("eventID %q, aggregates %v", id, aggregated), func(t *testing.T) {
				numberless := func(data string) string {
					r := record{Data: data, Key: "p"}
					if aggregated {
						r.Data = aggregate(data)
					}
					return change(r, `"sequenceNumber":"`+sequence(0)+`"`, `"sequenceNumber":""`, eventID(0), id)
				}
				payload := rawEvent(numberless("a"), numberless("b"))
				t.Run("guard", func(t *testing.T) {
					var failed errorHook
					w := &worker{}
					h := newHandler(t, w.handle, concurrency(1), guarded(t), failed.option)
					for range 2 {
						wantInvokeError(t, t.Context(), h, payload, "kinesis: record 0 has no sequence number", idempotency.ErrKeyMissing.Error())
					}
					w.wantOrder(t)
					for _, err := range failed {
						if !errors.Is(err, idempotency.ErrKeyMissing) {
							t.Errorf("error is %v, want %v", err, idempotency.ErrKeyMissing)
						}
					}
				})
				t.Run("no guard", func(t *testing.T) {
					w := &worker{}
					wantCheckpoint(t, t.Context(), newHandler(t, w.handle), payload, "")
					w.wantOrder(t, "a", "b")
				})
			})
		}
	}
}

// Case 15: a record without a key of its own fails, or runs by option. No two of them share one.
func TestKeyMissing(t *testing.T) {
	var records []record
	for i, data := range []string{`{"count":1}`, `{"count":1}`, `{"id":""}`, `{"id":null}`, `{"id":"c"}`} {
		records = append(records, record{Data: data, Key: string(rune('a' + i)), N: i})
	}
	byID := kinesis.KeyOf(func(c click) string { return c.ID })
	for _, n := range []int{1, 10} {
		ran := make(chan string, 9)
		handle := func(_ context.Context, r *kinesis.Record[click]) error { ran <- r.PartitionKey(); return nil }
		wantCheckpoint(t, t.Context(), newHandler(t, handle, concurrency(n), guarded(t), byID), event(records...), sequence(0))
		if len(ran) != 1 || <-ran != "e" {
			t.Error("another record ran than the one with a key")
		}
		wantCheckpoint(t, t.Context(), newHandler(t, handle, concurrency(n), guarded(t, unprotected), byID), event(records...), "")
		if len(ran) != 5 {
			t.Errorf("%d records ran, want all 5", len(ran))
		}
	}
}

// A key function that fails or panics fails its record alone, and says for which.
func TestKeyFunctionFails(t *testing.T) {
	for _, test := range []struct {
		fail func() error
		want string
	}{
		{func() error { return errors.New("no such key") }, `kinesis: key of record "` + eventID(1) + `": no such key`},
		{func() error { panic("key panics") }, "key panics"},
	} {
		var failed errorHook
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t), failed.option, func(o *kinesis.Options) {
			o.Key = func(v kinesis.View) (string, error) {
				if v.SequenceNumber() == sequence(1) {
					return "", test.fail()
				}
				return v.ID(), nil
			}
		})
		wantCheckpoint(t, t.Context(), h, event(keyed("a", "b", "c")...), sequence(1))
		w.want(t, "a", "c")
		wantError(t, failed.only(t), test.want)
	}
	var failed errorHook
	h := newHandler(t, (&worker{}).handle, guarded(t), failed.option, func(o *kinesis.Options) {
		o.Fingerprint = func(kinesis.View) (string, error) { return "", errors.New("no print") }
	})
	wantCheckpoint(t, t.Context(), h, event(keyed("a")...), sequence(0))
	wantError(t, failed.only(t), `kinesis: fingerprint of record "`+eventID(0)+`": no print`)
}

func TestKeyOptionErrors(t *testing.T) {
	guard := guarded(t)
	key := func(o *kinesis.Options) { o.Key = func(kinesis.View) (string, error) { return "k", nil } }
	fingerprint := func(o *kinesis.Options) { o.Fingerprint = kinesis.DataSHA256 }
	byID := kinesis.KeyOf(func(c click) string { return c.ID })
	for _, test := range []struct {
		name    string
		options []func(*kinesis.Options)
		want    []string
	}{
		{"KeyOf of another type", []func(*kinesis.Options){guard, kinesis.KeyOf(func(s string) string { return s })},
			[]string{"kinesis: KeyOf has a func(string) string, want a func(kinesis_test.click) string"}},
		{"KeyOf of a pointer to it", []func(*kinesis.Options){guard, kinesis.KeyOf(func(c *click) string { return c.ID })},
			[]string{"kinesis: KeyOf has a func(*kinesis_test.click) string"}},
		{"KeyOf of nil", []func(*kinesis.Options){guard, kinesis.KeyOf[click](nil)},
			[]string{"kinesis: KeyOf has a nil function, want a func(kinesis_test.click) string"}},
		{"both", []func(*kinesis.Options){guard, key, byID}, []string{"kinesis: both KeyOf and Options.Key are set, want one"}},
		{"no guard", []func(*kinesis.Options){key, fingerprint},
			[]string{"kinesis: Options.Key is set, but Options.Idempotency is nil", "kinesis: Options.Fingerprint is set, but Options.Idempotency is nil"}},
		{"KeyOf and no guard, too many workers", []func(*kinesis.Options){byID, concurrency(10_001)},
			[]string{"kinesis: KeyOf is set, but Options.Idempotency is nil, want a guard or neither", "Options.Concurrency is 10001"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := kinesis.NewHandler(func(context.Context, *kinesis.Record[click]) error { return nil }, test.options...)
			wantError(t, err, test.want...)
		})
	}
}

// A method IdempotencyKey does nothing without a guard: it is no option that someone set.
func TestKeyMethodWithoutGuard(t *testing.T) {
	ran := 0
	h := newHandler(t, func(context.Context, *kinesis.Record[valueKeyed]) error { ran++; return nil })
	wantCheckpoint(t, t.Context(), h, event(record{Data: "{}", Key: "a"}, record{Data: "{}", Key: "b", N: 1}), "")
	if ran != 2 {
		t.Errorf("%d records ran, want 2", ran)
	}
}

// A key function may say with ErrKeyMissing that there is no key, as one that returns "" does.
func TestKeyMissingSaidByAnError(t *testing.T) {
	for name, options := range map[string]func(*kinesis.Options){"fails": guarded(t), "runs unprotected": guarded(t, unprotected)} {
		w := &worker{}
		h := newHandler(t, w.handle, options, func(o *kinesis.Options) {
			o.Key = func(kinesis.View) (string, error) { return "", fmt.Errorf("no order: %w", idempotency.ErrKeyMissing) }
		})
		if name == "fails" {
			wantCheckpoint(t, t.Context(), h, event(record{Data: "a", Key: "a"}), sequence(0))
			w.want(t)
			continue
		}
		for range 2 {
			wantCheckpoint(t, t.Context(), h, event(record{Data: "a", Key: "a"}), "")
			w.want(t, "a")
		}
	}
}
