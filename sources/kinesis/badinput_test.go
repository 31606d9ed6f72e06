package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// windowMembers are what an event of a tumbling window has beside its records.
const windowMembers = `,"window":{"start":"2020-12-09T07:04:00Z","end":"2020-12-09T07:06:00Z"},"state":{},` +
	`"shardId":"shardId-000000000006","eventSourceARN":"arn:aws:kinesis:us-east-2:123456789012:stream/clicks",` +
	`"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false`

// An event that is none of Kinesis is an error that says what it is, never an empty success. Nothing of it runs.
func TestBadEvent(t *testing.T) {
	good := record{Data: "a", Key: "a"}.json()
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "kinesis: event is not JSON: unexpected EOF"},
		{"not JSON", "hello", "kinesis: event is not JSON: "},
		{"cut off", `{"Records":[` + good, "kinesis: event is not JSON: "},
		{"trailing bytes", `{"Records":[` + good + `]}x`, "kinesis: event is followed by more bytes at offset "},
		{"null", "null", "kinesis: event is null, want an object with Records"},
		{"an empty object", "{}", "kinesis: event has no Records, but is an empty object"},
		{"EventBridge", `{"version":"0","id":"1"}`, `kinesis: event has no Records, but "version", "id"`},
		{"Kafka", `{"records":{"t-0":[]}}`, `kinesis: event has no Records, but "records"`},
		{"Records null", `{"Records":null}`, "kinesis: event has Records that are null, want an array"},
		{"Records an object", `{"Records":` + good + `}`, "kinesis: event has Records that are an object, want an array"},
		{"two Records", `{"Records":[` + good + `],"Records":[]}`, "kinesis: event has Records twice, want one array"},
		{"a window", `{"Records":[` + good + `]` + windowMembers + `}`, "kinesis: event is that of a tumbling window"},
		{"a window before the records", `{` + windowMembers[1:] + `,"Records":[` + good + `]}`, "kinesis: event is that of a tumbling window"},
		{"a window without records", `{"Records":[]` + windowMembers + `}`, "kinesis: event is that of a tumbling window"},
		{"a window, Records missing", `{` + windowMembers[1:] + `}`, "kinesis: event is that of a tumbling window"},
		{"a window without times", `{"Records":[` + good + `],"isFinalInvokeForWindow":true}`, "kinesis: event is that of a tumbling window"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
				w := &worker{}
				wantInvokeError(t, t.Context(), newHandler(t, w.handle, options), []byte(test.payload), test.want)
				w.wantOrder(t)
			})
		})
	}
}

// A record that cannot be used fails, if it can be named, and what is in front of it is done.
func TestBadRecord(t *testing.T) {
	r := record{Data: "b", Key: "b", N: 1}
	data := `"data":"` + encode("b") + `"`
	for _, test := range []struct{ name, record, want string }{
		{"another source", change(r, `"eventSource":"aws:kinesis"`, `"eventSource":"aws:dynamodb"`),
			`kinesis: record is of event source "aws:dynamodb", want "aws:kinesis"`},
		{"data missing", change(r, data+",", ""), `kinesis: data of record "` + eventID(1) + `" are missing, want a string of base64`},
		{"data null", change(r, data, `"data":null`), `are null, want a string of base64`},
		{"data a number", change(r, data, `"data":17`), `are a number, want a string of base64`},
		{"data an object", change(r, data, `"data":{"a":1}`), `are an object, want a string of base64`},
		{"data no base64", change(r, data, `"data":"?"`), `kinesis: data of record "` + eventID(1) + `" are no base64`},
		{"data cut off", change(r, data, `"data":"YWJ"`), `are no base64`},
		{"data of another base64", change(r, data, `"data":"_-8="`), `are no base64`},
		{"data with broken characters", change(r, data, "\"data\":\"YW\xffj\""), `are no base64`},
		{"data of an aggregate, cut off", change(r, data, `"data":"84mawgo="`), ""},
		{"data of an aggregate, no base64", change(r, data, `"data":"84mawgo!"`), `are no base64`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
				var failed errorHook
				w := &worker{}
				payload := rawEvent(record{Data: "a", Key: "a"}.json(), test.record, record{Data: "c", Key: "c", N: 2}.json())
				h := newHandler(t, w.handle, options, failed.option)
				if test.want == "" {
					wantCheckpoint(t, t.Context(), h, payload, "")
					return
				}
				wantCheckpoint(t, t.Context(), h, payload, sequence(1))
				// What is behind a record of another source may be of any partition key, what is behind bad data is not.
				if ran := w.take(); !slices.Contains(ran, "a") || (isGuarded && slices.Contains(ran, "c") != strings.HasPrefix(test.name, "data")) {
					t.Errorf("%v ran, want a, and with a guard c behind bad data", ran)
				}
				wantError(t, failed.only(t), test.want)
			})
		})
	}
}

