package payload

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeError is why a payload could not be decoded. What it wraps says more, but its text goes to logs and must show
// nothing of the payload, which may be personal: kinds, types and places, but no values and no names.
type decodeError struct{ err error }

func (e *decodeError) Error() string {
	if semantic, ok := errors.AsType[*json.SemanticError](e.err); ok {
		return fmt.Sprintf("JSON %v at offset %d does not fit a Go %v", semantic.JSONKind, semantic.ByteOffset, semantic.GoType)
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](e.err); ok {
		return fmt.Sprintf("it is not JSON at offset %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	if errors.Is(e.err, errNull) || errors.Is(e.err, io.ErrUnexpectedEOF) {
		return e.err.Error()
	}
	return fmt.Sprintf("%T", e.err)
}

func (e *decodeError) Unwrap() error { return e.err }
