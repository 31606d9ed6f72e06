package dynamodbstream

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type (
	attributeValue = types.AttributeValue
	memberS        = types.AttributeValueMemberS
	memberN        = types.AttributeValueMemberN
	memberB        = types.AttributeValueMemberB
	memberBOOL     = types.AttributeValueMemberBOOL
	memberNULL     = types.AttributeValueMemberNULL
	memberSS       = types.AttributeValueMemberSS
	memberNS       = types.AttributeValueMemberNS
	memberBS       = types.AttributeValueMemberBS
	memberL        = types.AttributeValueMemberL
	memberM        = types.AttributeValueMemberM
)

// sdkValues lets cmp look into attribute values of the SDK.
var sdkValues = cmpopts.IgnoreUnexported(memberS{}, memberN{}, memberB{}, memberBOOL{}, memberNULL{}, memberSS{}, memberNS{},
	memberBS{}, memberL{}, memberM{})

func TestParseItem(t *testing.T) {
	for _, test := range []struct {
		value string // of attribute a
		want  attributeValue
	}{
		{`{"S":"x"}`, &memberS{Value: "x"}},
		{`{"S":""}`, &memberS{Value: ""}},
		{`{"S":"a\n\"b\\\u00e9}"}`, &memberS{Value: "a\n\"b\\é}"}},
		{"{\"S\":\"\xff\"}", &memberS{Value: "\uFFFD"}},
		{`{"\u0053":"x"}`, &memberS{Value: "x"}},
		{`{"N":"0"}`, &memberN{Value: "0"}},
		{`{"N":"-12.50"}`, &memberN{Value: "-12.50"}},
		{`{"N":"9.9999999999999999999999999999999999999E+125"}`, &memberN{Value: "9.9999999999999999999999999999999999999E+125"}},
		{`{"B":"AAEqQQ=="}`, &memberB{Value: []byte{0, 1, 42, 65}}},
		{`{"B":""}`, &memberB{Value: []byte{}}},
		{`{"BOOL":true}`, &memberBOOL{Value: true}},
		{`{"BOOL":false}`, &memberBOOL{Value: false}},
		{`{"NULL":true}`, &memberNULL{Value: true}},
		{`{"SS":["a","b"]}`, &memberSS{Value: []string{"a", "b"}}},
		{`{"SS":[]}`, &memberSS{Value: []string{}}}, // in AWS's example of an event
		{`{"NS":["1","2.5"]}`, &memberNS{Value: []string{"1", "2.5"}}},
		{`{"BS":["AA==","AQ=="]}`, &memberBS{Value: [][]byte{{0}, {1}}}},
		{`{"L":[]}`, &memberL{Value: []attributeValue{}}},
		{`{"L":[{"S":"x"},{"N":"1"},{"L":[{"BOOL":true}]}]}`, &memberL{Value: []attributeValue{
			&memberS{Value: "x"}, &memberN{Value: "1"}, &memberL{Value: []attributeValue{&memberBOOL{Value: true}}}}}},
		{`{"M":{}}`, &memberM{Value: map[string]attributeValue{}}},
		{`{"M":{"S":{"S":"x"},"":{"M":{"n":{"N":"1"}}}}}`, &memberM{Value: map[string]attributeValue{
			"S": &memberS{Value: "x"}, "": &memberM{Value: map[string]attributeValue{"n": &memberN{Value: "1"}}}}}},
		{" {\n\t\"L\" : [ { \"S\" : \"x\" } , { \"SS\" : [ \"y\" , \"z\" ] } ] } ", &memberL{Value: []attributeValue{
			&memberS{Value: "x"}, &memberSS{Value: []string{"y", "z"}}}}},
	} {
		got, err := parseItem(`{"before":{"N":"1"},"a":` + test.value + `,"be\u0068ind":{"S":"x"}}`)
		if err != nil {
			t.Errorf("%s: %v", test.value, err)
			continue
		}
		want := map[string]attributeValue{"before": &memberN{Value: "1"}, "a": test.want, "behind": &memberS{Value: "x"}}
		if diff := cmp.Diff(want, got, sdkValues); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.value, diff)
		}
	}
}

