package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// wantError checks that err has these parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error is %q, want %q in it", err, part)
		}
	}
}

// An event that is none of SQS is an error that says what it is, never an empty success. Nothing of it runs.
func TestBadEvent(t *testing.T) {
	good := message{ID: "m1"}.record()
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "sqs: event is not JSON: unexpected EOF"},
		{"not JSON", "hello", "sqs: event is not JSON: "},
		{"cut off", `{"Records":[` + good, "sqs: event is not JSON: "},
		{"trailing bytes", `{"Records":[` + good + `]}x`, "sqs: event is followed by more bytes at offset "},
		{"a second event", `{"Records":[` + good + `]}{"Records":[]}`, "sqs: event is followed by more bytes at offset "},
		{"null", "null", "sqs: event is null, want an object with Records"},
		{"an empty object", "{}", "sqs: event has no Records, but is an empty object"},
		{"a string of base64", `"eyJSZWNvcmRzIjpbXX0="`, "sqs: event is a string, want an object with Records"},
		{"EventBridge", `{"version":"0","id":"1","detail-type":"x","source":"y","detail":{}}`,
			`sqs: event has no Records, but "version", "id", "detail-type", "source", "detail"`},
		{"another case", `{"records":[` + good + `]}`, `sqs: event has no Records, but "records"`},
		{"Records null", `{"Records":null}`, "sqs: event has Records that are null, want an array"},
		{"Records an object", `{"Records":` + good + `}`, "sqs: event has Records that are an object, want an array"},
		{"Records a string", `{"Records":"x"}`, "sqs: event has Records that are a string, want an array"},
		{"Records a number", `{"Records":2}`, "sqs: event has Records that are a number, want an array"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				w := &worker{}
				response, err := newHandler(t, w.handle, options).Invoke(t.Context(), []byte(test.payload))
				if response != nil {
					t.Errorf("answer is %q, want none", response)
				}
				wantError(t, err, test.want)
				w.wantOrder(t)
			})
		})
	}
}

