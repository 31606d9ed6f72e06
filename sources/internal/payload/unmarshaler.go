package payload

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
)

// unmarshalers are the methods that decoding calls.
var unmarshalers = []reflect.Type{
	reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[stdjson.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// copying are packages of the standard library whose types have such methods, and keep nothing of what they are given.
var copying = []string{"time", "encoding/json", "math/big", "net/netip", "net"}

// hasUnmarshaler reports whether a value of type t can hold one that is decoded by a method of its own. Such a method
// must not keep the bytes that it is given, but many do, and with json.Unmarshal(body, &v) nobody notices. seen has the
// types that were looked at.
func hasUnmarshaler(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || slices.Contains(copying, t.PkgPath()) {
		return false
	}
	seen[t] = true
	if t.Kind() == reflect.Pointer {
		return hasUnmarshaler(t.Elem(), seen) // which has its methods
	}
	for _, u := range unmarshalers {
		if t.Implements(u) || reflect.PointerTo(t).Implements(u) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		return hasUnmarshaler(t.Elem(), seen)
	case reflect.Map:
		return hasUnmarshaler(t.Key(), seen) || hasUnmarshaler(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if hasUnmarshaler(t.Field(i).Type, seen) {
				return true
			}
		}
	case reflect.Interface:
		return t.NumMethod() > 0 // a value that is in it already is decoded into
	}
	return false
}
