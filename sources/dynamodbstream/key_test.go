package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// keyed is an item that names a key, which is that of an item and not of a change.
type keyed struct {
	ID string `dynamodbav:"id"`
}

func (k keyed) IdempotencyKey() string { return k.ID }

// testKey sends one change to a handler for T, and checks under which key it ran.
func testKey[T any](t *testing.T, name, want string, optFns ...func(*dynamodbstream.Options)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		store := idempotency.NewMemoryStore()
		got := "no run"
		h := newHandler(t, func(ctx context.Context, _ *dynamodbstream.Change[T]) error {
			info, _ := idempotency.FromContext(ctx)
			got = info.Key
			return nil
		}, append(optFns, withStore(t, store))...)
		wantCheckpoint(t, t.Context(), h, event(record{ID: "o1", Note: "v7", N: 1}), "")
		if got != want {
			t.Errorf("key is %q, want %q", got, want)
		}
		if entry, _ := store.Get("orders#" + want); entry.Status != idempotency.Completed {
			t.Errorf("entry of %q is %v, want it completed", want, entry.Status)
		}
	})
}

func TestKeySources(t *testing.T) {
	const own = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000#f07f8ca4b0b26cb9c4e5e77e00000001"
	testKey[order](t, "the change's own by default", own)
	testKey[map[string]any](t, "that of another type", own)
	testKey[keyed](t, "no method of the item", own)
	testKey[*keyed](t, "no method of a pointer to the item", own)
	testKey[order](t, "KeyOf", "o1/v7", dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string { return c.Keys.ID + "/" + c.New.Note }))
	testKey[order](t, "KeyOf the view", sequence(1),
		dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string { return c.SequenceNumber() }))
	testKey[order](t, "Options.Key", "MODIFY of "+eventID(1), func(o *dynamodbstream.Options) {
		o.Key = func(v dynamodbstream.View) (string, error) { return string(v.Operation()) + " of " + v.ID(), nil }
	})
	if keyOf(1) != own {
		t.Errorf("keys of tests are %q, want %q", keyOf(1), own)
	}
}

// Two changes of an item are two, whatever key its type names.
func TestKeyIsNotTheItems(t *testing.T) {
	for _, n := range []int{1, 10} {
		ran := 0
		h := newHandler(t, func(context.Context, *dynamodbstream.Change[keyed]) error { ran++; return nil }, concurrency(n), guarded(t))
		wantCheckpoint(t, t.Context(), h, event(noted("a0", "a1")...), "")
		wantCheckpoint(t, t.Context(), h, event(record{ID: "a", Note: "a2", N: 2}), "")
		if ran != 3 {
			t.Errorf("%d changes of an item ran, want 3", ran)
		}
	}
}

// A change has the key of another only if stream and eventID are the same. A table whose stream was switched off and on
// again has another stream.
func TestKeyOfTheSameEventInAnotherStream(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t))
	change := record{ID: "a", Note: "a", N: 1}
	wantCheckpoint(t, t.Context(), h, event(change), "")
	change.ARN = otherARN
	wantCheckpoint(t, t.Context(), h, event(change), "")
	w.want(t, "a", "a")
}