// The last of two attributes with one name counts, as with encoding/json.
func TestParseItemWithAnAttributeTwice(t *testing.T) {
	got, err := parseItem(`{"a":{"S":"x"},"a":{"N":"1"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]attributeValue{"a": &memberN{Value: "1"}}, got, sdkValues); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
}

// An error says where and what, and shows no value, and no name inside of a map.
func TestParseItemErrors(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{`null`, `attribute "a" is null, want an object with a type`},
		{`"SECRET"`, `attribute "a" is a string, want an object with a type`},
		{`4111`, `attribute "a" is a number, want an object with a type`},
		{`[{"S":"SECRET"}]`, `attribute "a" is an array, want an object with a type`},
		{`{}`, `attribute "a" has no type, want one`},
		{`{"":"SECRET"}`, `attribute "a" has no type, want one`},
		{`{"S":"SECRET","N":"4111"}`, `attribute "a" has more than one type, want one`},
		{`{"S":"SECRET","S":"SECRET"}`, `attribute "a" has more than one type, want one`},
		{`{"X":"SECRET"}`, `attribute "a" is of type "X", want S, N, B, BOOL, NULL, SS, NS, BS, L or M`},
		{`{"s":"SECRET"}`, `attribute "a" is of type "s", want S, N, B, BOOL, NULL, SS, NS, BS, L or M`},
		{`{"S":4111}`, `attribute "a" S is a number, want a string`},
		{`{"S":null}`, `attribute "a" S is null, want a string`},
		{`{"S":["SECRET"]}`, `attribute "a" S is an array, want a string`},
		{`{"N":4111}`, `attribute "a" N is a number, want a string`},
		{`{"N":"SECRET"}`, `attribute "a" N is text of 6 bytes that is no number, want one`},
		{`{"N":""}`, `attribute "a" N is text of 0 bytes that is no number, want one`},
		{`{"N":"NaN"}`, `attribute "a" N is text of 3 bytes that is no number, want one`},
		{`{"B":4111}`, `attribute "a" B is a number, want a string`},
		{`{"B":"SECRET"}`, `attribute "a" B is text that is not base64, want base64`},
		{`{"B":"AA"}`, `attribute "a" B is text that is not base64, want base64`},
		{`{"BOOL":"true"}`, `attribute "a" BOOL is a string, want a boolean`},
		{`{"BOOL":1}`, `attribute "a" BOOL is a number, want a boolean`},
		{`{"BOOL":null}`, `attribute "a" BOOL is null, want a boolean`},
		{`{"NULL":false}`, `attribute "a" NULL is a boolean, want true`},
		{`{"NULL":null}`, `attribute "a" NULL is null, want true`},
		{`{"SS":"SECRET"}`, `attribute "a" SS is a string, want an array`},
		{`{"SS":null}`, `attribute "a" SS is null, want an array`},
		{`{"SS":["x",4111]}`, `attribute "a"[1] S is a number, want a string`},
		{`{"SS":[null]}`, `attribute "a"[0] S is null, want a string`},
		{`{"NS":["1","SECRET"]}`, `attribute "a"[1] N is text of 6 bytes that is no number, want one`},
		{`{"BS":[4111]}`, `attribute "a"[0] B is a number, want a string`},
		{`{"BS":["SECRET"]}`, `attribute "a"[0] B is text that is not base64, want base64`},
		{`{"L":{"S":"SECRET"}}`, `attribute "a" L is an object, want an array`},
		{`{"L":null}`, `attribute "a" L is null, want an array`},
		{`{"L":[{"S":"x"},"SECRET"]}`, `attribute "a"[1] is a string, want an object with a type`},
		{`{"L":[{"S":"x"},{"SECRET":1}]}`, `attribute "a"[1] is of type "SECRET", want S`},
		{`{"M":[]}`, `attribute "a" M is an array, want an object`},
		{`{"M":null}`, `attribute "a" M is null, want an object`},
		{`{"M":{"SECRET":null}}`, `attribute "a".* is null, want an object with a type`},
		{`{"M":{"SECRET":{"L":[{"M":{"SECRET":{"N":"SECRET"}}}]}}}`,
			`attribute "a".*[0].* N is text of 6 bytes that is no number, want one`},
	} {
		item, err := parseItem(`{"b":{"S":"SECRET"},"a":` + test.value + `}`)
		if err == nil {
			t.Errorf("%s is %v, want an error", test.value, item)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: error is %q, want %q", test.value, got, test.want)
		}
		if got := err.Error(); strings.Contains(got, "4111") || strings.Contains(strings.ReplaceAll(got, `of type "SECRET"`, ""), "SECRET") {
			t.Errorf("%s: error is %q, which shows what is in the item", test.value, got)
		}
	}
	for item, want := range map[string]string{
		`null`: "it is null, want an object", `[]`: "it is an array, want an object", `"SECRET"`: "it is a string, want an object",
		`4111`: "it is a number, want an object", `true`: "it is a boolean, want an object", ``: "it is missing, want an object",
	} {
		if _, err := parseItem(item); err == nil || err.Error() != want {
			t.Errorf("%s: error is %v, want %q", item, err, want)
		}
	}
}

// nested returns an item with a string in n lists or maps.
func nested(n int) string {
	return `{"a":` + strings.Repeat(`{"L":[{"M":{"m":`, n/2) + strings.Repeat(`{"L":[`, n%2) + `{"S":"x"}` +
		strings.Repeat(`]}`, n%2) + strings.Repeat(`}}]}`, n/2) + `}`
}

func TestParseItemDepth(t *testing.T) {
	if _, err := parseItem(nested(maxDepth)); err != nil {
		t.Errorf("%d deep: %v", maxDepth, err)
	}
	for _, depth := range []int{maxDepth + 1, maxDepth + 2, 100_000} {
		_, err := parseItem(nested(depth))
		if want := "is more than 32 lists and maps deep, want as many at most"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d deep: error is %v, want %q", depth, err, want)
		}
	}
}

// What a handler keeps of an image must not keep the text of the whole batch.
func TestParseItemKeepsNothingOfTheText(t *testing.T) {
	text := []byte(`{"name":{"S":"string"},"n":{"N":"12"},"ss":{"SS":["s"]},"ns":{"NS":["1"]},"m":{"M":{"inner":{"S":"x"}}},"b":{"B":"AAEC"}}`)
	item, err := parseItem(unsafe.String(&text[0], len(text))) // which the parser takes for one that never changes
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = '#'
	}
	want := map[string]attributeValue{
		"name": &memberS{Value: "string"}, "n": &memberN{Value: "12"}, "ss": &memberSS{Value: []string{"s"}},
		"ns": &memberNS{Value: []string{"1"}}, "m": &memberM{Value: map[string]attributeValue{"inner": &memberS{Value: "x"}}},
		"b": &memberB{Value: []byte{0, 1, 2}},
	}
	if diff := cmp.Diff(want, item, sdkValues); diff != "" {
		t.Errorf("item after its text was overwritten (-want +got):\n%s", diff)
	}
}
