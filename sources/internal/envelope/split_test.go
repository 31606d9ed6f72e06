package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// visited is what a visitor was told of one record.
type visited struct {
	Raw     string
	Members map[string]string
}

// collector is a visitor that keeps what it is told.
type collector struct {
	members map[string]string
	records []visited
}

func (c *collector) Member(name, value string) {
	if c.members == nil {
		c.members = map[string]string{}
	}
	// Split leaves broken UTF-8 in names, which are compared and not kept. encoding/json replaces it, byte by byte.
	c.members[string([]rune(name))] = value
}

func (c *collector) End(raw string) {
	c.records = append(c.records, visited{raw, c.members})
	c.members = nil
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		name, payload string
		want          []visited
	}{
		{"no records", `{"Records":[]}`, nil},
		{"members as they stand", `{"Records":[{"a":1,"b":{"c":[2, 3]} , "d":"\u0041"}]}`,
			[]visited{{`{"a":1,"b":{"c":[2, 3]} , "d":"\u0041"}`, map[string]string{"a": "1", "b": `{"c":[2, 3]}`, "d": `"\u0041"`}}}},
		{"white space everywhere", " \r\n\t{ \"Records\" : [ { \"a\" : 1 } , { } ] } \n",
			[]visited{{`{ "a" : 1 }`, map[string]string{"a": "1"}}, {`{ }`, nil}}},
		{"records that are no objects", `{"Records":[null,1,"x",true,[1,{"a":2}],{"a":3}]}`,
			[]visited{{"null", nil}, {"1", nil}, {`"x"`, nil}, {"true", nil}, {`[1,{"a":2}]`, nil},
				{`{"a":3}`, map[string]string{"a": "3"}}}},
		{"members around Records", `{"before":{"Records":[1]},"Records":[2],"after":[{"Records":[3]}]}`, []visited{{"2", nil}}},
		{"duplicate members, in their order", `{"Records":[{"a":1,"a":2}]}`,
			[]visited{{`{"a":1,"a":2}`, map[string]string{"a": "2"}}}},
		{"an escaped member name", `{"Records":[{"\u0061":1}]}`, []visited{{`{"\u0061":1}`, map[string]string{"a": "1"}}}},
		{"an escaped Records", `{"\u0052ecords":[1]}`, []visited{{"1", nil}}},
		{"broken UTF-8", "{\"Records\":[{\"a\":\"\xff\xfe\"}]}",
			[]visited{{"{\"a\":\"\xff\xfe\"}", map[string]string{"a": "\"\xff\xfe\""}}}},
		{"text outside of ASCII before a record", `{"x":"日本","Records":[{"a":"é"}]}`,
			[]visited{{`{"a":"é"}`, map[string]string{"a": `"é"`}}}},
		{"white space wherever it may be", " {\n \"a\" :\t1 ,\n \"Records\" : [ { \"b\" : { } ,\n \"c\" : [ 1 , 2 ] } ,\n 3 ] ,\r \"d\" : null } ",
			[]visited{{"{ \"b\" : { } ,\n \"c\" : [ 1 , 2 ] }", map[string]string{"b": "{ }", "c": "[ 1 , 2 ]"}}, {"3", nil}}},
		{"a lone surrogate", `{"Records":[{"a":"\ud800"}]}`, []visited{{`{"a":"\ud800"}`, map[string]string{"a": `"\ud800"`}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c collector
			if err := envelope.Split([]byte(test.payload), &c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, c.records); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// Every error says what was found, and what was expected where that is not plain.
func TestSplitErrors(t *testing.T) {
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "event is not JSON: unexpected EOF at offset 0, want a value"},
		{"white space", " \n ", "event is not JSON: unexpected EOF at offset 3, want a value"},
		{"no JSON", "hello", `event is not JSON: found 'h' at offset 0, want a value`},
		{"HTML", "<html>", `event is not JSON: found '<' at offset 0, want a value`},
		{"null", "null", "event is null, want an object with Records"},
		{"a number", "1", "event is a number, want an object with Records"},
		{"a negative number", "-1", "event is a number, want an object with Records"},
		{"a string", `"Records"`, "event is a string, want an object with Records"},
		{"a boolean", "false", "event is a boolean, want an object with Records"},
		{"an array", `[{"Records":[]}]`, "event is an array, want an object with Records"},
		{"an empty object", "{}", "event has no Records, but is an empty object"},
		{"another event", `{"version":"0","id":"x","detail":{"Records":[]}}`, `event has no Records, but "version", "id", "detail"`},
		{"another case", `{"records":[]}`, `event has no Records, but "records"`},
		{"many other members", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1}`,
			`event has no Records, but "a", "b", "c", "d", "e", "f", "g", "h", ...`},
		{"Records null", `{"Records":null}`, "event has Records that are null, want an array"},
		{"Records an object", `{"Records":{"0":{}}}`, "event has Records that are an object, want an array"},
		{"Records a string", `{"Records":"[]"}`, "event has Records that are a string, want an array"},
		{"Records a number", `{"Records":0}`, "event has Records that are a number, want an array"},
		{"two arrays", `{"Records":[1],"Records":[]}`, "event has Records twice, want one array"},
		{"an array and null", `{"Records":[1],"\u0052ecords":null}`, "event has Records twice, want one array"},
		{"Records without a value", `{"Records":}`, "event is not JSON: found '}' at offset 11, want a value"},
		{"cut in a string", `{"Records":[{"a":"b`, "event is not JSON: unexpected EOF at offset 19, want the end of the string"},
		{"cut behind a record", `{"Records":[{"a":1}`, "event is not JSON: unexpected EOF at offset 19, want a comma or the end of the records"},
		{"cut behind the array", `{"Records":[{"a":1}]`, "event is not JSON: unexpected EOF at offset 20, want a comma or the end of the event"},
		{"cut in the first name", `{"Reco`, "event is not JSON: "},
		{"no comma", `{"Records":[1 2]}`, "event is not JSON: found '2' at offset 14, want a comma or the end of the records"},
		{"no comma between members", `{"Records":[{"a":1 "b":2}]}`, "event is not JSON: "},
		{"a trailing comma", `{"Records":[1,]}`, "event is not JSON: found ']' at offset 14, want a value"},
		{"a single quote", `{'Records':[]}`, "event is not JSON: found '\\'' at offset 1, want a member's name"},
		{"not a number", `{"Records":[{"a":NaN}]}`, "event is not JSON: found 'N' at offset 17, want a value"},
		{"an unknown escape", `{"Records":["\x"]}`, "event is not JSON: found '\\\\' at offset 13, want an escape such as \\n or \\u000a"},
		{"half an escape", `{"Records":["\u00"]}`, "event is not JSON: found '\\\\' at offset 13, want an escape such as \\n or \\u000a"},
		{"a control character", "{\"Records\":[\"0123456789\tx\"]}", "event is not JSON: found '\\t' at offset 23, want no control character in a string"},
		{"a number that begins with 0", `{"Records":[01]}`, "event is not JSON: found '1' at offset 13, want a comma or the end of the records"},
		{"a number without digits", `{"Records":[-]}`, "event is not JSON: found ']' at offset 13, want a digit"},
		{"a fraction without digits", `{"Records":[1.]}`, "event is not JSON: found ']' at offset 14, want a digit"},
		{"an exponent without digits", `{"Records":[1e+]}`, "event is not JSON: found ']' at offset 15, want a digit"},
		{"half a literal", `{"Records":[tru]}`, "event is not JSON: found ']' at offset 15, want true"},
		{"no colon", `{"Records":[{"a" 1}]}`, "event is not JSON: found '1' at offset 17, want a colon"},
		{"too deep", `{"Records":[` + strings.Repeat("[", 10_000), "event is not JSON: found '[' at offset 10010, want at most 10000 nested arrays and objects"},
		{"trailing bytes", `{"Records":[]}x`, "event is followed by more bytes at offset 14, want one JSON object"},
		{"a trailing value", `{"Records":[]} {"Records":[]}`, "event is followed by more bytes at offset 14, want one JSON object"},
		{"a trailing zero byte", "{\"Records\":[]}\x00", "event is followed by more bytes at offset 14, want one JSON object"},
		{"a byte order mark", "\ufeff{\"Records\":[]}", "event is not JSON: found '\\ufeff' at offset 0, want a value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := envelope.Split([]byte(test.payload), &collector{})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

// Elements takes what comes without Records: an array, or one value.
func TestElements(t *testing.T) {
	for _, test := range []struct {
		payload string
		want    []visited
		err     string
	}{
		{` [ {"a":1} , null,[{"b":2}] ] `, []visited{{`{"a":1}`, map[string]string{"a": "1"}}, {"null", nil}, {`[{"b":2}]`, nil}}, ""},
		{"[]", nil, ""},
		{` {"a":[1]} `, []visited{{`{"a":[1]}`, map[string]string{"a": "[1]"}}}, ""},
		{`"text"`, []visited{{`"text"`, nil}}, ""},
		{"17", []visited{{"17", nil}}, ""},
		{"", nil, "event is not JSON: unexpected EOF at offset 0, want a value"},
		{"[1,]", nil, "event is not JSON: found ']' at offset 3, want a value"},
		{"[1", nil, "event is not JSON: unexpected EOF at offset 2, want a comma or the end of the records"},
		{"[] []", nil, "event is followed by more bytes at offset 2, want one JSON value"},
		{"{}x", nil, "event is followed by more bytes at offset 2, want one JSON value"},
	} {
		var c collector
		err := envelope.Elements([]byte(test.payload), &c)
		if (err != nil) != (test.err != "") || err != nil && err.Error() != test.err {
			t.Errorf("%s: error is %v, want %q", test.payload, err, test.err)
		}
		if diff := cmp.Diff(test.want, c.records); err == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.payload, diff)
		}
		if got, want := envelope.IsArray([]byte(test.payload)), strings.HasPrefix(strings.TrimSpace(test.payload), "["); got != want {
			t.Errorf("%s: IsArray is %v, want %v", test.payload, got, want)
		}
	}
}

// As much nesting is taken as encoding/json takes.
func TestNesting(t *testing.T) {
	nested := func(before, open, scalar, shut, after string, n int) string {
		return before + strings.Repeat(open, n) + scalar + strings.Repeat(shut, n) + after
	}
	for _, test := range []struct {
		name  string
		split func([]byte, envelope.Visitor) error
		text  func(n int) string
		own   int // arrays and objects around
	}{
		{"record of an event", envelope.Split, func(n int) string { return nested(`{"Records":[`, "[", "1", "]", "]}", n) }, 2},
		{"member of a record", envelope.Split, func(n int) string { return nested(`{"Records":[{"a":`, "[", "1", "]", "}]}", n) }, 3},
		{"member of the event", envelope.Split, func(n int) string { return nested(`{"Records":[],"a":`, `{"a":`, "1", "}", "}", n) }, 1},
		{"element", envelope.Elements, func(n int) string { return nested("[", "[", "1", "]", "]", n) }, 1},
		{"member of an element", envelope.Elements, func(n int) string { return nested(`[{"a":`, "[", "", "]", "}]", n) }, 2},
		{"value", envelope.Elements, func(n int) string { return nested(`{"a":`, `{"a":`, "1", "}", "}", n) }, 1},
	} {
		for n, want := range map[int]bool{10_000 - test.own: true, 10_001 - test.own: false} {
			text := []byte(test.text(n))
			if got := test.split(text, &collector{}) == nil; got != want || json.Valid(text) != want {
				t.Errorf("%s, %d deep: taken %v, by encoding/json %v, want %v", test.name, n+test.own, got, json.Valid(text), want)
			}
		}
	}
}

// Lambda's runtime client writes the next event where this one was.
func TestSplitKeepsNothingOfThePayload(t *testing.T) {
	payload := []byte(`{"Records":[{"name":"value"},"plain"]}`)
	var c collector
	if err := envelope.Split(payload, &c); err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		payload[i] = '#'
	}
	want := []visited{{`{"name":"value"}`, map[string]string{"name": `"value"`}}, {`"plain"`, nil}}
	if diff := cmp.Diff(want, c.records); diff != "" {
		t.Errorf("records after the payload was overwritten (-want +got):\n%s", diff)
	}
}

func TestSplitLeavesThePayloadAlone(t *testing.T) {
	const payload = "{\"Records\":[{\"a\":\"\xff\\u0041\"}]} "
	got := []byte(payload)
	if err := envelope.Split(got, &collector{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(payload, string(got)); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
}

// Nesting is bounded, so that no event can exhaust the stack.
func TestSplitDeepNesting(t *testing.T) {
	payload := `{"Records":[` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `]}`
	if err := envelope.Split([]byte(payload), &collector{}); err == nil || !strings.HasPrefix(err.Error(), "event is not JSON: ") {
		t.Errorf("error is %v, want one of nesting", err)
	}
}

// standard takes an event apart with encoding/json, by exact names. Records that come twice are no event: whichever of
// them counted, those of the other would be lost.
func standard(payload []byte) (records []visited, ok bool) {
	if !json.Valid(payload) {
		return nil, false
	}
	found := false
	for _, m := range standardMembers(payload) {
		if m.name != "Records" {
			continue
		}
		var raws []json.RawMessage
		if found || m.value[0] != '[' || json.Unmarshal([]byte(m.value), &raws) != nil {
			return nil, false
		}
		found, records = true, nil
		for _, raw := range raws {
			v := visited{Raw: string(raw)}
			for _, m := range standardMembers(raw) {
				if v.Members == nil {
					v.Members = map[string]string{}
				}
				v.Members[m.name] = m.value
			}
			records = append(records, v)
		}
	}
	return records, found
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		`{"Records":[]}`, `{"Records":[{"messageId":"1","body":"{}"},null,1,"x",[{}]]}`, `{"Records":[{"a":1}],"Records":[2]}`,
		"{\"Records\":[{\"\xff\xfe\":\"\xff\"}]}", `{"Rec\u006frds":[{"\u0061":"\ud800\udc00"}]}`, `{"a":{"Records":[1]}}`,
		` { "Records" : [ { "a" : -1.5e3 } ] } `, "{\n \"a\": 1,\n \"Records\": [\n {\n \"b\": 2,\n \"c\": 3\n },\n 4\n ],\n \"d\": 5\n}", `{"Records":[{"a":{"b":[1,2,{"c":"}"}]}}]}x`, `null`, ``, `{"Records":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if strings.Count(string(payload), "[")+strings.Count(string(payload), "{") > 9_000 {
			t.Skip("the two packages bound nesting one level apart")
		}
		want, ok := standard(payload)
		var c collector
		err := envelope.Split(payload, &c)
		if (err == nil) != ok {
			t.Fatalf("error is %v, but encoding/json takes it: %v", err, ok)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, c.records); diff != "" {
			t.Errorf("records (-encoding/json +Split):\n%s", diff)
		}
	})
}
