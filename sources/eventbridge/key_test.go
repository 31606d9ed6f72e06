package eventbridge_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// The default keys. An event has one by whichever way it arrives; what has none by itself is an error that says what to do.
func TestOwnKey(t *testing.T) {
	event := placed(1, "o1")
	const schedule = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly"
	for _, test := range []struct{ name, event, key, err string }{
		{"an envelope", event, keyOf(1), ""},
		{"with metadata", withMetadata(2, event, "g"), keyOf(1), ""},
		{"with metadata, as a string", withMetadata(2, quote(event), "g"), keyOf(1), ""},
		{"a replay", change(event, `"version"`, `"replay-name":"fix","version"`), keyOf(1), ""},
		{"parts that could be taken for others", change(event, "com.example.orders", "a#b%"), "a%23b%25#" + uuid(1), ""},
		{"with metadata, without an id", withMetadata(2, change(event, `"id":"`+uuid(1)+`",`, ""), "g"), keyOf(2), ""},
		{"with metadata, raw", withMetadata(2, `{"id":"o1"}`, "g"), "aws:EventId#" + uuid(2), ""},
		{"with metadata, raw, of a source", change(withMetadata(2, `{"id":"o1"}`, "g"), `"aws:EventId"`, `"aws:Source":"s","aws:EventId"`), "s#" + uuid(2), ""},
		{"a scheduled rule", tick, ruleARN + "#2026-09-23T18:00:00Z", ""},
		{"a scheduled rule, another id", change(tick, "cdc73f9d", "00000000"), ruleARN + "#2026-09-23T18:00:00Z", ""},
		{"a scheduled rule, another zone", change(tick, "18:00:00Z", "20:00:00+02:00"), ruleARN + "#2026-09-23T18:00:00Z", ""},
		{"a scheduled rule, another tick", change(tick, "18:00:00Z", "19:00:00Z"), ruleARN + "#2026-09-23T19:00:00Z", ""},
		{"a scheduled rule without a time", change(tick, "18:00:00Z", "six"), "aws.events#cdc73f9d-aea9-11e3-9d5a-835b769c0d9c", ""},
		{"a scheduled rule without resources", change(tick, `["`+ruleARN+`"]`, `[]`), "aws.events#cdc73f9d-aea9-11e3-9d5a-835b769c0d9c", ""},
		{"a scheduled rule, an empty one", change(tick, ruleARN, ""), "aws.events#cdc73f9d-aea9-11e3-9d5a-835b769c0d9c", ""},
		{"a scheduled rule, a broken one", change(tick, ruleARN, "a\xff"), "aws.events#cdc73f9d-aea9-11e3-9d5a-835b769c0d9c", ""},
		{"a scheduled rule without an id", change(tick, `"id":`, `"other":`), ruleARN + "#2026-09-23T18:00:00Z", ""},
		{"Scheduler's input", templated, schedule + "#2026-09-23T18:00:00Z", ""},

		{"Scheduler", scheduled, "", `Scheduler's default input has nothing that is the same at every attempt, want ` +
			`{"source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>","detail-type":"Schedule","detail":{}}` +
			` as the schedule's input, or a key of your own by KeyOf or Options.Key`},
		{"Scheduler, a misspelt keyword", change(templated, "2026-09-23T18:00:00Z", "<aws.scheduler.schedule-time>"), "",
			`Scheduler did not replace a keyword in source "` + schedule + `" and id "<aws.scheduler.schedule-time>"`},
		{"Scheduler, a misspelt ARN", change(templated, schedule, "<aws.scheduler.arn>"), "", `Scheduler did not replace a keyword`},
		{"no id", change(event, `"id":"`+uuid(1)+`",`, ""), "", "the envelope has no id, want one"},
		{"an empty id", change(event, uuid(1), ""), "", "the envelope has no id, want one"},
		{"id null", change(event, `"`+uuid(1)+`"`, "null"), "", "the envelope has no id, want one"},
		{"an empty source", change(event, "com.example.orders", ""), "", "the envelope has no source, want one"},
		{"raw", `{"id":"o1"}`, "", "data without an envelope, which has detail-type, source and detail, have no id"},
		{"with metadata without an id", change(withMetadata(2, `{"id":"o1"}`, "g"), `"aws:EventId"`, `"other"`), "",
			"the metadata have no aws:EventId, want one, or a key of your own by KeyOf or Options.Key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := &worker{}, &results{}
			h := newHandler(t, w.handle, guarded(t), r.option)
			if test.err == "" {
				wantDone(t, t.Context(), h, []byte(test.event))
				wantDone(t, t.Context(), h, array(test.event, test.event))
				if diff := cmp.Diff([]string{test.key, test.key, test.key}, r.keys); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				if ran := w.take(); len(ran) != 1 {
					t.Errorf("%v ran, want it once", ran)
				}
				return
			}
			e := wantFailed(t, t.Context(), h, []byte(test.event), 1, 1, "eventbridge: event ", test.err)
			if !errors.Is(e, idempotency.ErrKeyMissing) {
				t.Errorf("error is %v, want %v", e, idempotency.ErrKeyMissing)
			}
			w.wantOrder(t)

			// With a key of one's own it is an event like others.
			h = newHandler(t, w.handle, guarded(t), r.option, func(o *eventbridge.Options) {
				o.Key = func(v eventbridge.View) (string, error) { return "mine", nil }
			})
			r.keys = nil
			wantDone(t, t.Context(), h, []byte(test.event))
			if diff := cmp.Diff([]string{"mine"}, r.keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}

			// And the user may choose to go without.
			w.take()
			h = newHandler(t, w.handle, guarded(t, func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }))
			wantDone(t, t.Context(), h, []byte(test.event))
			wantDone(t, t.Context(), h, []byte(test.event))
			if ran := w.take(); len(ran) != 2 {
				t.Errorf("%v ran, want it twice", ran)
			}
		})
	}
}

