package jmespath

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/idempotency"
)

// digits is a number that a float64 does not hold exactly, in canonical JSON. It is no string to the evaluator.
type digits string

// decode returns the value of JSON as the evaluator takes it: nil, bool, float64 or digits, string, []any, map[string]any.
func decode(payload []byte) (any, error) {
	text, err := idempotency.CanonicalJSON(payload)
	if err != nil {
		return nil, err
	}
	return decodeCanonical(jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)))
}

// decodeCanonical reads a value of canonical JSON, in which names are not repeated.
func decodeCanonical(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String() // before the next token is read, which ends this one
			if object[key], err = decodeCanonical(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return object, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			element, err := decodeCanonical(d)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err = d.ReadToken()
		return list, err
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

// safeDigits is how many digits a float64 holds, whatever they are.
const safeDigits = 15

// number returns a number in canonical JSON as a float64, if that one is told by the same digits, or as digits.
func number(text string) any {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil { // it is out of range
		return digits(text)
	}
	if len(text) <= safeDigits && !strings.ContainsRune(text, 'e') {
		return f
	}
	if shortest, err := idempotency.CanonicalJSON(appendFloat(nil, f)); err != nil || string(shortest) != text {
		return digits(text)
	}
	return f
}

func appendFloat(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

// appendValue appends the JSON of a value.
func appendValue(dst []byte, value any) ([]byte, error) {
	var err error
	switch value := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, value), nil
	case float64:
		if value-value != 0 {
			return nil, fmt.Errorf("it computes %v, want a number that JSON has", value)
		}
		return appendFloat(dst, value), nil
	case digits:
		return append(dst, value...), nil
	case string:
		if dst, err = jsontext.AppendQuote(dst, value); err != nil {
			return nil, fmt.Errorf("it makes a string that is not valid UTF-8, want valid")
		}
		return dst, nil
	case []any:
		dst = append(dst, '[')
		for i, element := range value {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, element); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		dst = append(dst, '{')
		separator := ""
		for name, member := range value {
			dst = append(dst, separator...)
			if dst, err = appendValue(dst, name); err != nil {
				return nil, err
			}
			if dst, err = appendValue(append(dst, ':'), member); err != nil {
				return nil, err
			}
			separator = ","
		}
		return append(dst, '}'), nil
	}
	return nil, fmt.Errorf("it makes %s, want a value that JSON has", kindOf(value))
}

// canonical returns the canonical JSON of a value.
func canonical(value any) ([]byte, error) {
	text, err := appendValue(nil, value)
	if err != nil {
		return nil, err
	}
	return idempotency.CanonicalJSON(text)
}

// jsonPrefix begins the key of a value that is no string.
const jsonPrefix = "json:"

// keyPart returns the key of a value, or of one part of a key. Different values have different ones.
func keyPart(value any) (string, error) {
	if text, ok := value.(string); ok && !strings.HasPrefix(text, jsonPrefix) {
		return text, nil
	}
	text, err := canonical(value)
	if err != nil {
		return "", err
	}
	return jsonPrefix + string(text), nil
}
