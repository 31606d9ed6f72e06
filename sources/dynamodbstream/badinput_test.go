package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// An event that is none of a DynamoDB stream is an error that says what it is, never an empty success. Nothing of it runs.
func TestBadEvent(t *testing.T) {
	good := record{ID: "a", Note: "a"}.json()
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "event is not JSON: unexpected EOF"},
		{"not JSON", "hello", "event is not JSON: "},
		{"cut off", `{"Records":[` + good, "event is not JSON: "},
		{"trailing bytes", `{"Records":[` + good + `]}x`, "event is followed by more bytes at offset "},
		{"a second event", `{"Records":[` + good + `]}{"Records":[]}`, "event is followed by more bytes at offset "},
		{"two Records", `{"Records":[` + good + `],"Records":[]}`, "event has Records twice, want one array"},
		{"null", "null", "event is null, want an object with Records"},
		{"an empty object", "{}", "event has no Records, but is an empty object"},
		{"a string of base64", `"eyJSZWNvcmRzIjpbXX0="`, "event is a string, want an object with Records"},
		{"EventBridge", `{"version":"0","id":"1","detail-type":"x","source":"y","detail":{}}`,
			`event has no Records, but "version", "id", "detail-type", "source", "detail"`},
		{"a record", good, `event has no Records, but "awsRegion", "dynamodb"`},
		{"another case", `{"records":[` + good + `]}`, `event has no Records, but "records"`},
		{"Records null", `{"Records":null}`, "event has Records that are null, want an array"},
		{"Records an object", `{"Records":` + good + `}`, "event has Records that are an object, want an array"},
		{"Records a string", `{"Records":"x"}`, "event has Records that are a string, want an array"},
		{"Records a number", `{"Records":2}`, "event has Records that are a number, want an array"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
				w := &worker{}
				wantInvokeError(t, t.Context(), newHandler(t, w.handle, options), []byte(test.payload), "dynamodbstream: "+test.want)
				w.want(t)
			})
		})
	}
}