func TestKeyOptionErrors(t *testing.T) {
	guard := guarded(t)
	key := func(o *dynamodbstream.Options) { o.Key = func(dynamodbstream.View) (string, error) { return "k", nil } }
	fingerprint := func(o *dynamodbstream.Options) {
		o.Fingerprint = func(dynamodbstream.View) (string, error) { return "f", nil }
	}
	for _, test := range []struct {
		name    string
		options []func(*dynamodbstream.Options)
		want    []string
	}{
		{"KeyOf of another type", []func(*dynamodbstream.Options){guard, dynamodbstream.KeyOf(func(*dynamodbstream.Change[keyed]) string { return "" })},
			[]string{"dynamodbstream: KeyOf has a func(*dynamodbstream.Change[", "keyed]) string, want a func(*dynamodbstream.Change[", "order]) string"}},
		{"KeyOf of nil", []func(*dynamodbstream.Options){guard, dynamodbstream.KeyOf[order](nil)},
			[]string{"dynamodbstream: KeyOf has a nil function, want a func(*dynamodbstream.Change["}},
		{"both", []func(*dynamodbstream.Options){guard, key, byNote()}, []string{"dynamodbstream: both KeyOf and Options.Key are set, want one"}},
		{"Key without a guard", []func(*dynamodbstream.Options){key}, []string{"dynamodbstream: Options.Key is set, but Options.Idempotency is nil"}},
		{"KeyOf without a guard", []func(*dynamodbstream.Options){byNote()}, []string{"dynamodbstream: KeyOf is set, but Options.Idempotency is nil"}},
		{"all without a guard", []func(*dynamodbstream.Options){key, fingerprint},
			[]string{"Options.Key is set", "dynamodbstream: Options.Fingerprint is set, but Options.Idempotency is nil"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := dynamodbstream.NewHandler((&worker{}).handle, test.options...)
			wantError(t, err, test.want...)
		})
	}
}

// Case 15: a change without a key fails, with little and much concurrency and whatever of its own identity is missing, and
// no two of them share a key.
func TestKeyMissing(t *testing.T) {
	records := noted("a0", "b1", "c2", "d3")
	for name, missing := range map[string][2]string{
		"eventID missing":        {`"eventID":"@",`, ``},
		"eventID empty":          {`"eventID":"@"`, `"eventID":""`},
		"eventID null":           {`"eventID":"@"`, `"eventID":null`},
		"eventID a number":       {`"eventID":"@"`, `"eventID":5`},
		"eventSourceARN missing": {`"eventSourceARN":"` + ordersARN + `",`, ``},
		"eventSourceARN null":    {`"eventSourceARN":"` + ordersARN + `"`, `"eventSourceARN":null`},
	} {
		t.Run(name, func(t *testing.T) {
			without := func(i int) string {
				return records[i].change(strings.ReplaceAll(missing[0], "@", eventID(i)), missing[1])
			}
			payload := rawEvent(records[0].json(), without(1), without(2), records[3].json())
			for _, n := range []int{1, 10} {
				for _, options := range []func(*idempotency.Options){func(*idempotency.Options) {}, unprotected} {
					var logged logs
					store := idempotency.NewMemoryStore()
					w := &worker{}
					h := newHandler(t, w.handle, concurrency(n), withStore(t, store, options), logged.option)
					wantCheckpoint(t, t.Context(), h, payload, sequence(1))
					wantCheckpoint(t, t.Context(), h, payload, sequence(1))
					w.want(t, "a0", "d3")
					if store.Len() != 2 {
						t.Errorf("store has %d entries, want those of the two that have keys", store.Len())
					}
					if lines := logged.About(t, "record failed"); len(lines) != 4 || !strings.Contains(lines[0].Error, idempotency.ErrKeyMissing.Error()) {
						t.Errorf("lines are %+v, want four with %q", lines, idempotency.ErrKeyMissing)
					}
				}
				// Without a guard nobody asks for a key.
				w := &worker{}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, concurrency(n)), payload, "")
				w.want(t, "a0", "b1", "c2", "d3")
			}
		})
	}
}