// What is no record of a stream has no name. It fails the whole invocation, loudly, after those in front of it ran.
func TestBadRecordWithoutIdentifier(t *testing.T) {
	r := record{Data: "b", Key: "b", N: 1}
	const sqs = `{"messageId":"059f36b4-87a3-44ab-83d2-661975830a7d","body":"x","eventSource":"aws:sqs"}`
	const dynamodb = `{"eventID":"1","eventSource":"aws:dynamodb","dynamodb":{"SequenceNumber":"111"}}`
	for _, test := range []struct{ name, record, want string }{
		{"null", "null", "kinesis: record is null, want an object"},
		{"a number", "17", "kinesis: record is a number, want an object"},
		{"a negative number", "-17", "kinesis: record is a number, want an object"},
		{"a string", `"x"`, "kinesis: record is a string, want an object"},
		{"an array", `[{}]`, "kinesis: record is an array, want an object"},
		{"a boolean", `true`, "kinesis: record is a boolean, want an object"},
		{"an empty object", `{}`, `kinesis: record "" has kinesis that is missing, want an object`},
		{"SQS", sqs, `kinesis: record is of event source "aws:sqs", want "aws:kinesis"`},
		{"a DynamoDB stream", dynamodb, `kinesis: record is of event source "aws:dynamodb"`},
		{"kinesis missing", change(r, `"kinesis":{`, `"other":{`), `kinesis: record "` + eventID(1) + `" has kinesis that is missing, want an object`},
		{"kinesis null", `{"kinesis":null}`, `has kinesis that is null, want an object`},
		{"kinesis a string", `{"kinesis":"x"}`, `has kinesis that is a string, want an object`},
		{"kinesis an array", `{"kinesis":[{"data":""}]}`, `has kinesis that is an array, want an object`},
		{"kinesis empty", `{"kinesis":{}}`, `of record ""`}, // its data without a guard, and with one its key
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
				w := &worker{}
				payload := rawEvent(record{Data: "a", Key: "a"}.json(), test.record, record{Data: "c", Key: "c", N: 2}.json())
				h := newHandler(t, w.handle, options)
				wantInvokeError(t, t.Context(), h, payload, "kinesis: record 1 has no sequence number and failed", test.want)
				if ran := w.take(); !slices.Contains(ran, "a") {
					t.Errorf("%v ran, want a among them", ran)
				}
			})
		})
	}
}

// Duplicate names and broken UTF-8 are tolerated: one such record must not reject the others.
func TestBadEnvelopeIsTolerated(t *testing.T) {
	first := change(record{Data: "a", Key: "a"}, `"sequenceNumber":`, `"sequenceNumber":"1","sequenceNumber":`, `"eventID":`, `"eventID":"x","eventID":`,
		`"partitionKey":`, `"partitionKey":"first","partitionKey":`)
	records := []string{
		first, change(record{Data: "b", Key: "b", N: 1}, `"awsRegion"`, "\"x\":\"\xff\",\"\xfe\":1,\"awsRegion\""),
		change(record{Data: "c", Key: "c", N: 2}, `"eventSource":"aws:kinesis"`, `"eventSource":null`, `"partitionKey":"c"`, "\"partitionKey\":\"\xff\""),
	}
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
			if n := int(r.Data[0] - 'a'); r.ID() != eventID(n) || r.SequenceNumber() != sequence(n) || (n < 2 && r.PartitionKey() != r.Data) {
				return fmt.Errorf("record is %+v", r.Raw())
			}
			return nil
		}}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), rawEvent(records...), "")
		w.want(t, "a", "b", "c")
	})
}

