package sqs

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// bodyDecoder decodes bodies into a T.
type bodyDecoder[T any] struct {
	custom    func(body []byte, v any) error // Options.Decode
	takesNull bool                           // whether JSON null is a T
	mayRetain bool                           // whether decoding hands bytes to code that may keep them
}

func newBodyDecoder[T any](custom func([]byte, any) error) bodyDecoder[T] {
	t := reflect.TypeFor[T]()
	return bodyDecoder[T]{custom: custom, takesNull: takesNull(t), mayRetain: hasUnmarshaler(t, map[reflect.Type]bool{})}
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

// scratch holds unquoted bodies while they are decoded. What encoding/json's rules decode is a copy.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func (d *bodyDecoder[T]) decode(r *record, v *T) error {
	if len(r.body) == 0 || r.body[0] != '"' {
		return fmt.Errorf("sqs: body of message %q is %s, want a string", r.id, envelope.KindOf(r.body))
	}
	if d.custom == nil {
		switch v := any(v).(type) {
		case *string:
			*v, _ = envelope.String(r.body)
			return nil
		case *[]byte:
			*v = unquoted(nil, r.body)
			return nil
		case *json.RawMessage:
			*v = unquoted(nil, r.body)
			return nil
		}
	}
	if err := d.decodeText(r, v); err != nil {
		if d.custom == nil {
			err = &bodyError{err}
		}
		return fmt.Errorf("sqs: body of message %q is not a valid %v: %w", r.id, reflect.TypeFor[T](), err)
	}
	return nil
}

func (d *bodyDecoder[T]) decodeText(r *record, v *T) error {
	if d.custom != nil {
		return d.custom(unquoted(nil, r.body), v) // a copy, since nobody knows what it keeps
	}
	if d.mayRetain {
		return d.decodeJSON(unquoted(nil, r.body), v)
	}
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	*buffer = unquoted((*buffer)[:0], r.body)
	return d.decodeJSON(*buffer, v)
}

func (d *bodyDecoder[T]) decodeJSON(text []byte, v *T) error {
	if !d.takesNull && isNull(text) {
		return errNull
	}
	return unmarshal(text, v)
}

// unquoted appends the text of a JSON string. Broken UTF-8 in it becomes U+FFFD, as with encoding/json.
func unquoted(dst []byte, value string) []byte {
	dst, _ = jsontext.AppendUnquote(dst, value)
	return dst
}

func isNull(body []byte) bool {
	value := jsontext.Value(body)
	return value.Kind() == 'n' && value.IsValid()
}