// A record that cannot be decoded fails alone, if it can be named.
func TestBadRecord(t *testing.T) {
	for _, test := range []struct{ name, record, want string }{
		{"another source", strings.Replace(message{ID: "m2"}.record(), "aws:sqs", "aws:sns", 1),
			`sqs: record is of event source "aws:sns", want "aws:sqs"`},
		{"body missing", `{"messageId":"m2"}`, `sqs: body of message "m2" is missing, want a string`},
		{"body null", `{"messageId":"m2","body":null}`, `sqs: body of message "m2" is null, want a string`},
		{"body a number", `{"messageId":"m2","body":1}`, `sqs: body of message "m2" is a number, want a string`},
		{"body an object", `{"messageId":"m2","body":{"a":1}}`, `sqs: body of message "m2" is an object, want a string`},
		{"body an array", `{"messageId":"m2","body":[]}`, `sqs: body of message "m2" is an array, want a string`},
		{"body a boolean", `{"messageId":"m2","body":true}`, `sqs: body of message "m2" is a boolean, want a string`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var logged logs
				w := &worker{}
				h := newHandler(t, w.handle, options, logged.option)
				payload := rawEvent(message{ID: "m1"}.record(), test.record, message{ID: "m3"}.record())
				wantFailures(t, t.Context(), h, payload, "m2")
				w.want(t, "m1", "m3")
				if got := logged.Failure(t, "m2").Error; got != test.want {
					t.Errorf("error is %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A failed record that cannot be named fails the whole invocation, loudly, after its siblings ran.
func TestBadRecordWithoutIdentifier(t *testing.T) {
	const kinesis = `{"kinesis":{"partitionKey":"p","sequenceNumber":"49590338271490256608559692538361571095921575989136588898",` +
		`"data":"SGVsbG8="},"eventSource":"aws:kinesis","eventID":"shardId-000000000006:49590338271490256608559692538361571095921575989136588898"}`
	const sns = `{"EventSource":"aws:sns","Sns":{"Message":"x"}}`
	for _, test := range []struct{ name, record, want string }{
		{"null", "null", "sqs: record is null, want an object"},
		{"a number", "17", "sqs: record is a number, want an object"},
		{"a string", `"x"`, "sqs: record is a string, want an object"},
		{"an array", `[{}]`, "sqs: record is an array, want an object"},
		{"a boolean", `true`, "sqs: record is a boolean, want an object"},
		{"an empty object", `{}`, `sqs: body of message "" is missing`},
		{"Kinesis", kinesis, `sqs: record is of event source "aws:kinesis", want "aws:sqs"`},
		{"SNS", sns, `sqs: body of message "" is missing, want a string`},
		{"messageId missing", `{"body":"fails"}`, "told to fail"},
		{"messageId empty", `{"messageId":"","body":"fails"}`, "told to fail"},
		{"messageId null", `{"messageId":null,"body":"fails"}`, "told to fail"},
		{"messageId a number", `{"messageId":5,"body":"fails"}`, "told to fail"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{1, 10} {
				w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
					if m.Body == "fails" {
						return errors.New("told to fail")
					}
					return nil
				}}
				h := newHandler(t, w.handle, concurrency(n))
				response, err := h.Invoke(t.Context(), rawEvent(message{ID: "m1"}.record(), test.record, message{ID: "m3"}.record()))
				if response != nil {
					t.Errorf("answer is %q, want none", response)
				}
				wantError(t, err, "sqs: record 1 has no messageId and failed, so the whole batch has to come back", test.want)
				for _, id := range []string{"m1", "m3"} {
					if ran := w.ran; strings.Count(strings.Join(ran, " "), id) != 1 {
						t.Errorf("messages that ran: %v, want %s among them, once", ran, id)
					}
				}
			}
		})
	}
}

// Nobody need name what is done. With a guard a message needs a key, though, which by default is its messageId.
func TestBadRecordWithoutIdentifierSucceeds(t *testing.T) {
	payload := rawEvent(`{"body":"{\"id\":\"o1\"}"}`, `{"messageId":"","body":"{\"id\":\"o2\"}"}`)
	ran := 0
	handle := func(context.Context, *sqs.Message[order]) error { ran++; return nil }
	unprotected := guarded(t, func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected })
	business := sqs.KeyOf(func(o order) string { return o.ID })
	for _, options := range [][]func(*sqs.Options){{}, {unprotected}, {guarded(t), business}} {
		ran = 0
		wantFailures(t, t.Context(), newHandler(t, handle, append(options, concurrency(1))...), payload)
		if ran != 2 {
			t.Errorf("%d messages ran, want 2", ran)
		}
	}
	_, err := newHandler(t, handle, guarded(t)).Invoke(t.Context(), payload)
	wantError(t, err, "record 0 has no messageId", idempotency.ErrKeyMissing.Error())
}

// Duplicate names and broken UTF-8 are tolerated: one such record must not reject the others.
func TestBadEnvelopeIsTolerated(t *testing.T) {
	w := &worker{}
	h := newHandler(t, w.handle)
	records := []string{
		`{"messageId":"first","messageId":"m1","body":"x","body":"m1"}`,
		"{\"messageId\":\"m2\",\"body\":\"m2\",\"x\":\"\xff\"}",
		`{"messageId":"m3","body":"m3","attributes":null,"messageAttributes":7,"eventSource":null,"eventSourceARN":{}}`,
	}
	w.work = func(_ context.Context, m *sqs.Message[string]) error {
		if m.Body != m.ID() || m.ReceiveCount() != 0 || m.GroupID() != "" || !m.SentAt().IsZero() {
			return fmt.Errorf("message is %+v", m.Raw())
		}
		return nil
	}
	wantFailures(t, t.Context(), h, rawEvent(records...))
	w.want(t, "m1", "m2", "m3")
	// But not two Records: whichever of them counted, the messages of the other would be deleted.
	first, second := event(numbered(3)...), event(message{ID: "m4", Body: "m4"})
	w.work = nil
	_, err := h.Invoke(t.Context(), []byte(strings.TrimSuffix(string(first), "}")+","+strings.TrimPrefix(string(second), "{")))
	wantError(t, err, "event has Records twice, want one array")
	w.want(t)
}

// The largest batch, and the largest event, that a mapping can deliver.
func TestBadInputIsNoneOfSize(t *testing.T) {
	for _, options := range []func(*sqs.Options){concurrency(1), guarded(t)} {
		w := &worker{errs: failing("m1", "m5000", "m10000")}
		h := newHandler(t, w.handle, options)
		wantFailures(t, t.Context(), h, event(numbered(10_000)...), "m1", "m5000", "m10000")
		if ran := w.take(); len(ran) != 10_000 {
			t.Errorf("%d messages ran, want 10,000", len(ran))
		}
	}
	messages := numbered(6)
	for i := range messages {
		messages[i].Body = strings.Repeat("x", 1<<20-10) + messages[i].ID
	}
	w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
		if !strings.HasSuffix(m.Body, "x"+m.ID()) || len(m.Body) != 1<<20-8 {
			return fmt.Errorf("body of %d bytes", len(m.Body))
		}
		return nil
	}}
	wantFailures(t, t.Context(), newHandler(t, w.handle), event(messages...))
	w.want(t, "m1", "m2", "m3", "m4", "m5", "m6")
}

