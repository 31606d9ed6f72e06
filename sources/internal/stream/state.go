package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// maxState is the most that a window's state may have in bytes, 1 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html).
const maxState = 1 << 20

// decodeState decodes a state, by the rules of encoding/json. That of a new window is {}. Its methods are user code, and
// run outside of the engine.
func decodeState[S any](text string) (state S, err error) {
	defer panicked(&err, "decoded")
	if err := payload.Unmarshal([]byte(text), &state); err != nil {
		return state, fmt.Errorf("window's state is not a valid %v, as the one that the handler returned was: %w",
			reflect.TypeFor[S](), err)
	}
	return state, nil
}

// encodeState encodes a state for the answer. Only a state that Lambda has to carry on is limited.
func encodeState[S any](state S, carried bool) ([]byte, error) {
	text, err := encodeJSON(state)
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxState && carried:
		return nil, fmt.Errorf("window's state has %d bytes in JSON, want at most %d, which is what Lambda carries from "+
			"one invocation to the next: keep less in it, or use a shorter window", len(text), maxState)
	case len(text) > maxState:
		return []byte("{}"), nil // the window is over, and nobody reads it
	}
	return text, nil
}

// encodeJSON encodes a state as a JSON object.
func encodeJSON[S any](state S) (text []byte, err error) {
	defer panicked(&err, "encoded")
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false) // which would make it longer
	if err := encoder.Encode(state); err != nil {
		return nil, fmt.Errorf("window's state cannot be encoded: %w", err)
	}
	text = bytes.TrimSpace(buffer.Bytes())
	switch {
	case string(text) == "null": // a map, for example, that has no entries yet
		return []byte("{}"), nil
	case text[0] != '{':
		return nil, fmt.Errorf("window's state, a %v, is %s in JSON, want an object", reflect.TypeFor[S](), envelope.KindOf(string(text)))
	}
	return text, nil
}

// panicked makes an error of a panic of a method of the state.
func panicked(err *error, what string) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("window's state cannot be %s: panic: %v", what, value)
	}
}

// ValidateState returns an error if an S is nothing that Lambda can keep.
func ValidateState[S any](source string) error {
	state, err := decodeState[S]("{}")
	if err == nil {
		_, err = encodeJSON(state)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// sharesMemory reports whether two copies of a value of type t may have memory in common, so that what is done to the one
// shows in the other.
func sharesMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return sharesMemory(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return false
		}
		for i := range t.NumField() {
			if sharesMemory(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	default:
		return false
	}
}

// fingerprint tells states apart.
func fingerprint(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}