type keyed struct {
	ID string `json:"id"`
}

func (k keyed) IdempotencyKey() string { return k.ID }

// Business keys: what a producer publishes twice runs once. A missing one is an error, never one shared key (case 15).
func TestBusinessKey(t *testing.T) {
	ran := 0
	count := func(context.Context, *eventbridge.Event[keyed]) error { ran++; return nil }
	for name, option := range map[string]func(*eventbridge.Options){
		"method": nil,
		"KeyOf":  eventbridge.KeyOf(func(k keyed) string { return k.ID }),
		"Key": func(o *eventbridge.Options) {
			o.Key = func(v eventbridge.View) (string, error) {
				if string(v.RawDetail()) == `{"id":"","amount":3}` {
					return "", nil
				}
				return v.DetailType(), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ran = 0
			h := newHandler(t, count, guarded(t), option)
			wantDone(t, t.Context(), h, array(placed(1, "o1"), placed(2, "o1")))
			wantDone(t, t.Context(), h, []byte(placed(4, "o1")))
			if ran != 1 {
				t.Errorf("ran %d times, want once", ran)
			}
			e := wantFailed(t, t.Context(), h, []byte(placed(3, "")), 1, 1, `eventbridge: key of event "`+uuid(3)+`": idempotency: key is missing`)
			if !errors.Is(e, idempotency.ErrKeyMissing) {
				t.Errorf("error is %v, want %v", e, idempotency.ErrKeyMissing)
			}
		})
	}
}

// A key with another payload is a mismatch, in one invocation and across two (case 16).
func TestFingerprint(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), byOrder(), concurrency(1), func(o *eventbridge.Options) { o.Fingerprint = eventbridge.DetailSHA256 })
	wantFailed(t, t.Context(), h, array(placed(1, "o1"), placed(2, "o1")), 1, 2, idempotency.ErrFingerprintMismatch.Error())
	wantFailed(t, t.Context(), h, []byte(placed(2, "o1")), 1, 1, idempotency.ErrFingerprintMismatch.Error())
	wantDone(t, t.Context(), h, []byte(placed(1, "o1")))
	w.wantOrder(t, "o1")
}

