package eventbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

type name string

// nested is a type that is made for a string of JSON, and takes nothing else.
type nested struct {
	Text  string
	Tries int
}

func (n *nested) UnmarshalJSON(data []byte) error {
	n.Tries++
	return json.Unmarshal(data, &n.Text)
}

// decoded returns what a T gets of an event with this detail, as JSON, or "" if it cannot be decoded.
func decoded[T any](t *testing.T, detail string, optFns ...func(*eventbridge.Options)) string {
	t.Helper()
	var got T
	h := newHandler(t, func(_ context.Context, e *eventbridge.Event[T]) error { got = e.Detail; return nil }, optFns...)
	payload := []byte(change(placed(1, "o1"), `{"id":"o1","amount":1}`, detail))
	_, err := h.Invoke(t.Context(), payload)
	clear(payload)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A detail that is a JSON string stands for its text, where that is asked for or is JSON.
func TestDetailOfTypes(t *testing.T) {
	for _, test := range []struct {
		name, detail string
		decode       func(*testing.T, string, ...func(*eventbridge.Options)) string
		want         string
	}{
		{"string of an object", `{"a":1}`, decoded[string], quote(`{"a":1}`)},
		{"string of a string of an object", quote(`{"a":1}`), decoded[string], quote(`{"a":1}`)},
		{"string of a text", `"a\"b"`, decoded[string], `"a\"b"`},
		{"bytes of an object", `{"a":1}`, decoded[[]byte], `"eyJhIjoxfQ=="`},
		{"bytes of a string of an object", quote(`{"a":1}`), decoded[[]byte], `"eyJhIjoxfQ=="`},
		{"raw of an object", `{"a":1}`, decoded[json.RawMessage], `{"a":1}`},
		{"raw of a string of an object", quote(`{"a":1}`), decoded[json.RawMessage], quote(`{"a":1}`)},
		{"type of its own of a text", `"hello"`, decoded[name], `"hello"`},
		{"type of its own of a string of an object", quote(`{"a":1}`), decoded[name], quote(`{"a":1}`)},
		{"pointer of a string of an object", quote(`{"a":1}`), decoded[*string], quote(`{"a":1}`)},
		{"map of a string of an object", quote(`{"a":1}`), decoded[map[string]int], `{"a":1}`},
		{"slice of a string of an array", quote("\t[1]"), decoded[[]int], `[1]`},
		{"number of a string of a number", `"17"`, decoded[int], ``},
		{"time of a text", `"2026-09-23T18:00:00Z"`, decoded[time.Time], `"2026-09-23T18:00:00Z"`},
		{"nested of a string of an object", quote(`{"a":1}`), decoded[nested], `{"Text":"{\"a\":1}","Tries":1}`},
		{"nested of an object", `{"a":1}`, decoded[nested], ``},
		{"struct of a string of a string of an object", quote(quote(`{"a":1}`)), decoded[struct{}], ``},
		{"pointer of null", `null`, decoded[*order], `null`},
		{"struct of null", `null`, decoded[order], ``},
		{"struct of a string of null", `"null"`, decoded[order], ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.decode(t, test.detail)); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
		})
	}
}

// A Decode of one's own gets the JSON, or the text of a string, and may keep it.
func TestDecode(t *testing.T) {
	var kept [][]byte
	query := func(o *eventbridge.Options) {
		o.Decode = func(detail []byte, v any) error {
			kept = append(kept, detail)
			values, err := url.ParseQuery(string(detail))
			*v.(*url.Values) = values
			return err
		}
	}
	if got, want := decoded[url.Values](t, `"a=1&b=2"`, query), `{"a":["1"],"b":["2"]}`; got != want {
		t.Errorf("detail is %s, want %s", got, want)
	}
	decoded[url.Values](t, `{"a=1":2}`, query)
	if got := string(kept[0]) + " " + string(kept[1]); got != `a=1&b=2 {"a=1":2}` {
		t.Errorf("Decode got %s", got)
	}
	if got := decoded[url.Values](t, `"%"`, query); got != "" {
		t.Errorf("detail is %s, want an error", got)
	}
}

// It decodes strings and bytes too.
func TestDecodeOfText(t *testing.T) {
	shout := func(o *eventbridge.Options) {
		o.Decode = func(detail []byte, v any) error {
			switch v := v.(type) {
			case *string:
				*v = strings.ToUpper(string(detail))
			case *json.RawMessage:
				*v = json.RawMessage(quote(strings.ToUpper(string(detail))))
			}
			return nil
		}
	}
	if got := decoded[string](t, `"a"`, shout) + decoded[json.RawMessage](t, `"b"`, shout); got != `"A""B"` {
		t.Errorf("details are %s, want those that Decode makes", got)
	}
}

// Of a detail that cannot be decoded nothing is left for a sink to see.
func TestUndecodableIsZero(t *testing.T) {
	var got []order
	h := newHandler(t, (&worker{}).handle, guarded(t), func(o *eventbridge.Options) {
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
			got = append(got, r.Value.(*eventbridge.Event[order]).Detail)
			return nil
		}
	})
	wantDone(t, t.Context(), h, []byte(change(placed(1, "o1"), `"amount":1`, `"amount":"x"`)))
	if diff := cmp.Diff([]order{{}}, got); diff != "" {
		t.Errorf("details of what was given up (-want +got):\n%s", diff)
	}
}

// What a Decode returns is for the sink only if it says so.
func TestDecodeFails(t *testing.T) {
	for _, permanent := range []bool{false, true} {
		s := &sink{}
		h := newHandler(t, (&worker{}).handle, guarded(t), s.option, func(o *eventbridge.Options) {
			o.Decode = func([]byte, any) error {
				if permanent {
					return batch.Permanent(errors.New("boom"))
				}
				return errors.New("registry is gone")
			}
		})
		if event := placed(1, "o1"); permanent {
			wantDone(t, t.Context(), h, []byte(event))
			s.want(t, [2]string{event, "boom"})
		} else {
			wantFailed(t, t.Context(), h, []byte(event), 1, 1, "registry is gone")
			s.want(t)
		}
	}
}

// A replay is not decoded.
func TestReplayIsNotDecoded(t *testing.T) {
	decodes := 0
	h := newHandler(t, (&worker{}).handle, guarded(t), func(o *eventbridge.Options) {
		o.Decode = func(detail []byte, v any) error { decodes++; return json.Unmarshal(detail, v) }
	})
	for range 3 {
		wantDone(t, t.Context(), h, []byte(placed(1, "o1")))
	}
	if decodes != 1 {
		t.Errorf("decoded %d times, want once", decodes)
	}
}
