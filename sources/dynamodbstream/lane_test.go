package dynamodbstream

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestLane(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{`{"pk":{"S":"a"}}`, "2:pkS1:a"},
		{`{"pk":{"S":""}}`, "2:pkS0:"},
		{`{"pk":{"N":"10"}}`, "2:pkN3:1e1"},
		{`{"pk":{"B":"AAEC"}}`, "2:pkB3:\x00\x01\x02"},
		{`{"pk":{"S":"a"},"sk":{"S":"b"}}`, "2:pkS1:a2:skS1:b"},
		{`{"sk":{"S":"b"},"pk":{"S":"a"}}`, "2:pkS1:a2:skS1:b"},
		{` { "sk" : { "S" : "b" } , "pk" : { "S" : "\u0061" } } `, "2:pkS1:a2:skS1:b"},
		{`{"c":{"S":"3"},"a":{"S":"1"},"b":{"S":"2"}}`, "1:aS1:11:bS1:21:cS1:3"},
	} {
		if got, err := lane(test.keys); got != test.want || err != nil {
			t.Errorf("lane of %s is %q, %v, want %q", test.keys, got, err, test.want)
		}
	}
}

func TestLaneErrors(t *testing.T) {
	const noKeys = "dynamodbstream: record has no Keys, want those of its item"
	for _, test := range []struct{ keys, want string }{
		{``, noKeys},
		{`null`, noKeys},
		{`{}`, "dynamodbstream: Keys: it has no attributes, want those of a key"},
		{`[]`, "dynamodbstream: Keys: it is an array, want an object"},
		{`"SECRET"`, "dynamodbstream: Keys: it is a string, want an object"},
		{`{"pk":"SECRET"}`, `dynamodbstream: Keys: attribute "pk" is a string, want an object with a type`},
		{`{"pk":{}}`, `dynamodbstream: Keys: attribute "pk" has no type, want one`},
		{`{"pk":{"S":4111}}`, `dynamodbstream: Keys: attribute "pk" S is a number, want a string`},
		{`{"pk":{"S":"SECRET","N":"1"}}`, `dynamodbstream: Keys: attribute "pk" has more than one type, want one`},
		{`{"pk":{"N":"SECRET"}}`, `dynamodbstream: Keys: attribute "pk" N is text of 6 bytes that is no number, want one`},
		{`{"pk":{"B":"SECRET"}}`, `dynamodbstream: Keys: attribute "pk" B is text that is not base64, want base64`},
		{`{"pk":{"BOOL":true}}`, `dynamodbstream: Keys: attribute "pk" is of type BOOL, want S, N or B, as keys are`},
		{`{"pk":{"M":{}}}`, `dynamodbstream: Keys: attribute "pk" is of type M, want S, N or B, as keys are`},
		{`{"pk":{"S":"a"},"pk":{"S":"b"}}`, `dynamodbstream: Keys have attribute "pk" twice, want each once`},
		{`{"pk":{"S":"a"},"sk":{"S":"b"},"pk":{"S":"a"}}`, `dynamodbstream: Keys have attribute "pk" twice, want each once`},
	} {
		if got, err := lane(test.keys); got != "" || err == nil || err.Error() != test.want {
			t.Errorf("lane of %s is %q, %v, want %q", test.keys, got, err, test.want)
		}
	}
}

// drawnKey is an attribute of a key, and the ways to write it.
type drawnKey struct {
	name, kind, value string
}

func (k drawnKey) identity() string {
	if k.kind == "N" {
		n, ok := new(big.Rat).SetString(k.value)
		if !ok {
			panic(k.value)
		}
		return fmt.Sprintf("%q N %s", k.name, n)
	}
	return fmt.Sprintf("%q %s %q", k.name, k.kind, k.value)
}

func (k drawnKey) json() string {
	value := k.value
	if k.kind == "B" {
		value = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return quote(k.name) + `:{"` + k.kind + `":` + quote(value) + `}`
}

func drawKey(t *rapid.T, label string) (identity, json string) {
	// Few characters, some of which a lane has between its parts, so that equal and confusable keys come up.
	text := rapid.StringOfN(rapid.SampledFrom([]rune(`a1:S"\é`)), 0, 3, -1)
	var parts [2]drawnKey
	for i := range parts {
		kind := rapid.SampledFrom([]string{"S", "N", "B"}).Draw(t, label+" type")
		value := text.Draw(t, label+" value")
		if kind == "N" {
			value = rapid.StringMatching(`-?[01]{1,2}(\.0)?(E[01])?`).Draw(t, label+" number")
		}
		parts[i] = drawnKey{fmt.Sprint(i) + text.Draw(t, label+" name"), kind, value}
	}
	if rapid.Bool().Draw(t, label+" is one") {
		return parts[0].identity(), "{" + parts[0].json() + "}"
	}
	first, second := parts[0].json(), parts[1].json()
	if rapid.Bool().Draw(t, label+" is turned") {
		first, second = second, first
	}
	return parts[0].identity() + parts[1].identity(), "{" + first + "," + second + "}"
}

// Two keys have one lane if and only if they are of the same item.
func TestLanesAreOfItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, jsonA := drawKey(t, "a")
		b, jsonB := drawKey(t, "b")
		laneA, errA := lane(jsonA)
		laneB, errB := lane(jsonB)
		if errA != nil || errB != nil {
			t.Fatalf("errors are %v and %v, want none", errA, errB)
		}
		if (a == b) != (laneA == laneB) {
			t.Fatalf("lane of %s is %q, of %s is %q, but that they are of one item is %v", jsonA, laneA, jsonB, laneB, a == b)
		}
	})
}

func TestLaneAllocations(t *testing.T) {
	const keys = `{"sk":{"S":"2026-12-01T00:00:00Z"},"pk":{"S":"customer#0123456789"}}`
	got := testing.AllocsPerRun(100, func() {
		if _, err := lane(keys); err != nil {
			t.Fatal(err)
		}
	})
	if got > 2 {
		t.Errorf("a lane costs %v allocations, want 2 at most", got)
	}
}