// A business key that is missing is an error too, or, by option, lets changes run as often as they are delivered, of which
// then the shard is serial.
func TestKeyOfMissing(t *testing.T) {
	options := map[string]func(*dynamodbstream.Options){
		"KeyOf": dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string { return strings.TrimPrefix(c.New.Note, c.New.ID) }),
		"Options.Key": func(o *dynamodbstream.Options) {
			o.Key = func(v dynamodbstream.View) (string, error) {
				note := v.Raw().Change.NewImage["note"].String()
				return note[1:], nil
			}
		},
	}
	for name, key := range options {
		t.Run(name, func(t *testing.T) {
			payload := event(noted("a", "b", "c2")...)
			var logged logs
			store := idempotency.NewMemoryStore()
			w := &worker{}
			h := newHandler(t, w.handle, withStore(t, store), key, logged.option)
			for range 2 {
				wantCheckpoint(t, t.Context(), h, payload, sequence(0))
			}
			w.want(t, "c2")
			if lines := logged.About(t, "record failed"); len(lines) != 4 || !strings.HasSuffix(lines[0].Error, ": "+idempotency.ErrKeyMissing.Error()) {
				t.Errorf("lines are %+v, want four with %q", lines, idempotency.ErrKeyMissing)
			}
			if _, ok := store.Get("orders#2"); !ok || store.Len() != 1 {
				t.Errorf("store has %d entries, want that of the key 2", store.Len())
			}
			h = newHandler(t, w.handle, guarded(t, unprotected), key)
			for range 2 {
				wantCheckpoint(t, t.Context(), h, payload, "")
			}
			w.wantOrder(t, "a", "b", "c2", "a", "b")
			w.errs = failing("a")
			wantCheckpoint(t, t.Context(), h, payload, sequence(0))
			w.wantOrder(t, "a")
		})
	}
}

// A key function that fails or panics fails its own change, and what is behind it of its item. An image that is not there is
// what it easily forgets.
func TestKeyFunctionFails(t *testing.T) {
	fail := func(v dynamodbstream.View) (string, error) {
		switch v.ID() {
		case eventID(1):
			return "ignored", errors.New("no key today")
		case eventID(2):
			panic("key function panics")
		}
		return v.ID(), nil
	}
	for name, function := range map[string]func(*dynamodbstream.Options){
		"Options.Key":         func(o *dynamodbstream.Options) { o.Key = fail },
		"Options.Fingerprint": func(o *dynamodbstream.Options) { o.Fingerprint = fail },
	} {
		for _, n := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, concurrency %d", name, n), func(t *testing.T) {
				var logged logs
				w := &worker{}
				h := newHandler(t, w.handle, concurrency(n), guarded(t), function, logged.option)
				wantCheckpoint(t, t.Context(), h, event(noted("a0", "b1", "c2", "d3", "b4")...), sequence(1))
				w.want(t, "a0", "d3")
				if text := logged.Failure(t, eventID(1)).Error; !strings.Contains(text, `of change "`+eventID(1)+`": no key today`) {
					t.Errorf("error is %q, want one that names change and cause", text)
				}
				if n := logged.Failure(t, eventID(2)); !strings.Contains(n.Error, "key function panics") || !strings.Contains(n.Stack, "key_test.go") {
					t.Errorf("line is %+v, want the panic with its stack", n)
				}
			})
		}
	}
	t.Run("KeyOf", func(t *testing.T) {
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t), dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string { return c.New.Note }))
		records := noted("a0", "b1", "c2")
		records[1].Operation = "REMOVE" // which has no new image
		wantCheckpoint(t, t.Context(), h, event(records...), sequence(1))
		w.want(t, "a0", "c2")
	})
}

