package dynamostore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of DynamoDB, https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html.
const (
	maxDepth      = 32          // maps and lists in one another
	maxMemberName = 64*1024 - 1 // bytes; "1 to 64 KB"
)

// nativeEncoder makes native attribute values of JSON. What they cannot keep exactly is an error.
type nativeEncoder struct {
	decoder *jsontext.Decoder
	// size is what the values take up at least: names and strings in bytes, and one for anything else.
	size int
}

func newNativeEncoder(data []byte) *nativeEncoder {
	return &nativeEncoder{decoder: jsontext.NewDecoder(bytes.NewReader(data))}
}

// document returns the value of the whole document. Errors follow "is" or "are".
func (e *nativeEncoder) document() (types.AttributeValue, error) {
	value, err := e.value(0)
	if err != nil {
		return nil, err
	}
	switch _, err := e.decoder.ReadToken(); {
	case err == nil:
		return nil, errors.New("more than one JSON value")
	case err != io.EOF:
		return nil, notJSON(err)
	}
	return value, nil
}

func (e *nativeEncoder) value(depth int) (types.AttributeValue, error) {
	token, err := e.decoder.ReadToken()
	if err != nil {
		return nil, notJSON(err)
	}
	e.size++
	switch token.Kind() {
	case 'n':
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case 't', 'f':
		return &types.AttributeValueMemberBOOL{Value: token.Bool()}, nil
	case '"':
		s := token.String()
		e.size += len(s) - 1
		return text(s), nil
	case '0':
		n, err := nativeNumber(token.String())
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberN{Value: n}, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("JSON with more than %d objects and arrays in one another, native data's limit", maxDepth)
	}
	if token.Kind() == '{' {
		return e.object(depth + 1)
	}
	return e.array(depth + 1)
}

func (e *nativeEncoder) object(depth int) (types.AttributeValue, error) {
	members := make(map[string]types.AttributeValue)
	for e.decoder.PeekKind() != '}' {
		token, err := e.decoder.ReadToken() // no name twice: the decoder refuses that
		if err != nil {
			return nil, notJSON(err)
		}
		name := token.String()
		if len(name) < 1 || len(name) > maxMemberName {
			return nil, fmt.Errorf("JSON with an object member whose name has %d bytes; want 1 to %d for native data",
				len(name), maxMemberName)
		}
		e.size += len(name)
		if members[name], err = e.value(depth); err != nil {
			return nil, err
		}
	}
	return &types.AttributeValueMemberM{Value: members}, e.end()
}

func (e *nativeEncoder) array(depth int) (types.AttributeValue, error) {
	elements := []types.AttributeValue{}
	for e.decoder.PeekKind() != ']' {
		element, err := e.value(depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return &types.AttributeValueMemberL{Value: elements}, e.end()
}

// end reads the end of an object or array.
func (e *nativeEncoder) end() error {
	if _, err := e.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	return nil
}

// notJSON is the error of data that is no JSON, or that is JSON which says a name twice or holds half of a surrogate pair.
func notJSON(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("no JSON that native data can keep: %w", err)
}
