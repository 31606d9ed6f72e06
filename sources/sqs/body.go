package sqs

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// decodeBody decodes the body, which the event has as a JSON string. Broken UTF-8 in it becomes U+FFFD, as with
// encoding/json.
func (h *Handler[T]) decodeBody(r *record, v *T) error {
	if len(r.body) == 0 || r.body[0] != '"' {
		return fmt.Errorf("sqs: body of message %q is %s, want a string", r.id, envelope.KindOf(r.body))
	}
	if text, ok := any(v).(*string); ok && h.options.Decode == nil {
		*text, _ = envelope.String(r.body) // without a copy
		return nil
	}
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	*buffer, _ = jsontext.AppendUnquote((*buffer)[:0], r.body)
	if err := h.body.Decode(*buffer, v); err != nil {
		return fmt.Errorf("sqs: body of message %q is not a valid %v: %w", r.id, reflect.TypeFor[T](), err)
	}
	return nil
}
