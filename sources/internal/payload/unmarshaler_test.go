package payload

import (
	"encoding"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type (
	ownJSON   struct{}
	ownText   string
	ownStream int
	onValue   struct{}

	list struct {
		Value int
		Next  *list
	}
	mixedList struct {
		Next  *mixedList
		Value ownJSON
	}
	mutual    struct{ Other []*mutualToo }
	mutualToo struct {
		Other map[string]mutual
		Text  ownText
	}
	plain struct {
		N     int
		S     []string
		Any   any
		When  time.Time
		Until *time.Time
		Raw   json.RawMessage
		Big   *big.Int
		Addr  map[netip.Addr]json.Number
	}
	embedded      struct{ ownJSON }
	embeddedDeep  struct{ A struct{ *embedded } }
	unexported    struct{ _ ownJSON }
	withInterface struct{ encoding.TextMarshaler }
	withTime      struct{ time.Time }
)

func (*ownJSON) UnmarshalJSON([]byte) error                  { return nil }
func (*ownText) UnmarshalText([]byte) error                  { return nil }
func (*ownStream) UnmarshalJSONFrom(*jsontext.Decoder) error { return nil }
func (onValue) UnmarshalJSON([]byte) error                   { return nil }

// Which types may hold a value that is decoded by a method of its own, which may keep the bytes.
func TestHasUnmarshaler(t *testing.T) {
	for _, test := range []struct {
		t    reflect.Type
		want bool
	}{
		{reflect.TypeFor[int](), false},
		{reflect.TypeFor[string](), false},
		{reflect.TypeFor[[]byte](), false},
		{reflect.TypeFor[any](), false},
		{reflect.TypeFor[map[string]any](), false},
		{reflect.TypeFor[plain](), false},
		{reflect.TypeFor[*plain](), false},
		{reflect.TypeFor[list](), false},
		{reflect.TypeFor[func(ownJSON) ownJSON](), false}, // has no JSON

		{reflect.TypeFor[time.Time](), false}, // copies
		{reflect.TypeFor[[2]*time.Time](), false},
		{reflect.TypeFor[json.RawMessage](), false},
		{reflect.TypeFor[big.Int](), false},

		{reflect.TypeFor[ownJSON](), true},
		{reflect.TypeFor[*ownJSON](), true},
		{reflect.TypeFor[**ownJSON](), true},
		{reflect.TypeFor[ownText](), true},
		{reflect.TypeFor[ownStream](), true},
		{reflect.TypeFor[onValue](), true},
		{reflect.TypeFor[[]ownText](), true},
		{reflect.TypeFor[[1]ownText](), true},
		{reflect.TypeFor[map[string]ownJSON](), true},
		{reflect.TypeFor[map[ownText]int](), true},
		{reflect.TypeFor[struct{ A, B []map[string]*ownJSON }](), true},
		{reflect.TypeFor[mixedList](), true},
		{reflect.TypeFor[mutual](), true},
		{reflect.TypeFor[mutualToo](), true},
		{reflect.TypeFor[embedded](), true},
		{reflect.TypeFor[embeddedDeep](), true},
		{reflect.TypeFor[unexported](), true}, // needlessly
		{reflect.TypeFor[withTime](), true},   // needlessly
		{reflect.TypeFor[encoding.TextMarshaler](), true},
		{reflect.TypeFor[withInterface](), true},
		{reflect.TypeFor[jsonv2.UnmarshalerFrom](), true},
	} {
		if got := hasUnmarshaler(test.t, map[reflect.Type]bool{}); got != test.want {
			t.Errorf("%v has an unmarshaler: %v, want %v", test.t, got, test.want)
		}
	}
}