// Case 16: the same key with another payload is a mismatch, whether the first is done, or in this batch. It will not become
// a match, so the sink gets it.
func TestKeyFingerprint(t *testing.T) {
	options := func(t *testing.T) func(*dynamodbstream.Options) {
		guard := guarded(t)
		return func(o *dynamodbstream.Options) {
			guard(o)
			o.Concurrency = 1
			o.Key = func(v dynamodbstream.View) (string, error) { return v.Raw().Change.Keys["id"].String(), nil }
			o.Fingerprint = func(v dynamodbstream.View) (string, error) { return v.Raw().Change.NewImage["note"].String(), nil }
		}
	}
	first, same, other := record{ID: "o1", Note: "1", N: 1}, record{ID: "o1", Note: "1", N: 2}, record{ID: "o1", Note: "2", N: 3}
	const mismatch = "idempotency: key was used with another payload"
	for name, batches := range map[string][][]record{"stored": {{first}, {same, other}}, "in one batch": {{first, same, other}}} {
		t.Run(name, func(t *testing.T) {
			var logged logs
			w := &worker{}
			h := newHandler(t, w.handle, options(t), logged.option)
			for i, b := range batches {
				number := ""
				if i == len(batches)-1 {
					number = sequence(3)
				}
				wantCheckpoint(t, t.Context(), h, event(b...), number)
			}
			w.wantOrder(t, "1")
			if n := logged.Failure(t, eventID(3)); !strings.Contains(n.Error, mismatch) || n.Outcome != "failed" {
				t.Errorf("line is %+v, want a failure with %q", n, mismatch)
			}
			var dead sink
			h = newHandler(t, w.handle, options(t), dead.giveUpAfter(0))
			for _, b := range batches {
				wantCheckpoint(t, t.Context(), h, event(b...), "")
			}
			w.wantOrder(t, "1")
			dead.want(t, eventID(3)+" at 0")
			wantError(t, dead.errs[0], mismatch)
		})
	}
}

// Case 23: keys live 25 hours by default, an hour longer than a stream keeps what could come again.
func TestKeyExpiry(t *testing.T) {
	for _, test := range []struct {
		options func(*idempotency.Options)
		life    time.Duration
	}{
		{func(*idempotency.Options) {}, 25 * time.Hour},
		{func(o *idempotency.Options) { o.Expiry = 300 * time.Second }, 300 * time.Second},
		{func(o *idempotency.Options) { o.Expiry = 60 * 24 * time.Hour }, 60 * 24 * time.Hour},
	} {
		t.Run(test.life.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				h := newHandler(t, w.handle, guarded(t, test.options))
				for _, step := range []struct {
					after time.Duration
					want  []string
				}{{0, []string{"a"}}, {test.life, nil}, {time.Second, []string{"a"}}, {time.Second, nil}} {
					time.Sleep(step.after)
					wantCheckpoint(t, t.Context(), h, event(record{ID: "a", Note: "a", N: 1}), "")
					w.wantOrder(t, step.want...)
				}
			})
		})
	}
}

// Case 21: changes with one business key are one run, also of different items, and a failure of the first is one of both.
func TestKeyTwins(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		for _, ids := range [][2]string{{"g", "g"}, {"g", "h"}} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprintf("concurrency %d, items %q, fails %v", n, ids, fails), func(t *testing.T) {
					store := &faults{}
					w := &worker{}
					if fails {
						w.errs = failing("same")
					}
					h := newHandler(t, w.handle, concurrency(n), withStore(t, store), byNote())
					number := ""
					if fails {
						number = sequence(0)
					}
					wantCheckpoint(t, t.Context(), h, event(record{ID: ids[0], Note: "same", N: 0},
						record{ID: ids[1], Note: "same", N: 1}, record{ID: "x", Note: "other", N: 2}), number)
					w.want(t, "other", "same")
					if got := store.Claims.Load(); got != 2 {
						t.Errorf("%d claims, want 2", got)
					}
				})
			}
		}
	}
}

// Middleware and sinks see the key. A change without a guard has none.
func TestKeyInMiddleware(t *testing.T) {
	for _, test := range []struct {
		options func(*dynamodbstream.Options)
		want    string
	}{{guarded(t), keyOf(0)}, {func(*dynamodbstream.Options) {}, ""}} {
		got := ""
		middleware := func(o *dynamodbstream.Options) {
			o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
				return func(ctx context.Context, r *batch.Record) error {
					got = fmt.Sprintf("%s of %s, %s, note %q", r.Key, r.ID, r.Source, note(r.Value.(*dynamodbstream.Change[order])))
					return next(ctx, r)
				}
			}}
		}
		wantCheckpoint(t, t.Context(), newHandler(t, (&worker{}).handle, test.options, middleware), event(noted("a0")...), "")
		if diff := cmp.Diff(test.want+" of "+eventID(0)+", "+ordersARN+`, note "a0"`, got); diff != "" {
			t.Errorf("what middleware sees (-want +got):\n%s", diff)
		}
	}
}