// What is no record, or one of another source, cannot be named: the whole batch comes back, after what is before it ran. What
// is behind it does not begin, since it may be of the same item.
func TestBadRecordWithoutSequenceNumber(t *testing.T) {
	const kinesis = `{"kinesis":{"partitionKey":"p","sequenceNumber":"49590338271490256608559692538361571095921575989136588898",` +
		`"data":"SGVsbG8="},"eventSource":"aws:kinesis","eventID":"shardId-000000000006:49590338271490256608559692538361571095921575989136588898"}`
	const sqs = `{"messageId":"m1","body":"x","eventSource":"aws:sqs"}`
	for _, test := range []struct{ name, record, want string }{
		{"null", "null", "dynamodbstream: record is null, want an object"},
		{"a number", "17", "dynamodbstream: record is a number, want an object"},
		{"a string", `"x"`, "dynamodbstream: record is a string, want an object"},
		{"an array", `[{}]`, "dynamodbstream: record is an array, want an object"},
		{"a boolean", `true`, "dynamodbstream: record is a boolean, want an object"},
		{"an empty object", `{}`, `dynamodbstream: dynamodb of change "" is missing, want an object`},
		{"dynamodb null", `{"eventID":"e","dynamodb":null}`, `dynamodbstream: dynamodb of change "e" is null, want an object`},
		{"dynamodb a string", `{"eventID":"e","dynamodb":"x"}`, `dynamodbstream: dynamodb of change "e" is a string, want an object`},
		{"dynamodb an array", `{"eventID":"e","dynamodb":[]}`, `dynamodbstream: dynamodb of change "e" is an array, want an object`},
		{"Kinesis", kinesis, `dynamodbstream: record is of event source "aws:kinesis", want "aws:dynamodb"`},
		{"SQS", sqs, `dynamodbstream: record is of event source "aws:sqs", want "aws:dynamodb"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
				records := noted("a0", "x1", "b2")
				w := &worker{}
				wantInvokeError(t, t.Context(), newHandler(t, w.handle, inOrder(isGuarded, options)),
					rawEvent(records[0].json(), test.record, records[2].json()),
					"dynamodbstream: record 1 has no sequence number and failed, so the whole batch has to come back", test.want)
				w.want(t, "a0")
			})
		})
	}
}

// A record that is broken in itself, and has the key of its item and a sequence number, fails alone with what is of its item.
func TestBadRecord(t *testing.T) {
	change := func(oldNew ...string) string { return record{ID: "b", Note: "b1", N: 1}.change(oldNew...) }
	image := `"NewImage":{"id":{"S":"b"},"note":{"S":"b1"}}`
	of := " of change \"" + eventID(1) + "\""
	for _, test := range []struct{ name, record, want string }{
		{"another source", change("aws:dynamodb\"", "aws:kinesis\""), `dynamodbstream: record is of event source "aws:kinesis", want "aws:dynamodb"`},
		{"image a string", change(image, `"NewImage":"x"`), "dynamodbstream: NewImage" + of + ": it is a string, want an object"},
		{"image an array", change(image, `"NewImage":[]`), "dynamodbstream: NewImage" + of + ": it is an array, want an object"},
		{"attribute without a type", change(image, `"NewImage":{"note":{}}`), "dynamodbstream: NewImage" + of + `: attribute "note" has no type, want one`},
		{"attribute of unknown type", change(image, `"NewImage":{"note":{"X":"1"}}`), "dynamodbstream: NewImage" + of},
		{"attribute null", change(image, `"NewImage":{"note":null}`), "dynamodbstream: NewImage" + of},
		{"number that is none", change(image, `"NewImage":{"note":{"N":"x"}}`), "dynamodbstream: NewImage" + of},
		{"binary that is not base64", change(image, `"NewImage":{"note":{"B":"***"}}`), "dynamodbstream: NewImage" + of},
		{"attribute that does not fit", change(image, `"NewImage":{"note":{"L":[]}}`), "dynamodbstream: NewImage" + of + " is not a valid"},
		{"old image", change(`"OldImage":{`, `"OldImage":{"x":7,`), "dynamodbstream: OldImage" + of},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 10} {
				var logged logs
				w := &worker{}
				h := newHandler(t, w.handle, concurrency(n), guarded(t), logged.option)
				payload := rawEvent(record{ID: "a", Note: "a0"}.json(), test.record, record{ID: "c", Note: "c2", N: 2}.json(),
					record{ID: "b", Note: "b3", N: 3}.json())
				wantCheckpoint(t, t.Context(), h, payload, sequence(1))
				w.want(t, "a0", "c2")
				if got := logged.Failure(t, eventID(1)); !strings.HasPrefix(got.Error, test.want) || got.Source != ordersARN {
					t.Errorf("line is %+v, want the stream and %q", got, test.want)
				}
			}
		})
	}
}

// Duplicate names and broken UTF-8 are tolerated, and members that are of another type and that nobody needs.
func TestBadEnvelopeIsTolerated(t *testing.T) {
	change := record{ID: "a", Note: "a"}
	for name, record := range map[string]string{
		"duplicate names":    change.change(`"eventName":"MODIFY"`, `"eventName":"x","eventName":"MODIFY"`, `"Keys":`, `"Keys":7,"Keys":`),
		"duplicate dynamodb": change.change(`"dynamodb":{`, `"dynamodb":{"SequenceNumber":"1"},"dynamodb":{`),
		"broken UTF-8":       change.change(`"eventVersion":"1.1"`, "\"eventVersion\":\"\xff\""),
		"other types": change.change(`"eventVersion":"1.1"`, `"eventVersion":7`, `"awsRegion":"us-east-1"`, `"awsRegion":{}`, `"SizeBytes":54`, `"SizeBytes":"x"`,
			`"eventSource":"aws:dynamodb"`, `"eventSource":null,"userIdentity":[]`),
		"unknown members":      change.change(`"dynamodb":{`, `"x":[{"y":null}],"dynamodb":{"x":{"SequenceNumber":"7"},`),
		"an unknown operation": change.change(`"MODIFY"`, `"TRUNCATE"`),
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
				w := &worker{work: func(_ context.Context, c *dynamodbstream.Change[order]) error {
					if c.SequenceNumber() != sequence(0) || c.Keys.ID != "a" || c.ByTTL() {
						return fmt.Errorf("change is %+v", c.Raw())
					}
					return nil
				}}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), rawEvent(record), "")
				w.want(t, "a")
			})
		})
	}
}

// Two texts of different broken characters are the same text when they are decoded. As keys of an item they make one lane, and
// as attributes they are what they are; as identities none passes for another, and none runs.
func TestBadIdentifiers(t *testing.T) {
	for _, ids := range [][2]string{{"e\xff", "e\xfe"}, {`e\ud800`, `e\udfff`}, {`\ud800e`, "\xffe"}, {`e\ufffd`, `e\ud800`}} {
		t.Run(fmt.Sprintf("%q", ids), func(t *testing.T) {
			for _, n := range []int{1, 10} {
				var logged logs
				w := &worker{}
				records := noted("a0", "b1", "c2")
				payload := rawEvent(records[0].change(eventID(0), ids[0]), records[1].json(), records[2].change(eventID(2), ids[1]))
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, concurrency(n), guarded(t), logged.option), payload, sequence(0))
				w.want(t, "b1")
				if n := strings.Count(logged.Text(), "want text without broken characters"); n != 2 {
					t.Errorf("%d lines about identifiers, want 2:\n%s", n, logged.Text())
				}
			}
		})
	}
	records := noted("a0", "b1", "c2")
	payload := rawEvent(records[0].change(`{"S":"a"}`, "{\"S\":\"x\xff\"}"), records[1].change(`{"S":"b"}`, "{\"S\":\"x\xfe\"}"), records[2].json())
	w := &worker{errs: failing("a0")}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, guarded(t)), payload, sequence(0))
	w.want(t, "a0", "c2")
}

// Seconds with a fraction, or written in another way, or not at all, are no reason to fail.
func TestBadTimes(t *testing.T) {
	change := record{ID: "a", Note: "a", At: time.Unix(1480642020, 0)}
	for text, want := range map[string]time.Time{
		"1480642020":       time.Unix(1480642020, 0),
		"1480642020.0":     time.Unix(1480642020, 0),
		"1480642020.5":     time.Unix(1480642020, 5e8),
		"1.48064202E9":     time.Unix(1480642020, 0),
		"0":                {},
		"-62135596800":     {},
		"1e300":            {},
		"1480642020000":    {}, // milliseconds: the year 48889
		"null":             {},
		`"1480642020"`:     {},
		`{"seconds":1}`:    {},
		`"Dec 2, 2016"`:    {},
		"99999999999999e9": {},
	} {
		eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
			var got time.Time
			w := &worker{work: func(_ context.Context, c *dynamodbstream.Change[order]) error { got = c.CreatedAt(); return nil }}
			payload := rawEvent(change.change(`"ApproximateCreationDateTime":1480642020`, `"ApproximateCreationDateTime":`+text))
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), payload, "")
			if !got.Equal(want) {
				t.Errorf("time of %s is %v, want %v", text, got, want)
			}
		})
	}
}

// The largest batch that a mapping can deliver, of one item and of as many as there are: the order is kept, and it ends soon.
func TestBadInputIsNoneOfSize(t *testing.T) {
	const n = 10_000
	for name, id := range map[string]func(i int) string{
		"one item":       func(int) string { return "a" },
		"different ones": func(i int) string { return fmt.Sprint(i) },
		"a hundred":      func(i int) string { return fmt.Sprint(i % 100) },
	} {
		records := make([]record, n)
		for i := range records {
			records[i] = record{ID: id(i), Note: fmt.Sprint(i), N: i}
		}
		payload := event(records...)
		for _, isGuarded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, guard %v", name, isGuarded), func(t *testing.T) {
				var mu sync.Mutex
				ran := map[string][]int{}
				fails := true
				options := func(*dynamodbstream.Options) {}
				if isGuarded {
					options = guarded(t)
				}
				h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[order]) error {
					mu.Lock()
					defer mu.Unlock()
					if c.New.Note == "9950" && fails {
						return errors.New("no")
					}
					var i int
					_, err := fmt.Sscan(c.New.Note, &i)
					ran[c.Keys.ID] = append(ran[c.Keys.ID], i)
					return err
				}, options)
				begin := time.Now()
				wantCheckpoint(t, t.Context(), h, payload, sequence(9950))
				fails = false
				if isGuarded {
					wantCheckpoint(t, t.Context(), h, payload, "")
				} else {
					wantCheckpoint(t, t.Context(), h, event(records[9950:]...), "")
				}
				total := 0
				for item, order := range ran {
					if total += len(order); !slices.IsSorted(order) {
						t.Errorf("changes of item %s ran in the order %v", item, order)
					}
				}
				if total != n {
					t.Errorf("%d changes ran, want each of %d once", total, n)
				}
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// An item of the largest size that there is, and an event of the largest.
func TestBadInputIsNoneOfBytes(t *testing.T) {
	long := strings.Repeat("é", 200<<10)
	var records []record
	for i := range 7 { // with two images each, 5.6 MB
		records = append(records, record{ID: fmt.Sprint(i), Note: long, N: i})
	}
	ran := 0
	h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[order]) error {
		ran++
		if c.Old.Note != long || c.New.Note != long {
			return errors.New("image is not what was sent")
		}
		return nil
	})
	wantCheckpoint(t, t.Context(), h, event(records...), "")
	if ran != len(records) {
		t.Errorf("%d changes ran, want %d", ran, len(records))
	}
}

// errorHook keeps the errors of a batch's records.
type errorHook map[string]error

func (h errorHook) OnRecordFinished(_ context.Context, r *batch.Result) { h[r.Record.ID] = r.Err }

// However long what is wrong with an event is, the error that says so is short, and it shows nothing of an item.
func TestBadEventIsNotRepeated(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	change := record{ID: "a", Note: "a"}
	for _, test := range []struct{ name, payload string }{
		{"a member", `{"` + long + `":1}`},
		{"event source", string(rawEvent(change.change(`"aws:dynamodb"`, `"`+long+`"`)))},
		{"broken identifier", string(rawEvent(change.change(eventID(0), long+`\ud800`)))},
		{"attribute", string(rawEvent(change.change(`"note":{"S":"a"}`, `"`+long+`":{"S":7}`)))},
		{"attribute of Keys", string(rawEvent(change.change(`"Keys":{`, `"Keys":{"`+long+`":{"M":{}},`)))},
		{"attribute that does not fit", string(rawEvent(change.change(`"note":{"S":"a"}`, `"note":{"SS":["`+long+`"]}`)))},
		{"type", string(rawEvent(change.change(`"note":{"S":"a"}`, `"note":{"`+long+`":"x"}`)))},
		{"window", strings.Replace(string(window{}.event()), "2026-12-01T07:06:00Z", long, 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &worker{errs: failing("fails")}
			failed := errorHook{}
			h := newHandler(t, w.handle, func(o *dynamodbstream.Options) { o.Hooks = []batch.Hook{failed} })
			_, err := h.Invoke(t.Context(), []byte(test.payload))
			if test.name == "window" {
				_, err = newWindowHandler(t, count, finishNothing).Invoke(t.Context(), []byte(test.payload))
			}
			for _, e := range failed {
				err = errors.Join(err, e)
			}
			if err == nil || len(err.Error()) > 2000 {
				t.Errorf("error has %d bytes, want one with a few", len(fmt.Sprint(err)))
			}
		})
	}
	var logged logs
	h := newHandler(t, (&worker{}).handle, logged.option)
	wantCheckpoint(t, t.Context(), h, rawEvent(record{ID: "SECRET", Note: "SECRET"}.change(`"note":{"S":"SECRET"}`, `"note":{"SS":["SECRET"]}`)), sequence(0))
	if diff := cmp.Diff(false, strings.Contains(logged.Text(), "SECRET")); diff != "" {
		t.Errorf("the log shows the item (-want +got):\n%s\n%s", diff, logged.Text())
	}
}