// Identifiers with broken characters could be told apart in the event, and not any more when it is decoded: none passes for
// another, and none runs.
func TestBadIdentifiers(t *testing.T) {
	for _, ids := range [][2]string{{"a\xff", "a\xfe"}, {`a\ud800`, `a\udfff`}, {`a\ufffd`, `a\ud800`}} {
		eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
			w := &worker{}
			broken := func(n int) string {
				return change(record{Data: "x", Key: "x", N: n}, `"eventID":"`+eventID(n), `"eventID":"`+ids[n-1]+`:`+sequence(n))
			}
			response, err := newHandler(t, w.handle, options).Invoke(t.Context(), rawEvent(record{Data: "a", Key: "a"}.json(), broken(1), broken(2)))
			if err == nil && string(response) != answer(sequence(1)) {
				t.Errorf("answer is %q, want a failure of record 1", response)
			}
			w.want(t, "a")
		})
	}
}

// The largest batch that a mapping can deliver, of one partition key and of as many as records: it takes seconds at most,
// and the order of each key is kept.
func TestBadInputIsNoneOfSize(t *testing.T) {
	const n = 10_000
	for _, keys := range []int{1, n} {
		for _, options := range [][]func(*kinesis.Options){{}, {guarded(t)}, {concurrency(10)}} {
			records := make([]record, n)
			for i := range records {
				records[i] = record{Data: strconv.Itoa(i), Key: "key " + strconv.Itoa(i%keys), N: i}
			}
			payload := event(records...)
			w := &worker{}
			begin := time.Now()
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options...), payload, "")
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("%d partition keys: took %v, want seconds", keys, took)
			}
			last := map[int]int{}
			ran := w.take()
			for _, data := range ran {
				i, _ := strconv.Atoi(data)
				if before, ok := last[i%keys]; ok && before >= i {
					t.Fatalf("%d partition keys: record %d ran after %d", keys, i, before)
				}
				last[i%keys] = i
			}
			if len(ran) != n {
				t.Errorf("%d partition keys: %d records ran, want 10,000", keys, len(ran))
			}
		}
	}
}

// However long what is wrong with an event is, the error that says so is short.
func TestBadEventIsNotRepeated(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	r := record{Data: "a", Key: "a"}
	for _, test := range []struct{ name, payload string }{
		{"a member", `{"` + long + `":1}`},
		{"event source", string(rawEvent(change(r, `"eventSource":"aws:kinesis"`, `"eventSource":"`+long+`"`)))},
		{"broken eventID", string(rawEvent(change(r, `"eventID":"`, `"eventID":"`+long+`\ud800`)))},
		{"sequence number", string(rawEvent(change(r, `"sequenceNumber":"`, `"sequenceNumber":"`+long)))},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed errorHook
			h := newHandler(t, (&worker{}).handle, guarded(t), failed.option)
			_, err := h.Invoke(t.Context(), []byte(test.payload))
			if err = errors.Join(append([]error{err}, failed...)...); err == nil || len(err.Error()) > 3000 {
				t.Errorf("error has %d bytes, want one with a few", len(fmt.Sprint(err)))
			}
		})
	}
}

// Options that are out of their limits are named in the constructor, all of them in one error.
func TestBadOptions(t *testing.T) {
	if _, err := kinesis.NewHandler[string](nil); err == nil || err.Error() != "kinesis: handler function is nil, want a function" {
		t.Errorf("nil handler: error is %v", err)
	}
	for _, test := range []struct {
		option func(*kinesis.Options)
		want   []string
	}{
		{concurrency(-1), []string{"Options.Concurrency is -1, want 0 (for 10) to 10000"}},
		{func(o *kinesis.Options) { o.Timeout, o.ErrorOn = -time.Second, 3 }, []string{"Options.Timeout is -1s", "Options.ErrorOn is 3"}},
		{func(o *kinesis.Options) { o.Middleware, o.MaxInflated = []batch.Middleware{nil}, -2 },
			[]string{"Options.Middleware[0] is nil", "Options.MaxInflated is -2"}},
		{func(o *kinesis.Options) { o.Concurrency, o.Fingerprint = -2, kinesis.DataSHA256 },
			[]string{"Options.Concurrency is -2", "kinesis: Options.Fingerprint is set, but Options.Idempotency is nil"}},
	} {
		_, err := kinesis.NewHandler((&worker{}).handle, test.option)
		wantError(t, err, test.want...)
	}
	if _, err := kinesis.NewHandler((&worker{}).handle, nil); err != nil {
		t.Errorf("a nil option function: %v", err)
	}
}
