package eventbridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// A payload that has no event is an error that says what it is, never an empty success. Nothing of it runs.
func TestBadPayload(t *testing.T) {
	good := placed(0, "o1")
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "eventbridge: event is not JSON: unexpected EOF"},
		{"not JSON", "hello", "eventbridge: event is not JSON: "},
		{"cut off", "[" + good, "eventbridge: event is not JSON: "},
		{"cut off in an event", good[:len(good)-1], "eventbridge: event is not JSON: "},
		{"trailing bytes", good + "x", "eventbridge: event is followed by more bytes at offset "},
		{"two payloads", good + good, "eventbridge: event is followed by more bytes at offset "},
		{"a comma too many", "[" + good + ",]", "eventbridge: event is not JSON: "},
		{"an empty array", "[]", "eventbridge: event is an empty array, want at least one event"},
		{"an empty array with space", " [ ] ", "eventbridge: event is an empty array, want at least one event"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, option func(*eventbridge.Options)) {
				w := &worker{}
				answer, err := newHandler(t, w.handle, option).Invoke(t.Context(), []byte(test.payload))
				if answer != nil {
					t.Errorf("answer is %q, want none", answer)
				}
				wantError(t, err, test.want)
				w.wantOrder(t)
			})
		})
	}
}

// An event that cannot be used fails alone, in front of others and behind them. Its siblings are finished, and do not run
// again when all come back, if there is a guard.
func TestBadEvent(t *testing.T) {
	event, detail := placed(1, "o1"), `"detail":{"id":"o1","amount":1}`
	for _, test := range []struct{ name, event, want string }{
		{"null", "null", "eventbridge: event is null, want one"},
		{"a number", "17", ""}, // without a guard it is no order, with one it has no key
		{"a string", `"hello"`, ""},
		{"a boolean", "true", ""},
		{"an array", "[1]", ""},
		{"detail missing", change(event, ","+detail, ""), `eventbridge: detail of event "` + uuid(1) + `" is missing, want one`},
		{"detail null", change(event, detail, `"detail":null`), `eventbridge: detail of event "` + uuid(1) + `" is not a valid eventbridge_test.order: found null`},
		{"detail a number", change(event, detail, `"detail":17`), `JSON number at offset 0 does not fit a Go eventbridge_test.order`},
		{"detail a text", change(event, detail, `"detail":"secret"`), `JSON string at offset 0 does not fit a Go eventbridge_test.order`},
		{"detail an empty text", change(event, detail, `"detail":""`), `JSON string at offset 0 does not fit a Go eventbridge_test.order`},
		{"detail an array", change(event, detail, `"detail":[]`), `does not fit a Go eventbridge_test.order`},
		{"detail of another type", change(event, `"amount":1`, `"amount":"secret"`), `JSON string at offset 20 does not fit a Go int`},
		{"detail a string of another type", change(event, detail, `"detail":`+quote(`{"id":"o1","amount":"secret"}`)), `JSON string at offset 20 does not fit a Go int`},
		{"detail a string of broken JSON", change(event, detail, `"detail":`+quote(`{"id":"o1"`)), `is not a valid eventbridge_test.order: it is not JSON at offset 10`},
		{"id a number", change(event, `"`+uuid(1)+`"`, "17"), "eventbridge: id is a number, want a string"},
		{"id an object", change(event, `"`+uuid(1)+`"`, "{}"), "eventbridge: id is an object, want a string"},
		{"id with broken characters", change(event, uuid(1), "a\xff"), `eventbridge: id has broken characters, want none`},
		{"id with half a character", change(event, uuid(1), `a\ud800`), `eventbridge: id has broken characters, want none`},
		{"source a number", change(event, `"com.example.orders"`, "17"), "eventbridge: source is a number, want a string"},
		{"source with broken characters", change(event, "com.example.orders", "a\xff"), `eventbridge: source has broken characters, want none`},
		{"id of the metadata a number", change(withMetadata(1, `{"id":"o1"}`, "g"), `"`+uuid(1)+`"`, "17"), "eventbridge: aws:EventId is a number, want a string"},
		{"source of the metadata a number", change(withMetadata(1, `{"id":"o1"}`, "g"), `"aws:EventId"`, `"aws:Source":1,"aws:EventId"`), "eventbridge: aws:Source is a number, want a string"},
		{"a record of SQS", `{"messageId":"1","body":"{}","eventSource":"aws:sqs"}`, `eventbridge: event is of event source "aws:sqs", want one of EventBridge`},
		{"an event of SQS", `{"Records":[{"messageId":"1","body":"{}","eventSource":"aws:sqs"}]}`, `event is of event source "aws:sqs"`},
		{"an event of SNS", `{"Records": [ {"EventSource":"aws:sns","Sns":{}}]}`, `event is of event source "aws:sns"`},
		{"a record behind another", `{"Records":[null,{"eventSource":"aws:sqs"}]}`, `event is of event source "aws:sqs"`},
		{"a record behind many", `{"Records":[1,"a",{},{"eventSource":"shop"},[{"eventSource":"aws:s3"}],{"a":{},"eventSource":"aws:kinesis"},{"eventSource":"aws:sqs"}]}`,
			`event is of event source "aws:kinesis"`},
		{"the end of a window", `{"Records":[],"window":{"start":"2020-07-30T17:00:00Z","end":"2020-07-30T17:05:00Z"},"state":{},"shardId":"s",` +
			`"eventSourceARN":"arn:aws:kinesis:us-east-1:1:stream/x","isFinalInvokeForWindow":true}`,
			`event is of event source "arn:aws:kinesis:us-east-1:1:stream/x", want one of EventBridge`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, option func(*eventbridge.Options)) {
				w, r := &worker{}, &results{}
				h := newHandler(t, w.handle, option, r.option)
				payload := array(placed(2, "before"), test.event, placed(3, "after"))
				e := wantFailed(t, t.Context(), h, payload, 1, 3, test.want)
				if strings.Contains(e.Error(), "secret") {
					t.Errorf("error is %q, want nothing of the payload in it", e)
				}
				w.want(t, "after", "before")
				wantFailed(t, t.Context(), h, payload, 1, 3, test.want)
				if strings.HasSuffix(t.Name(), "guarded") {
					w.want(t)
				}
				wantFailed(t, t.Context(), newHandler(t, w.handle, option), []byte(test.event), 1, 1, test.want)
			})
		})
	}
}