// A detail that is a JSON string stands for its text, in the fingerprint too.
func TestDetailSHA256(t *testing.T) {
	sum := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	const detail = `{"id":"o1","amount":1}`
	for _, test := range []struct{ name, event, want string }{
		{"an object", placed(1, "o1"), sum(detail)},
		{"a string", change(placed(1, "o1"), detail, quote(detail)), sum(detail)},
		{"an escaped string", change(placed(1, "o1"), detail, `"\u0061"`), sum("a")},
		{"raw", `{"a": 1}`, sum(`{"a": 1}`)},
		{"none", change(placed(1, "o1"), `,"detail":`+detail, ""), sum("")},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			h, err := eventbridge.NewHandler(func(context.Context, *eventbridge.Event[any]) error { return nil }, func(o *eventbridge.Options) {
				o.Idempotency, o.Logger = newGuard(t, idempotency.NewMemoryStore()), discard
				o.Key = func(v eventbridge.View) (string, error) {
					fingerprint, err := eventbridge.DetailSHA256(v)
					got = append(got, fingerprint)
					return "k", err
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = h.Invoke(t.Context(), []byte(test.event)) // one without a detail fails
			if len(got) == 0 || got[0] != test.want {
				t.Errorf("fingerprints are %v, want %s first", got, test.want)
			}
		})
	}
}

func runReplays(o *eventbridge.Options) { o.RunReplays = true }

// A replay is recognised by its key, and runs once more for each name if it is asked to.
func TestReplay(t *testing.T) {
	replay := func(name string) []byte {
		return []byte(change(placed(1, "o1"), `"version"`, `"replay-name":"`+name+`","version"`))
	}
	live, again := []byte(withMetadata(1, `{"id":"o1"}`, "g")), []byte(change(withMetadata(1, `{"id":"o1"}`, "g"), "LIVE", "REPLAY"))
	for _, test := range []struct {
		name       string
		deliveries [][]byte
		key        func(*eventbridge.Options)
		runReplays bool
		keys       []string
		ran        int
	}{
		{"by default", [][]byte{[]byte(placed(1, "o1")), replay("fix"), replay("more")}, nil, false, []string{keyOf(1), keyOf(1), keyOf(1)}, 1},
		{"run", [][]byte{[]byte(placed(1, "o1")), replay("fix"), replay("more"), replay("fix")}, nil, true,
			[]string{keyOf(1), "replay-name#fix#com.example.orders%23" + uuid(1), "replay-name#more#com.example.orders%23" + uuid(1),
				"replay-name#fix#com.example.orders%23" + uuid(1)}, 3},
		{"run, business key", [][]byte{[]byte(placed(1, "o1")), replay("fix"), replay("fix")}, byOrder(), true,
			[]string{"o1", "replay-name#fix#o1", "replay-name#fix#o1"}, 2},
		{"run, key function", [][]byte{[]byte(placed(1, "o1")), replay("fix"), replay("fix")}, func(o *eventbridge.Options) {
			o.Key = func(eventbridge.View) (string, error) { return "k", nil }
		}, true, []string{"k", "replay-name#fix#k", "replay-name#fix#k"}, 2},
		{"in one array", [][]byte{array(placed(1, "o1"), string(replay("fix")), string(replay("fix")))}, nil, true,
			[]string{keyOf(1), "replay-name#fix#com.example.orders%23" + uuid(1), "replay-name#fix#com.example.orders%23" + uuid(1)}, 2},
		{"a custom event bus", [][]byte{live, again}, nil, false, []string{"aws:EventId#" + uuid(1), "aws:EventId#" + uuid(1)}, 1},
		{"a custom event bus, run", [][]byte{live, again, again}, nil, true, []string{"aws:EventId#" + uuid(1),
			"replay-name#REPLAY#aws:EventId%23" + uuid(1), "replay-name#REPLAY#aws:EventId%23" + uuid(1)}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := &worker{}, &results{}
			h := newHandler(t, w.handle, guarded(t), test.key, concurrency(1), r.option, func(o *eventbridge.Options) { o.RunReplays = test.runReplays })
			for _, d := range test.deliveries {
				wantDone(t, t.Context(), h, d)
			}
			if diff := cmp.Diff(test.keys, r.keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if ran := w.take(); len(ran) != test.ran {
				t.Errorf("ran %d times, want %d", len(ran), test.ran)
			}
		})
	}
}