// counted is an item that counts how often it is decoded.
type counted struct{ note string }

var (
	decoded   atomic.Int32
	errBroken = errors.New("broken image")
)

func (c *counted) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	decoded.Add(1)
	if note, ok := av.(*types.AttributeValueMemberM).Value["note"]; ok { // Keys have none
		c.note = note.(*types.AttributeValueMemberS).Value
	}
	if c.note == "broken" {
		return errBroken
	}
	return nil
}

// What is replayed is not decoded, where its key can be told without. Where it cannot, it is.
func TestKeyOfReplaysIsNotDecoded(t *testing.T) {
	const n, each = 20, 3 // Keys and both images
	payload := event(numbered(n)...)
	for _, test := range []struct {
		name    string
		options func(*dynamodbstream.Options)
		want    []int32 // how much is decoded with the first delivery and with the second
	}{
		{"eventID", func(*dynamodbstream.Options) {}, []int32{n * each, 0}},
		{"Options.Key", func(o *dynamodbstream.Options) {
			o.Key = func(v dynamodbstream.View) (string, error) { return v.ID(), nil }
			o.Fingerprint = o.Key
		}, []int32{n * each, 0}},
		{"KeyOf", dynamodbstream.KeyOf(func(c *dynamodbstream.Change[counted]) string { return c.New.note }), []int32{n * each, n * each}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[counted]) error {
				if c.New.note == "" || c.Old.note != c.New.note {
					t.Errorf("images are %+v and %+v, want two decoded ones", c.Old, c.New)
				}
				return nil
			}, guarded(t), test.options)
			var got []int32
			for range 2 {
				decoded.Store(0)
				wantCheckpoint(t, t.Context(), h, payload, "")
				got = append(got, decoded.Load())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("how much was decoded (-want +got):\n%s", diff)
			}
		})
	}
}

// A change that is claimed and cannot be decoded then fails with that error. Its claim is free again, and its attempt counted.
func TestKeyOfWhatCannotBeDecoded(t *testing.T) {
	for _, counts := range []bool{false, true} {
		t.Run(fmt.Sprint("counts ", counts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faults{}
				ran := 0
				h := newHandler(t, func(context.Context, *dynamodbstream.Change[counted]) error { ran++; return nil },
					withStore(t, store, func(o *idempotency.Options) { o.CountAttempts = counts }), func(o *dynamodbstream.Options) {
						o.ErrorOn = batch.ErrorOnAnyFailure
					})
				payload := event(record{ID: "a", Note: "a"}, record{ID: "b", Note: "broken", N: 1}, record{ID: "b", Note: "c", N: 2})
				begin := time.Now()
				for attempt := 1; attempt <= 3; attempt++ {
					_, err := h.Invoke(t.Context(), payload)
					if !errors.Is(err, errBroken) {
						t.Errorf("error is %v, want %v in it", err, errBroken)
					}
					wantError(t, err, `OldImage of change "`+eventID(1)+`"`)
					entry, ok := store.Get("orders#" + keyOf(1))
					if entry.Status == idempotency.Completed || ok != counts || (counts && entry.Attempts != attempt) {
						t.Errorf("entry is %+v, there is one: %v, want one with %d attempts: %v", entry, ok, attempt, counts)
					}
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("redeliveries took %v, want no wait for the claim", took)
				}
				if got := store.Releases.Load(); ran != 1 || got != 3 {
					t.Errorf("%d ran, %d claims were released, want 1 and 3", ran, got)
				}
			})
		})
	}
}
