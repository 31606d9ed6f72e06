package dynamodbstream

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// keyPart is one attribute of an item's key.
type keyPart struct {
	name  string
	kind  string // S, N or B
	value string
}

// lane returns the lane of a change: a text of its item's key, from the JSON of the record's Keys. The same item has the
// same lane, in whatever order its key's attributes come and however they are written, and another item another one:
// names and values have their lengths before them.
//
// A change whose lane is not known may be one of any item, and nothing behind it can be told not to be of the same.
func lane(keys string) (string, error) {
	if keys == "" || keys == "null" {
		return "", errNoKeys
	}
	var room [2]keyPart // most items have no more, and none has more today
	s := attributes{scanner{text: keys}}
	parts, err := s.keyParts(room[:0])
	if err != nil {
		return "", fmt.Errorf("dynamodbstream: Keys: %w", err)
	}
	size := 0
	for i, p := range parts {
		size += len(p.name) + len(p.value) + 16
		if i > 0 && p.name == parts[i-1].name {
			return "", fmt.Errorf("dynamodbstream: Keys have attribute %.100q twice, want each once", p.name)
		}
	}
	b := make([]byte, 0, size)
	for _, p := range parts {
		b = appendSized(b, p.name)
		b = append(b, p.kind...)
		b = appendSized(b, p.value)
	}
	return string(b), nil
}

var errNoKeys = errors.New("dynamodbstream: record has no Keys, want those of its item")

func appendSized(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

// keyParts appends the attributes of a key to parts, sorted by name. They may be parts of the JSON.
func (s *attributes) keyParts(parts []keyPart) ([]keyPart, error) {
	if s.peek() != '{' {
		return nil, s.found("", "an object")
	}
	err := s.members(func(name string) *valueError {
		p := keyPart{name: text(name)}
		if err := s.keyValue(&p); err != nil {
			return err.within(fmt.Sprintf("attribute %.100q", p.name))
		}
		parts = append(parts, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, &valueError{problem: "has no attributes, want those of a key"}
	}
	slices.SortFunc(parts, func(a, b keyPart) int { return strings.Compare(a.name, b.name) })
	return parts, nil
}

// keyValue reads a value that can be in a key. Most are strings, which are read without a copy.
func (s *attributes) keyValue(p *keyPart) *valueError {
	start := s.at
	if s.take('{') && s.quoted() == `"S"` && s.take(':') && s.peek() == '"' {
		p.kind, p.value = "S", text(s.quoted())
		if s.take('}') {
			return nil
		}
	}
	s.at = start
	v, err := s.value(0)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p.kind, p.value = "S", v.Value
	case *types.AttributeValueMemberN:
		n, _ := parseNumber(v.Value)
		p.kind, p.value = "N", n.canonical()
	case *types.AttributeValueMemberB:
		p.kind, p.value = "B", string(v.Value)
	default:
		return &valueError{problem: fmt.Sprintf("is of type %s, want S, N or B, as keys are", typeOf(v))}
	}
	return nil
}
