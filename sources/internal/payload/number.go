package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// withNumbers returns compatible for types that hold a json.Number, which the JSON package takes for any other string. It
// takes longer to make than all else that starting our packages takes, and few need it.
var withNumbers = sync.OnceValue(func() jsonv2.Options {
	return jsonv2.JoinOptions(compatible, jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(unmarshalNumber)))
})

func unmarshalNumber(decoder *jsontext.Decoder, n *json.Number) error {
	switch decoder.PeekKind() {
	case 'n':
		return decoder.SkipValue() // which leaves n as it is
	case '0':
		value, err := decoder.ReadValue()
		if err == nil {
			*n = json.Number(value)
		}
		return err
	case '"':
		token, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		text := token.String()
		if value := jsontext.Value(text); value.Kind() != '0' || !value.IsValid() || text != string(trimmed(value)) {
			return fmt.Errorf("found a string of %d bytes, want a number", len(text)) // not the text: it is the payload's
		}
		*n = json.Number(text)
		return nil
	default:
		return errors.ErrUnsupported // the error is the JSON package's own
	}
}

// trimmed is a value without white space around it.
func trimmed(v jsontext.Value) jsontext.Value {
	v = v.Clone()
	_ = v.Compact()
	return v
}

// hasNumber reports whether a value of type t can hold a json.Number. seen has the types that were looked at.
func hasNumber(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch {
	case t == reflect.TypeFor[json.Number]():
		return true
	case seen[t]:
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Array, reflect.Slice, reflect.Map:
		return hasNumber(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if hasNumber(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
