package dynamostore

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/idempotency"
)

// A result is JSON. It stands in its attribute as text in a string, or as a native value of the same type. A reader cannot
// know which of the two a string is but by what it holds: a string that is JSON is text, and any other is a native value.
// So a native string that would be JSON is stored as text.

// result returns r.Data as its attribute holds it, nil if there is none. It returns an ErrResultNotStored, and nil, if the
// data cannot be stored, as far as that can be told without a request.
func (s *Store) result(r idempotency.CompleteRequest) (types.AttributeValue, error) {
	if r.Data == nil {
		return nil, nil
	}
	value, size, err := s.options.encode(r.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: the result's %d bytes are %w",
			idempotency.ErrResultNotStored, s.where(r.Key), len(r.Data), err)
	}
	if s.leastItemSize(r, size) > maxItem {
		return nil, s.tooLarge(r)
	}
	return value, nil
}

// encode returns JSON as an attribute value, with its least size in bytes. Errors follow "is" or "are".
func (o *Options) encode(data []byte) (types.AttributeValue, int, error) {
	if !o.NativeData {
		if !utf8.Valid(data) {
			return nil, 0, errors.New("not valid UTF-8")
		}
		if !json.Valid(data) {
			return nil, 0, errors.New("not JSON")
		}
		return text(string(data)), len(data), nil
	}
	e := newNativeEncoder(data)
	value, err := e.document()
	if err != nil {
		return nil, 0, err
	}
	if s, ok := value.(*types.AttributeValueMemberS); ok && json.Valid([]byte(s.Value)) {
		return text(string(data)), len(data), nil
	}
	return value, e.size, nil
}

// decode returns the JSON that an attribute holds, in whichever form it does. Errors follow "is" or "are".
func decode(value types.AttributeValue) ([]byte, error) {
	if s, ok := value.(*types.AttributeValueMemberS); ok && json.Valid([]byte(s.Value)) {
		return []byte(s.Value), nil
	}
	return appendNative(nil, value)
}

// appendNative appends a native value as JSON. What JSON does not have is written as encoding/json writes it: a binary as
// a string in base64, a set as an array.
func appendNative(b []byte, value types.AttributeValue) ([]byte, error) {
	switch v := value.(type) {
	case *types.AttributeValueMemberNULL:
		return append(b, "null"...), nil
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case *types.AttributeValueMemberN:
		return appendNumber(b, v.Value)
	case *types.AttributeValueMemberS:
		return jsontext.AppendQuote(b, v.Value)
	case *types.AttributeValueMemberB:
		return jsontext.AppendQuote(b, base64.StdEncoding.EncodeToString(v.Value))
	case *types.AttributeValueMemberM:
		return appendMap(b, v.Value)
	case *types.AttributeValueMemberL:
		return appendArray(b, v.Value, appendNative)
	case *types.AttributeValueMemberNS:
		return appendArray(b, v.Value, appendNumber)
	case *types.AttributeValueMemberSS:
		return appendArray(b, v.Value, jsontext.AppendQuote[string])
	case *types.AttributeValueMemberBS:
		return appendArray(b, v.Value, func(b, v []byte) ([]byte, error) {
			return jsontext.AppendQuote(b, base64.StdEncoding.EncodeToString(v))
		})
	default:
		return b, fmt.Errorf("of type %s; want one that JSON has", typeOf(value))
	}
}

// appendMap appends the members in the order of their names, so that equal values are equal bytes.
func appendMap(b []byte, members map[string]types.AttributeValue) ([]byte, error) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, name); err != nil {
			return b, err
		}
		if b, err = appendNative(append(b, ':'), members[name]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func appendArray[E any](b []byte, elements []E, appendElement func([]byte, E) ([]byte, error)) ([]byte, error) {
	b = append(b, '[')
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendElement(b, element); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}
