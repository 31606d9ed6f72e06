package dynamostore

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var ignoreUnexported = cmpopts.IgnoreUnexported(
	types.AttributeValueMemberNULL{}, types.AttributeValueMemberBOOL{}, types.AttributeValueMemberN{}, types.AttributeValueMemberS{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberSS{}, types.AttributeValueMemberNS{},
	types.AttributeValueMemberB{}, types.AttributeValueMemberBS{},
)

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// TestEncode has results as both options store them, and as both read them.
func TestEncode(t *testing.T) {
	str := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	num := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for _, test := range []struct {
		data   string
		native types.AttributeValue
		back   string // what native data comes back as; empty: data
	}{
		{`null`, &types.AttributeValueMemberNULL{Value: true}, ""},
		{`true`, &types.AttributeValueMemberBOOL{Value: true}, ""},
		{`false`, &types.AttributeValueMemberBOOL{Value: false}, ""},
		{`0`, num("0"), ""},
		{`-0`, num("0"), `0`},
		{`9007199254740993`, num("9007199254740993"), ""},
		{`1.0`, num("1"), `1`},
		{`""`, str(""), ""},
		{`"done"`, str("done"), ""},
		{`"\u0061\u0000\ud83d\ude00"`, str("a\x00😀"), `"a\u0000😀"`},
		{`[]`, &types.AttributeValueMemberL{Value: []types.AttributeValue{}}, ""},
		{`{}`, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}, ""},
		{` { "b" : [ 1 , "2" ] , "a" : {"n":null} } `, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"b": &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1"), str("2")}},
			"a": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": &types.AttributeValueMemberNULL{Value: true}}},
		}}, `{"a":{"n":null},"b":[1,"2"]}`},
		{`{"e":1,"d":2,"c":3,"b":4,"a":5}`, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"a": num("5"), "b": num("4"), "c": num("3"), "d": num("2"), "e": num("1"),
		}}, `{"a":5,"b":4,"c":3,"d":2,"e":1}`},

		// Strings that would be read as JSON text stay text.
		{`"1"`, str(`"1"`), ""},
		{`"null"`, str(`"null"`), ""},
		{`"{\"a\":1}"`, str(`"{\"a\":1}"`), ""},
		{`"\"quoted\""`, str(`"\"quoted\""`), ""},
		{`" 1\n"`, str(`" 1\n"`), ""},
		{`"{\"a\":"`, str(`{"a":`), ""},
	} {
		back := test.back
		if back == "" {
			back = test.data
		}
		for _, form := range []struct {
			options Options
			stored  types.AttributeValue
			back    string
		}{
			{Options{}, str(test.data), test.data},
			{Options{NativeData: true}, test.native, back},
		} {
			value, size, err := form.options.encode([]byte(test.data))
			if err != nil {
				t.Errorf("%s, native %t: %v", test.data, form.options.NativeData, err)
				continue
			}
			if diff := cmp.Diff(form.stored, value, ignoreUnexported); diff != "" {
				t.Errorf("%s, native %t, is stored as (-want +got):\n%s", test.data, form.options.NativeData, diff)
			}
			if size > len(test.data) {
				t.Errorf("%s, native %t: least size is %d; want %d at most", test.data, form.options.NativeData, size, len(test.data))
			}
			got, err := decode(value)
			if diff := cmp.Diff(form.back, string(got)); diff != "" || err != nil {
				t.Errorf("%s, native %t, comes back (-want +got, error %v):\n%s", test.data, form.options.NativeData, err, diff)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, test := range []struct {
		name, data string
		text       string // the error of the default; empty: none
		native     string
	}{
		{"empty", "", "not JSON", "no JSON that native data can keep"},
		{"no JSON", "done", "not JSON", "no JSON that native data can keep"},
		{"cut off", `{"a":[1`, "not JSON", "no JSON that native data can keep"},
		{"wrong end", `[1}`, "not JSON", "no JSON that native data can keep"},
		{"two values", `1 2`, "not JSON", "more than one JSON value"},
		{"rubbish behind", `1 x`, "not JSON", "no JSON that native data can keep"},
		{"not UTF-8", "\"\xff\"", "not valid UTF-8", "no JSON that native data can keep"},
		{"half a pair", `"\ud83d"`, "", "no JSON that native data can keep"},
		{"a name twice", `{"a":1,"a":2}`, "", "no JSON that native data can keep"},
		{"no name", `{"":1}`, "", "whose name has 0 bytes; want 1 to 65535"},
		{"a long name", `{"` + strings.Repeat("n", 1<<16) + `":1}`, "", "whose name has 65536 bytes; want 1 to 65535"},
		{"32 deep", nested(32), "", ""},
		{"33 deep", nested(33), "", "more than 32 objects and arrays in one another"},
		{"39 digits", `[` + strings.Repeat("9", 39) + `]`, "", "number 999999999999999999999999999999999999999; want up to 38"},
		{"large", `{"a":1e300}`, "", "number 1e300; want up to 38 significant digits"},
	} {
		for _, form := range []struct {
			options Options
			want    string
		}{{Options{}, test.text}, {Options{NativeData: true}, test.native}} {
			value, _, err := form.options.encode([]byte(test.data))
			if (err == nil) != (form.want == "") || err != nil && !strings.Contains(err.Error(), form.want) || (value == nil) != (err != nil) {
				t.Errorf("%s, native %t: value is %v, error is %v; want %q", test.name, form.options.NativeData, value, err, form.want)
			}
		}
	}
}

// TestDecode has what other tools store that JSON has no word for.
func TestDecode(t *testing.T) {
	for _, test := range []struct {
		value types.AttributeValue
		want  string
		err   string
	}{
		{&types.AttributeValueMemberB{Value: []byte{0, 1, 0xff}}, `"AAH/"`, ""},
		{&types.AttributeValueMemberSS{Value: []string{"b", "a\n"}}, `["b","a\n"]`, ""},
		{&types.AttributeValueMemberNS{Value: []string{"1", "2.50"}}, `[1,2.5]`, ""},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}}, `["AQ==",""]`, ""},
		{&types.AttributeValueMemberS{Value: " [1, 2] "}, " [1, 2] ", ""},
		{&types.AttributeValueMemberS{Value: `{"a":1,"a":2}`}, `{"a":1,"a":2}`, ""},
		{&types.AttributeValueMemberN{Value: "many"}, "", `has the number "many"; want one of DynamoDB's`},
		{&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.UnknownUnionMember{}}}, "", "of type *types.UnknownUnionMember"},
		{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a": nil}}, "", "of type <nil>"},
		{&types.AttributeValueMemberS{Value: "\xff"}, "", "invalid UTF-8"},
		{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"\xff": nil}}, "", "invalid UTF-8"},
	} {
		got, err := decode(test.value)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || err == nil && string(got) != test.want {
			t.Errorf("decode(%v) = %s, %v; want %s, %q", test.value, got, err, test.want, test.err)
		}
	}
}

