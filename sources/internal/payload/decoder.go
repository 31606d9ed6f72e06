package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Decoder decodes payloads into a T. It is safe for concurrent use.
type Decoder[T any] struct {
	custom    func(data []byte, v any) error
	takesNull bool // whether JSON null is a T
	mayRetain bool // whether decoding hands bytes to code that may keep them
	options   jsonv2.Options
}

// NewDecoder returns a Decoder that decodes with custom. Nil means that a string, []byte or json.RawMessage is the payload
// as it is, and that anything else is decoded as JSON, by the rules of encoding/json; null is then an error unless a T
// takes it.
func NewDecoder[T any](custom func(data []byte, v any) error) Decoder[T] {
	t := reflect.TypeFor[T]()
	d := Decoder[T]{
		custom: custom, takesNull: takesNull(t), mayRetain: hasUnmarshaler(t, map[reflect.Type]bool{}), options: compatible,
	}
	if hasNumber(t, map[reflect.Type]bool{}) {
		d.options = withNumbers()
	}
	return d
}

// takesNull reports whether decoding null sets a t. For other types encoding/json takes null for no value at all, as do
// those of the standard library that have an UnmarshalJSON: the handler would run with a zero value.
func takesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) && !slices.Contains(copying, t.PkgPath())
}

var errNull = errors.New("found null")

// Decode decodes data, which the caller may overwrite afterwards: nothing of v is a part of it. The text of an error that
// is not of the custom function's making shows nothing of data.
func (d *Decoder[T]) Decode(data []byte, v *T) error {
	if d.custom != nil {
		return d.custom(bytes.Clone(data), v) // a copy, since nobody knows what it keeps
	}
	switch v := any(v).(type) {
	case *string:
		*v = string(data)
		return nil
	case *[]byte:
		*v = append([]byte{}, data...)
		return nil
	case *json.RawMessage:
		*v = append(json.RawMessage{}, data...)
		return nil
	}
	if !d.takesNull && isNull(data) {
		return &decodeError{errNull}
	}
	if d.mayRetain {
		data = bytes.Clone(data)
	}
	if err := jsonv2.Unmarshal(data, v, d.options); err != nil {
		return &decodeError{err}
	}
	return nil
}

// compatible are the options that make payloads decode as with encoding/json, but for the errors: the legacy ones cost a
// pass over the payload of their own, and say less.
var compatible = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// Unmarshal decodes JSON by the rules of encoding/json.
func Unmarshal(data []byte, v any) error { return jsonv2.Unmarshal(data, v, compatible) }

func isNull(data []byte) bool {
	value := jsontext.Value(data)
	return value.Kind() == 'n' && value.IsValid()
}
