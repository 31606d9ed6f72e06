package sqs

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// decodeBody decodes the body, which the event has as a JSON string, or what was unwrapped from it. Broken UTF-8 in a
// string becomes U+FFFD, as with encoding/json.
func (h *Handler[T]) decodeBody(r *record, v *T) error {
	value, what := r.body, "body of"
	if r.inner != nil {
		value, what = r.inner.value, "what was unwrapped from"
	} else if !isString(value) {
		return fmt.Errorf("sqs: body of message %q is %s, want a string", r.id, envelope.KindOf(value))
	}
	if v, ok := any(v).(*string); ok && h.options.Decode == nil {
		*v = text(value) // without a copy
		return nil
	}
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	*buffer = appendText((*buffer)[:0], value)
	if err := h.body.Decode(*buffer, v); err != nil {
		return fmt.Errorf("sqs: %s message %q is not a valid %v: %w", what, View{r}.ID(), reflect.TypeFor[T](), err)
	}
	return nil
}

func isString(value string) bool { return len(value) > 0 && value[0] == '"' }

// text returns the text of a JSON string, and of any other value the JSON.
func text(value string) string {
	if !isString(value) {
		return value
	}
	text, _ := envelope.String(value)
	return text
}

// appendText appends text(value) to dst.
func appendText(dst []byte, value string) []byte {
	if !isString(value) {
		return append(dst, value...)
	}
	dst, _ = jsontext.AppendUnquote(dst, value)
	return dst
}