// FuzzEncode has any bytes come back as the same value, or not be taken.
func FuzzEncode(f *testing.F) {
	for _, data := range []string{`{"a":[1,-2.5e3,"x",null,true,{}]}`, `"1"`, `"\ud83d"`, nested(33), `1e200`, `{"a":1,"a":2}`, `"`, ``, `" "`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range []Options{{}, {NativeData: true}} {
			value, _, err := o.encode(data)
			if err != nil {
				continue
			}
			back, err := decode(value)
			if err != nil {
				t.Fatalf("native %t: %v", o.NativeData, err)
			}
			if !o.NativeData {
				if !bytes.Equal(data, back) {
					t.Fatalf("%q comes back as %q", data, back)
				}
				continue
			}
			if want, got := normal(t, data), normal(t, back); !reflect.DeepEqual(want, got) {
				t.Fatalf("%q comes back as %q (-want +got):\n%s", data, back, cmp.Diff(want, got))
			}
		}
	})
}

// normal decodes JSON with numbers as their exact digits.
func normal(t *testing.T, data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	var walk func(any) any
	walk = func(value any) any {
		switch v := value.(type) {
		case json.Number:
			d, _ := parseDecimal(v.String())
			return d
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = walk(v[name])
			}
		}
		return value
	}
	return walk(value)
}
