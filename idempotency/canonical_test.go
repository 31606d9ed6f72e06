package idempotency_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// Case 17: key order and white space do not matter, order in arrays and every digit does.
func TestCanonicalJSON(t *testing.T) {
	for _, test := range []struct{ payload, want string }{
		{` { "b" : 2 , "a" : [ 1 , { "d" : null , "c" : true } ] } `, `{"a":[1,{"c":true,"d":null}],"b":2}`},
		{"\n[3,1,2]\t", `[3,1,2]`},
		{`{}`, `{}`},
		{`[ ]`, `[]`},
		{`[[],{},[{}]]`, `[[],{},[{}]]`},
		{`""`, `""`},
		{`false`, `false`},
		// Names: by bytes, and by their characters rather than by their escapes.
		{`{"b":1,"a":2,"aa":3,"B":4,"":5,"ä":6,"10":7,"9":8}`, `{"":5,"10":7,"9":8,"B":4,"a":2,"aa":3,"b":1,"ä":6}`},
		{`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{`{"a!":1,"a\"":2,"a#":3,"a\\":4,"a]":5,"a":6}`, `{"a":6,"a!":1,"a\"":2,"a#":3,"a\\":4,"a]":5}`},
		{`{"\ud83d\ude00":1,"\ufb33":2,"\u20ac":3}`, "{\"\u20ac\":3,\"\ufb33\":2,\"\U0001f600\":1}"}, // RFC 8785 has the last two the other way round
		// Strings.
		{`"\u0041\/\u00e9\ud83d\ude00"`, `"A/é😀"`},
		{`"\u0008\t\n\f\r\u001F\u007f\"\\"`, `"\b\t\n\f\r\u001f` + "\x7f" + `\"\\"`},
		{`"\u2028<&>"`, "\"\u2028<&>\""},
		{`"` + "\ufffd" + `"`, `"` + "\ufffd" + `"`},
		{`"e\u0301"`, "\"e\u0301\""}, // stays two characters
	} {
		got, err := idempotency.CanonicalJSON([]byte(test.payload))
		if diff := cmp.Diff(test.want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: error is %v, text (-want +got):\n%s", test.payload, err, diff)
		}
	}
}

// Numbers have one text for each value, and no two values have one.
func TestCanonicalNumbers(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	for want, numbers := range map[string][]string{
		"0":                                    {"0", "-0", "0.0", "-0.00", "0e5", "0E-5", "-0e99999999999999999999", "0e+00"},
		"1":                                    {"1", "1.0", "1e0", "1E+0", "1e-0", "10e-1", "0.1e1", "0.001e3", "1.000", "1e00000000000000000000", "1" + zeros + "e-1000"},
		"-1":                                   {"-1", "-1.0", "-10e-1"},
		"100":                                  {"100", "1e2", "1.00e2", "1000e-1", "100.0"},
		"12.5":                                 {"12.5", "12.50", "125e-1", "0.125e2"},
		"9007199254740992":                     {"9007199254740992", "9007199254740992.0", "9.007199254740992e15"},
		"9007199254740993":                     {"9007199254740993", "9007199254740993.0", "9.007199254740993e15", "9007199254740993000e-3"},
		"0.1":                                  {"0.1", "1e-1", "0.10"},
		"0.000001":                             {"0.000001", "1e-6"},
		"1e-7":                                 {"0.0000001", "1e-7", "10e-8"},
		"1.5e-7":                               {"0.00000015", "1.5E-7"},
		"100000000000000000000":                {"100000000000000000000", "1e20"},
		"123456789012345678901":                {"123456789012345678901", "123456789012345678901.0"},
		"1e+21":                                {"1000000000000000000000", "1e21", "1E+21", "10e20"},
		"1.234567890123456789e+21":             {"1234567890123456789000", "1.234567890123456789e21"},
		"-1.5e+400":                            {"-1.5e400", "-15e399"},
		"1e+999999999999999999":                {"1e999999999999999999", "10e999999999999999998"},
		"1e-999999999999999999":                {"1e-999999999999999999", "0.1e-999999999999999998"},
		"1e+1000000000000000000":               {"10e999999999999999999"},
		"0.1000000000000000055511151231257827": {"0.1000000000000000055511151231257827"},
		"2e+1000":                              {"2" + zeros, "2" + zeros + ".0"},
		"2e-1001":                              {"0." + zeros + "2"},
	} {
		for _, number := range numbers {
			got, err := idempotency.CanonicalJSON([]byte(number))
			if string(got) != want || err != nil {
				t.Errorf("%.50s: got %s, %v, want %s", number, got, err, want)
			}
		}
	}
}

// What two parsers may read as two payloads, or is none, has no canonical text, and the error says why.
func TestCanonicalErrors(t *testing.T) {
	const secret = "SECRET"
	deep := func(n int, left, right string) string {
		return strings.Repeat(left, n) + "1" + strings.Repeat(right, n)
	}
	for payload, want := range map[string]string{
		``:                                "idempotency: payload is empty, want JSON",
		` `:                               "idempotency: payload is empty, want JSON",
		`{`:                               "idempotency: payload ends within a value, want all of its JSON",
		`[1,`:                             "idempotency: payload ends within a value",
		`"SECRET`:                         "idempotency: payload ends within a value",
		`{"SECRET":1,"b":2,"SECRET":1}`:   "idempotency: payload has two members of one name in an object, the second at offset 18, want one",
		`{"a":{"a":1,"\u0061":2}}`:        "idempotency: payload has two members of one name",
		"\"SECRET\xff\"":                  "idempotency: payload is not valid UTF-8 at offset 7, want valid",
		"{\"ab\":\"\xed\xa0\x80\"}":       "idempotency: payload is not valid UTF-8 at offset 7",
		`"\ud800"`:                        "idempotency: payload is not JSON at offset",
		`"\udc00\ud800"`:                  "idempotency: payload is not JSON at offset",
		`1 2`:                             "idempotency: payload has no canonical JSON, at offset 3: another value follows",
		`{} x`:                            "idempotency: payload is not JSON at offset 3",
		`01`:                              "idempotency: payload has no canonical JSON, at offset 2: another value follows, want one",
		`+1`:                              "idempotency: payload is not JSON at offset 0",
		`.5`:                              "idempotency: payload is not JSON at offset 0",
		`NaN`:                             "idempotency: payload is not JSON at offset 0",
		`[1,]`:                            "idempotency: payload is not JSON at offset 2",
		`[1 2]`:                           "idempotency: payload is not JSON at offset 3",
		`{"SECRET":1,}`:                   "idempotency: payload is not JSON at offset 11",
		`{"SECRET" 1}`:                    "idempotency: payload is not JSON at offset 10",
		`{SECRET:1}`:                      "idempotency: payload is not JSON at offset 1",
		`]`:                               "idempotency: payload is not JSON at offset 0",
		"\ufeff1":                         "idempotency: payload is not JSON at offset 0",
		`[1e1000000000000000000]`:         "idempotency: payload has no canonical JSON, at offset 22: a number has an exponent of more than 18 digits",
		deep(257, "[", "]"):               "it is nested deeper than 256 levels",
		deep(257, `{"a":`, "}"):           "it is nested deeper than 256 levels",
		strings.Repeat("[", 10_000_000):   "it is nested deeper than 256 levels",
		strings.Repeat(`{"a":[`, 100_000): "it is nested deeper than 256 levels",
	} {
		got, err := idempotency.CanonicalJSON([]byte(payload))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || got != nil {
			t.Errorf("%.40q: got %.40q, error is %v, want %q in it", payload, got, err, want)
		}
		if hash, err := idempotency.PayloadHash([]byte(payload)); hash != "" || err == nil {
			t.Errorf("%.40q: hash is %q, %v, want an error", payload, hash, err)
		}
	}
	if got, err := idempotency.CanonicalJSON([]byte(deep(256, `[`, "]"))); err != nil || len(got) != 513 {
		t.Errorf("256 levels: error is %v", err)
	}
	if syntactic := new(jsontext.SyntacticError); errors.As(errOf([]byte("x")), &syntactic) {
		t.Error("the error shows the decoder's, whose text has names of the payload in it")
	}
}

func errOf(payload []byte) error {
	_, err := idempotency.CanonicalJSON(payload)
	return err
}

// The payload stays as it is, and what is returned is the caller's.
func TestCanonicalJSONCopies(t *testing.T) {
	payload := []byte(`{"b":[1.0],"a":"\u0041"}`)
	before := string(payload)
	first, _ := idempotency.CanonicalJSON(payload)
	copied := string(first)
	for range 10 {
		if _, err := idempotency.CanonicalJSON([]byte(`{"zzzzzzzzz":["zzzzzzzz"],"yyyyyyyy":99999}`)); err != nil {
			t.Fatal(err)
		}
	}
	if string(payload) != before || string(first) != copied {
		t.Errorf("payload is %s, and the text %s, want both as they were", payload, first)
	}
}

// A payload that makes as much work as it can takes no longer than one of its size may.
func TestCanonicalWork(t *testing.T) {
	var nested bytes.Buffer
	for range 255 {
		nested.WriteString(`{"b":0,"a":`)
	}
	nested.WriteString(`"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 255))
	var escaped bytes.Buffer
	escaped.WriteByte('{')
	for i := range 40_000 {
		escaped.WriteString(`"\u005c` + strconv.Itoa(40_000-i) + `":0,`)
	}
	escaped.WriteString(`"":0}`)
	for name, payload := range map[string][]byte{
		"nested":  nested.Bytes(),
		"escaped": escaped.Bytes(),
		"digits":  bytes.Repeat([]byte("7"), 1<<20),
		"zeros":   []byte("1e-" + strings.Repeat("0", 1<<20) + "9"),
		"minus":   []byte("[" + strings.Repeat("-1e99999999,", 1<<16) + "0]"),
	} {
		start := time.Now()
		if _, err := idempotency.CanonicalJSON(payload); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d bytes in %v", name, len(payload), time.Since(start))
		if took := time.Since(start); took > 20*time.Second { // a few hundred milliseconds are usual
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// jsonValue draws a JSON value of the kinds that encoding/json makes with UseNumber.
func jsonValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().Filter(isText).AsAny(),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?(e-?[0-9]{1,2})?`),
			func(s string) json.Number { return json.Number(s) }).AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(jsonValue(depth-1), 0, 4).AsAny(),
			rapid.MapOfN(rapid.String().Filter(isText), jsonValue(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}

func isText(s string) bool { return !strings.Contains(s, "\ufffd") }

// write writes the value with members in any order, any white space and any escapes.
func write(t *rapid.T, b *bytes.Buffer, value any) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r "})
	text := func(s string) {
		b.WriteByte('"')
		for _, r := range s {
			switch {
			case r < ' ' || r == '"' || r == '\\' || (r <= 0xffff && rapid.Bool().Draw(t, "escape")):
				fmt.Fprintf(b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
	}
	b.WriteString(space.Draw(t, "space"))
	switch value := value.(type) {
	case map[string]any:
		b.WriteByte('{')
		names := slices.Collect(maps.Keys(value))
		for i, name := range rapid.Permutation(names).Draw(t, "names") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(space.Draw(t, "space"))
			text(name)
			b.WriteString(space.Draw(t, "space") + ":")
			write(t, b, value[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, element := range value {
			if i > 0 {
				b.WriteByte(',')
			}
			write(t, b, element)
		}
		b.WriteByte(']')
	case string:
		text(value)
	default:
		data, _ := json.Marshal(value)
		b.Write(data)
	}
	b.WriteString(space.Draw(t, "space"))
}

// One value has one text however it is written, and that is its own canonical text and the value still.
func TestCanonicalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := jsonValue(3).Draw(t, "value")
		var a, b bytes.Buffer
		write(t, &a, value)
		write(t, &b, value)
		one, err := idempotency.CanonicalJSON(a.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", a.Bytes(), err)
		}
		other, err := idempotency.CanonicalJSON(b.Bytes())
		if err != nil || !bytes.Equal(one, other) {
			t.Fatalf("%s and %s: texts are %s and %s, %v", a.Bytes(), b.Bytes(), one, other, err)
		}
		again, err := idempotency.CanonicalJSON(one)
		if err != nil || !bytes.Equal(one, again) {
			t.Fatalf("text of %s is %s, %v", one, again, err)
		}
		if diff := cmp.Diff(decimals(value), decimals(decodeExactly(t, one))); diff != "" {
			t.Fatalf("value (-want +got):\n%s", diff)
		}
	})
}

func decodeExactly(t *rapid.T, text []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// FuzzCanonicalJSON compares with the canonical form of jsontext, RFC 8785. It is another one for two things only: names
// with characters beyond U+FFFF, which RFC 8785 sorts by UTF-16; and numbers that float64 does not tell from another one,
// which jsontext rounds. That has also no limit to an exponent, and allows deeper nesting.
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{
		`{"b":1,"a":[1.0,true,null,"\u0041"]}`, `{"a":1,"a":2}`, `9007199254740993`, `-0.0`, `1e999`, `"\ud83d\ude00"`, `{"\"":1,"!":2}`,
		`[5e-324,1.7976931348623157e308,1e21,1e-7,123456.789e3]`, "{\"a\":\"\xff\"}", `{"😀":1,"דּ":2}`, ` `, `[[[[[]]]]]`, `1e1234567890123456789`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := idempotency.CanonicalJSON(payload)
		want := jsontext.Value(bytes.Clone(payload))
		wantErr := want.Canonicalize()
		if err != nil {
			if wantErr == nil && !strings.Contains(err.Error(), "nested deeper") && !strings.Contains(err.Error(), "exponent") {
				t.Fatalf("%q: error is %v, but jsontext's text is %s", payload, err, want)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("%q: text is %s, but jsontext's error is %v", payload, got, wantErr)
		}
		if again, err := idempotency.CanonicalJSON(got); err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q: text of %s is %s, %v", payload, got, again, err)
		}
		rounded := jsontext.Value(bytes.Clone(got))
		if err := rounded.Canonicalize(); err != nil || !bytes.Equal(want, rounded) {
			t.Fatalf("%q: text is %s, rounded %s, %v, want %s", payload, got, rounded, err, want)
		}
		if isExact(got) && !bytes.ContainsFunc(got, func(r rune) bool { return r > math.MaxUint16 }) && !bytes.Equal(want, got) {
			t.Fatalf("%q: text is %s, want %s", payload, got, want)
		}
	})
}

// isExact reports whether each number of text is the shortest that its float64 is told from others by.
func isExact(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		if number, ok := token.(json.Number); ok {
			f, err := number.Float64()
			if err != nil || (f == 0 && number != "0") || exact(number).Cmp(exact(json.Number(strconv.FormatFloat(f, 'g', -1, 64)))) != 0 {
				return false
			}
		}
	}
}
