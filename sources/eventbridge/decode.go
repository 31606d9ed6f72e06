package eventbridge

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// decoder decodes the details of events.
type decoder[T any] struct {
	payload.Decoder[T]
	custom bool
}

func newDecoder[T any](custom func([]byte, any) error) decoder[T] {
	return decoder[T]{payload.NewDecoder[T](custom), custom != nil}
}

// decode decodes the event's detail. If it returns an error, Detail is zero.
func (d *decoder[T]) decode(v *Event[T]) error {
	e := v.e
	if e.detail == "" {
		return fmt.Errorf("eventbridge: detail of event %.200q is missing, want one", e.id)
	}
	if err := d.decodeJSON(e.detail, &v.Detail); err != nil {
		var zero T
		v.Detail = zero
		return fmt.Errorf("eventbridge: detail of event %.200q is not a valid %v: %w", e.id, reflect.TypeFor[T](), err)
	}
	return nil
}

// decodeJSON decodes a detail. One that is a JSON string stands for its text: some producers put JSON into it.
func (d *decoder[T]) decodeJSON(detail string, v *T) error {
	text, isString := envelope.String(detail)
	if !isString {
		text = detail
	}
	if !d.custom {
		switch v := any(v).(type) {
		case *string:
			*v = text // without a copy
			return nil
		case *[]byte:
			*v = []byte(text)
			return nil
		case *json.RawMessage:
			*v = json.RawMessage(detail) // the text may be no JSON
			return nil
		}
	}
	if d.custom || !isString {
		return d.decodeText(text, v)
	}
	if !holdsJSON(text) {
		return d.decodeText(detail, v)
	}
	// A T may be made for the string: one of its own kind of string, or with a method that decodes itself.
	err := d.decodeText(text, v)
	if err != nil {
		var zero T
		if *v = zero; d.decodeText(detail, v) == nil {
			return nil
		}
	}
	return err
}

func (d *decoder[T]) decodeText(text string, v *T) error {
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	*buffer = append((*buffer)[:0], text...)
	return d.Decode(*buffer, v)
}