// Mixed good and bad: the error says how many failed, and names the first.
func TestMixed(t *testing.T) {
	w := &worker{errs: failing("bad1", "bad2")}
	h := newHandler(t, w.handle, guarded(t))
	payload := array(placed(0, "a"), placed(1, "bad1"), "null", placed(2, "b"), "17", placed(3, "bad2"), placed(0, "a"))
	e := wantFailed(t, t.Context(), h, payload, 4, 7, "bad1 fails")
	if want := "batch: 4 of 7 records failed, the first (" + keyOf(1) + "): bad1 fails"; e.Error() != want {
		t.Errorf("error is %q, want %q", e, want)
	}
	w.want(t, "a", "b", "bad1", "bad2")
}

// Details as large as events may be, 1 MB, and arrays as long, 500.
func TestLarge(t *testing.T) {
	pad := strings.Repeat("x", 1<<20)
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t))
	wantDone(t, t.Context(), h, []byte(change(placed(1, "o1"), `"amount"`, `"pad":"`+pad+`","amount"`)))
	wantDone(t, t.Context(), h, []byte(change(placed(2, "o2"), `{"id":"o2","amount":2}`, quote(`{"id":"o2","pad":"`+pad+`"}`))))
	w.want(t, "o1", "o2")

	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("o%03d", i)
	}
	w.errs = failing("o250")
	wantFailed(t, t.Context(), newHandler(t, w.handle, guarded(t)), array(orders(ids...)...), 1, 500, "o250 fails")
	w.want(t, ids...)
}

// Nested deep, nothing takes forever, and nothing overflows.
func TestDeep(t *testing.T) {
	h := newHandler(t, func(context.Context, *eventbridge.Event[any]) error { return nil }, guarded(t))
	for _, part := range []string{`{"Records":[`, `[`, `{"Data":`, `{"detail":`} {
		_, err := h.Invoke(t.Context(), []byte(strings.Repeat(part, 9_000)))
		wantError(t, err, "eventbridge: event is not JSON")
		closing := strings.NewReplacer("{", "}", "[", "]").Replace(strings.Map(func(r rune) rune {
			if r == '{' || r == '[' {
				return r
			}
			return -1
		}, part))
		if len(closing) == 2 {
			closing = "]}"
		}
		payload := strings.Repeat(part, 4_000) + "1" + strings.Repeat(closing, 4_000)
		if _, err = h.Invoke(t.Context(), []byte(payload)); !isFailed(err) {
			t.Errorf("nested %s: error is %v, want that of an event without a key", part, err)
		}
	}
}

func isFailed(err error) bool {
	_, ok := errors.AsType[*batch.FailedError](err)
	return ok
}
