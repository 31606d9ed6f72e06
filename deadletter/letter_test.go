package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/sqs"
)

var errBoom = errors.New("boom")

// What a consumer decodes is what was given up.
func TestLetter(t *testing.T) {
	full := batch.Record{
		ID: "m1", Key: "o1", Source: "arn:aws:sqs:eu-central-1:123456789012:orders", Lane: "g", Attempt: 4,
		Value: value(`{"messageId":"m1","body":"{\"id\":\"o1\"}"}`),
	}
	for _, test := range []struct {
		name   string
		record batch.Record
		err    error
		want   string // with T for the time
	}{
		{
			"all fields", full, errBoom,
			`{"version":1,"id":"m1","key":"o1","source":"arn:aws:sqs:eu-central-1:123456789012:orders","attempts":4,` +
				`"error":"boom","permanent":false,"time":"T","record":{"messageId":"m1","body":"{\"id\":\"o1\"}"}}`,
		},
		{
			"only a record", batch.Record{Value: value(`{}`)}, nil,
			`{"version":1,"id":"","error":"","permanent":false,"time":"T","record":{}}`,
		},
		{
			"permanent", batch.Record{ID: "m1", Value: value(`{}`)}, fmt.Errorf("order: %w", batch.Permanent(errBoom)),
			`{"version":1,"id":"m1","error":"order: boom","permanent":true,"time":"T","record":{}}`,
		},
		{
			"as delivered, but for white space", batch.Record{ID: "m1", Value: value("{ \"n\" : 12345678901234567890.10,\n\"a\":1,\"a\":\"<&>\\u003c\" }")}, errBoom,
			`{"version":1,"id":"m1","error":"boom","permanent":false,"time":"T","record":{"n":12345678901234567890.10,"a":1,"a":"<&>\u003c"}}`,
		},
		{
			"not UTF-8", batch.Record{ID: "m\xff", Value: value("{\"body\":\"a\xff\xfeb\"}")}, errors.New("no \xff"),
			`{"version":1,"id":"m` + `\ufffd` + `","error":"no �","permanent":false,"time":"T","record":{"body":"a�b"}}`,
		},
		{
			"characters that SQS does not take", batch.Record{ID: "\x00\x1f\uFFFE", Value: value("{\"body\":\"\uFFFE\uFFFF\U0010FFFF\"}")}, errors.New("\x7f\uFFFF\x01"),
			`{"version":1,"id":"\u0000\u001f\ufffe","error":"` + "\x7f" + `\uffff\u0001","permanent":false,"time":"T","record":{"body":"\ufffe\uffff` + "\U0010FFFF" + `"}}`,
		},
		{
			"not JSON", batch.Record{ID: "m1", Value: value("{\"a\":\xff\"")}, errBoom,
			`{"version":1,"id":"m1","error":"boom","permanent":false,"time":"T","record":"{\"a\":�\""}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c client
				if err := newSink(t, &c, standardURL).DeadLetter(t.Context(), &test.record, test.err); err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(test.want, `"T"`, `"`+time.Now().UTC().Format(time.RFC3339Nano)+`"`, 1)
				body := *c.sent()[0].Entries[0].MessageBody
				if diff := cmp.Diff(want, body); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
				letter := c.letters(t)[0]
				again, err := json.Marshal(letter)
				if err != nil {
					t.Fatal(err)
				}
				var second deadletter.Letter
				if err := json.Unmarshal(again, &second); err != nil {
					t.Fatal(err)
				}
				if !letter.Time.Equal(time.Now()) {
					t.Errorf("time is %v, want %v", letter.Time, time.Now())
				}
				if diff := cmp.Diff(jsonValue(t, letter.Record), jsonValue(t, second.Record)); diff != "" {
					t.Errorf("record after another round trip (-want +got):\n%s", diff)
				}
				letter.Record, second.Record = nil, nil
				if diff := cmp.Diff(letter, second); diff != "" {
					t.Errorf("letter after another round trip (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func jsonValue(t tb, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// Whatever the bytes are, the body is JSON in characters that SQS takes, and the record's text arrives.
func TestLetterOfAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringOf(rapid.SampledFrom([]rune("\"\\{}:\x00\t\n\u2028\uD7FF\uFFFD\uFFFE\uFFFF\U00010000"))),
		)
		r := batch.Record{ID: text.Draw(t, "id"), Key: text.Draw(t, "key"), Source: text.Draw(t, "source")}
		want := text.Draw(t, "record")
		if rapid.Bool().Draw(t, "JSON") {
			encoded, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			r.Value = value(encoded)
			want = jsonValue(t, encoded).(string)
		} else {
			r.Value = value("x" + want) // which is no JSON
			want = strings.ToValidUTF8("x"+want, "\uFFFD")
		}
		var c client
		if err := newSink(t, &c, standardURL).DeadLetter(t.Context(), &r, errors.New(text.Draw(t, "error"))); err != nil {
			t.Fatal(err)
		}
		sent := *c.sent()[0].Entries[0].MessageBody
		for i, char := range sent {
			if char == utf8.RuneError && !strings.HasPrefix(sent[i:], "\uFFFD") || !legal(char) {
				t.Errorf("%U at %d of %q, want a character that SQS takes", char, i, sent)
			}
		}
		if diff := cmp.Diff(want, jsonValue(t, c.letters(t)[0].Record)); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	})
}

// legal is the table of the API reference.
func legal(c rune) bool {
	return c == 0x9 || c == 0xA || c == 0xD || c >= 0x20 && c <= 0xD7FF || c >= 0xE000 && c <= 0xFFFD || c >= 0x10000 && c <= 0x10FFFF
}

// A letter without its record would lose it, so it is not sent.
func TestLetterWithoutRecord(t *testing.T) {
	marshal := func(o *deadletter.Options) {
		o.Record = func(r *batch.Record) ([]byte, error) { return json.Marshal(r.Value) }
	}
	for _, test := range []struct {
		name   string
		record *batch.Record
		option func(*deadletter.Options)
		want   string // the error, or the record
	}{
		{"no record", nil, nil, "deadletter: record is nil, want a record"},
		{"no value", &batch.Record{ID: "m1"}, nil, "deadletter: record's Value is of type <nil>, want a method JSON() string, or Options.Record"},
		{"no method", &batch.Record{ID: "m1", Value: 7}, nil, "deadletter: record's Value is of type int, want a method JSON() string, or Options.Record"},
		{"no JSON", &batch.Record{ID: "m1", Value: value("")}, nil, "deadletter: record has no JSON, want the record as it was delivered"},
		{"no method, but the option", &batch.Record{ID: "m1", Value: map[string]int{"a": 1}}, marshal, `{"a":1}`},
		{"the option counts more than the method", &batch.Record{ID: "m1", Value: value("{}")}, marshal, `"{}"`},
		{"the option fails", &batch.Record{ID: "m1", Value: func() {}}, marshal, "deadletter: Options.Record: json: unsupported type: func()"},
		{"the option returns nothing", &batch.Record{ID: "m1"}, func(o *deadletter.Options) {
			o.Record = func(*batch.Record) ([]byte, error) { return nil, nil }
		}, "deadletter: record has no JSON, want the record as it was delivered"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c client
			err := newSink(t, &c, standardURL, test.option).DeadLetter(t.Context(), test.record, errBoom)
			got := ""
			if letters := c.letters(t); err != nil {
				got = err.Error()
				if len(letters) > 0 {
					t.Errorf("sent %v, want nothing", letters)
				}
			} else {
				got = string(letters[0].Record)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error or record (-want +got):\n%s", diff)
			}
		})
	}
}

// What the sources of this module hand on has JSON, and none if a test made it by a literal.
func TestLetterOfSources(t *testing.T) {
	for _, v := range []any{&sqs.Message[order]{}, &kinesis.Record[order]{}, &dynamodbstream.Change[order]{}} {
		const want = "deadletter: record has no JSON, want the record as it was delivered"
		err := newSink(t, &client{}, standardURL).DeadLetter(t.Context(), &batch.Record{Value: v}, errBoom)
		if err == nil || err.Error() != want {
			t.Errorf("%T: error is %v, want %s", v, err, want)
		}
	}
}

func TestLetterSize(t *testing.T) {
	var c client
	s := newSink(t, &c, standardURL)
	r := &batch.Record{ID: "m1", Value: value(`""`)}
	synctest.Test(t, func(t *testing.T) { // where the time is of one length
		if err := s.DeadLetter(t.Context(), r, errBoom); err != nil {
			t.Fatal(err)
		}
		room := deadletter.MaxBytes - len(*c.sent()[0].Entries[0].MessageBody)
		r.Value = value(`"` + strings.Repeat("x", room) + `"`)
		if err := s.DeadLetter(t.Context(), r, errBoom); err != nil {
			t.Error(err)
		} else if n := len(*c.sent()[1].Entries[0].MessageBody); n != deadletter.MaxBytes {
			t.Errorf("largest letter has %d bytes, want %d", n, deadletter.MaxBytes)
		}
		r.Value = value(`"` + strings.Repeat("x", room+1) + `"`)
		const want = "deadletter: letter is 1048577 bytes, want at most 1048576, the limit of an SQS message"
		if err := s.DeadLetter(t.Context(), r, errBoom); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
		if n := len(c.sent()); n != 2 {
			t.Errorf("%d requests, want none for the letter that is too large", n-2)
		}
	})
}

func TestLetterError(t *testing.T) {
	const limit = deadletter.MaxErrorBytes
	for _, test := range []struct{ name, text, want string }{
		{"as long as may be", strings.Repeat("x", limit), strings.Repeat("x", limit)},
		{"longer", strings.Repeat("x", limit+1), strings.Repeat("x", limit-len("... (10241 bytes)")) + "... (10241 bytes)"},
		{"cut between characters", strings.Repeat("€", limit), strings.Repeat("€", (limit-len("... (30720 bytes)"))/3) + "... (30720 bytes)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c client
			if err := newSink(t, &c, standardURL).DeadLetter(context.Background(), record("m1"), errors.New(test.text)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, c.letters(t)[0].Error); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