// Options that are out of their limits are named in the constructor, all of them in one error.
func TestBadOptions(t *testing.T) {
	handle := func(context.Context, *sqs.Message[string]) error { return nil }
	if _, err := sqs.NewHandler[string](nil); err == nil || err.Error() != "sqs: handler function is nil, want a function" {
		t.Errorf("nil handler: error is %v", err)
	}
	for _, test := range []struct {
		option func(*sqs.Options)
		want   []string
	}{
		{concurrency(-1), []string{"Options.Concurrency is -1, want 0 (for 10) to 10000"}},
		{concurrency(10_001), []string{"Options.Concurrency is 10001"}},
		{func(o *sqs.Options) { o.Timeout = -time.Second }, []string{"Options.Timeout is -1s"}},
		{func(o *sqs.Options) { o.MaxAttempts, o.ErrorOn = -1, 3 }, []string{"Options.MaxAttempts is -1", "Options.ErrorOn is 3"}},
		{func(o *sqs.Options) { o.Middleware = []batch.Middleware{nil} }, []string{"Options.Middleware[0] is nil"}},
		{func(o *sqs.Options) { o.Hooks = []batch.Hook{"hook"} }, []string{"Options.Hooks[0] is of type string"}},
		{func(o *sqs.Options) { o.Concurrency, o.Fingerprint = -2, sqs.BodySHA256 },
			[]string{"Options.Concurrency is -2", "sqs: Options.Fingerprint is set, but Options.Idempotency is nil"}},
	} {
		_, err := sqs.NewHandler(handle, test.option)
		wantError(t, err, test.want...)
	}
	_, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.Expiry, o.Lease = time.Minute, time.Hour
	})
	wantError(t, err, "Options.Expiry is 1m0s, want no less than Options.Lease, which is 1h0m0s")
}

// A reserve that is longer than the time there is, is cut down to half of it and logged. The messages run.
func TestBadReserve(t *testing.T) {
	for _, reserve := range []time.Duration{time.Hour, math.MaxInt64} {
		var logged logs
		w := &worker{}
		h := newHandler(t, w.handle, logged.option, func(o *sqs.Options) { o.Reserve = reserve })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantFailures(t, ctx, h, event(numbered(2)...))
		w.want(t, "m1", "m2")
		if lines := logged.About(t, "batch reserve is more than half of the time left and was cut down to that"); len(lines) != 1 {
			t.Errorf("lines about the reserve: %v, want one", lines)
		}
	}
}

// Identifiers with broken characters could be told apart in the event, and not any more when it is decoded: none passes for
// another, and none runs. Only the message between them does.
func TestBadIdentifiers(t *testing.T) {
	for _, ids := range [][2]string{{"a\xff", "a\xfe"}, {`a\ud800`, `a\udfff`}, {`\ud800a`, "\xffa"}, {`a\ufffd`, `a\ud800`}} {
		t.Run(fmt.Sprintf("%q", ids), func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var logged logs
				w := &worker{}
				record := func(id string) string {
					return strings.Replace(message{ID: "@"}.record(), `"messageId":"@"`, `"messageId":"`+id+`"`, 1)
				}
				payload := rawEvent(record(ids[0]), message{ID: "m2"}.record(), record(ids[1]))
				response, err := newHandler(t, w.handle, options, logged.option).Invoke(t.Context(), payload)
				if err != nil || len(answer(t, response)) == 0 {
					t.Errorf("answer is %q, error is %v, want a failure", response, err)
				}
				w.want(t, "m2")
				if n := strings.Count(logged.Text(), `want text without broken characters`); n != 2 {
					t.Errorf("%d lines about identifiers, want 2:\n%s", n, logged.Text())
				}
			})
		})
	}
}

// However long what is wrong with an event is, the error that says so is short.
func TestBadEventIsNotRepeated(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	for _, test := range []struct{ name, payload string }{
		{"a member", `{"` + long + `":1}`},
		{"many members", `{"` + long + `":1,"b` + long + `":2,"c` + long + `":3}`},
		{"event source", `{"Records":[{"body":"","eventSource":"` + long + `"}]}`},
		{"event source of a record with a name", `{"Records":[{"messageId":"m1","body":"","eventSource":"` + long + `"}]}`},
		{"broken identifier", `{"Records":[{"messageId":"` + long + `\ud800","body":""}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var logged logs
			failed := errorHook{}
			h := newHandler(t, (&worker{}).handle, logged.option, func(o *sqs.Options) { o.Hooks = []batch.Hook{failed} })
			_, err := h.Invoke(t.Context(), []byte(test.payload))
			for _, e := range failed {
				err = errors.Join(err, e)
			}
			if err == nil || len(err.Error()) > 2000 {
				t.Errorf("error has %d bytes, want one with a few", len(fmt.Sprint(err)))
			}
		})
	}
}
