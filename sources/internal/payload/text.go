package payload

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

var errBroken = errors.New("it has broken UTF-8 or half a surrogate pair, want whole characters: two that differ there only " +
	"would have one key")

// Text returns the bytes that a payload has: the text of a JSON string, and of any other value the JSON. They are a copy. A
// string that cannot be told from another one is an error.
func Text(value string) ([]byte, error) {
	if value == "" || value[0] != '"' {
		return []byte(value), nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return nil, errBroken
	}
	return text, nil
}
