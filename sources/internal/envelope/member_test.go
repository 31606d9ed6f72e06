package envelope_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

func TestMember(t *testing.T) {
	const object = ` { "a" : 1 , "b":"x,}\"]", "c":{"a":2,"d":[{"e":"}"}]},"d":[1, 2],"e":null,"f":-1.5e3,"g":true,
		"\u0068":"h", "":"nameless", "a":"second", "h\"":"quote", "i":{} } `
	for _, test := range []struct{ object, name, want string }{
		{object, "a", `"second"`}, // the last one counts, as with encoding/json
		{object, "b", `"x,}\"]"`},
		{object, "c", `{"a":2,"d":[{"e":"}"}]}`},
		{object, "d", "[1, 2]"},
		{object, "e", "null"},
		{object, "f", "-1.5e3"},
		{object, "g", "true"},
		{object, "h", `"h"`},
		{object, "", `"nameless"`},
		{object, `h"`, `"quote"`},
		{object, "i", "{}"},
		{object, "A", ""},
		{object, "absent", ""},
		{`{}`, "a", ""},
		{`{"a":[]}`, "a", "[]"},
		{`{"ab":1,"a":2}`, "a", "2"},
		{"", "a", ""},
		{" ", "a", ""},
		{"null", "a", ""},
		{`[{"a":1}]`, "a", ""},
		{`"a"`, "a", ""},
		{"12", "a", ""},
	} {
		if got := envelope.Member(test.object, test.name); got != test.want {
			t.Errorf("Member(%s, %q) is %q, want %q", test.object, test.name, got, test.want)
		}
	}
}

func TestString(t *testing.T) {
	for _, test := range []struct {
		value, want string
		ok          bool
	}{
		{`"abc"`, "abc", true},
		{`""`, "", true},
		{`"a\nb\"c\\d\/e\u0041"`, "a\nb\"c\\d/eA", true},
		{`"日本"`, "日本", true},
		{`"\ud83d\ude00"`, "😀", true},
		{`"\ud83d"`, "\uFFFD", true},
		{"\"a\xff\xfeb\"", "a\uFFFD\uFFFDb", true}, // one for each byte, as with encoding/json
		{"\"\xff\\n\"", "\uFFFD\n", true},
		{"", "", false},
		{"null", "", false},
		{"1", "", false},
		{`{"a":"b"}`, "", false},
		{`["a"]`, "", false},
		{"true", "", false},
	} {
		got, ok := envelope.String(test.value)
		if got != test.want || ok != test.ok {
			t.Errorf("String(%s) is %q, %v, want %q, %v", test.value, got, ok, test.want, test.ok)
		}
	}
}

func TestKindOf(t *testing.T) {
	for value, want := range map[string]string{
		"": "missing", "null": "null", "true": "a boolean", "false": "a boolean", `"x"`: "a string", "0": "a number",
		"12": "a number", "-1": "a number", "9.5": "a number", "{}": "an object", "[]": "an array",
	} {
		if got := envelope.KindOf(value); got != want {
			t.Errorf("KindOf(%s) is %q, want %q", value, got, want)
		}
	}
}

type member struct{ name, value string }

// standardMembers returns the members of a JSON object by encoding/json, in their order.
func standardMembers(object []byte) (members []member) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return nil
		}
		members = append(members, member{name.(string), string(value)})
	}
	return members
}

func FuzzMember(f *testing.F) {
	f.Add(`{"a":1,"b":{"a":"}"},"a":2}`, "a")
	f.Add(` { "\u0061" : [ 1 , { "b" : "\\\"" } ] } `, "a")
	f.Add("{\"\xff\":null}", "b")
	f.Add(`[{"a":1}]`, "a")
	f.Add(`{"a":-0.1E+2,"b":tru`, "b")
	f.Fuzz(func(t *testing.T, object, name string) {
		// Broken UTF-8 stands for U+FFFD, but is not looked for as such.
		if !json.Valid([]byte(object)) || strings.ToValidUTF8(name, "\uFFFD") != name || strings.Contains(name, "\uFFFD") {
			return
		}
		want := ""
		for _, m := range standardMembers([]byte(object)) {
			if m.name == name {
				want = m.value
			}
		}
		if got := envelope.Member(object, name); got != want {
			t.Errorf("Member(%q, %q) is %q, want %q", object, name, got, want)
		}
	})
}

func FuzzString(f *testing.F) {
	for _, seed := range []string{`""`, `"a\n"`, `"\ud800"`, "\"\xff\xfe\"", "\"\xe6\x97\"", `"\u00e9"`, "1", "null", `["a"]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.TrimSpace(value) != value || !json.Valid([]byte(value)) {
			return
		}
		want := ""
		isString := value[0] == '"'
		if isString {
			if err := json.Unmarshal([]byte(value), &want); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := envelope.String(value); got != want || ok != isString {
			t.Errorf("String(%q) is %q, %v, want %q, %v", value, got, ok, want, isString)
		}
	})
}
