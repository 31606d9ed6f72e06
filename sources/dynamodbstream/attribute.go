package dynamodbstream

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// maxDepth is how many lists and maps may be in each other below an attribute. DynamoDB has items of 32 levels
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html), however these are counted.
const maxDepth = 32

// parseItem returns the attributes of an item, such as an image, from its JSON. They are copies, and hold on to nothing
// of it. Of several attributes with one name the last one counts, as with encoding/json.
func parseItem(item string) (map[string]types.AttributeValue, *valueError) {
	s := attributes{scanner{text: item}}
	if s.peek() != '{' {
		return nil, s.found("", "an object")
	}
	return s.item(0)
}

// attributes is a scanner of attribute values: objects of one member, which is named for the type.
type attributes struct{ scanner }

// found is the error of a value that is not what it should be. It shows the kind of the value, and nothing else of it.
func (s *attributes) found(what, want string) *valueError {
	s.peek()
	if what != "" {
		what += " "
	}
	return &valueError{problem: fmt.Sprintf("%sis %s, want %s", what, envelope.KindOf(s.rest()), want)}
}

// item reads an object of attributes, which is depth levels deep in another.
func (s *attributes) item(depth int) (map[string]types.AttributeValue, *valueError) {
	item := map[string]types.AttributeValue{}
	err := s.members(func(name string) *valueError {
		v, err := s.value(depth)
		if err != nil && depth == 0 {
			return err.within(fmt.Sprintf("attribute %.100q", text(name)))
		} else if err != nil {
			return err.within(".*") // names in a map may be data
		}
		item[strings.Clone(text(name))] = v
		return nil
	})
	return item, err
}

// value reads an attribute value that is depth lists and maps deep in its attribute.
func (s *attributes) value(depth int) (types.AttributeValue, *valueError) {
	if s.peek() != '{' {
		return nil, s.found("", "an object with a type")
	}
	s.take('{')
	kind := text(s.quoted())
	if kind == "" {
		return nil, &valueError{problem: "has no type, want one"}
	}
	s.take(':')
	v, err := s.ofType(kind, depth)
	if err != nil {
		return nil, err
	}
	if !s.take('}') {
		return nil, &valueError{problem: "has more than one type, want one"}
	}
	return v, nil
}

// ofType reads what stands behind the type of an attribute value
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_AttributeValue.html).
func (s *attributes) ofType(kind string, depth int) (types.AttributeValue, *valueError) {
	switch kind {
	case "S":
		v, err := s.string("S")
		return &types.AttributeValueMemberS{Value: v}, err
	case "N":
		v, err := s.number("N")
		return &types.AttributeValueMemberN{Value: v}, err
	case "B":
		v, err := s.binary("B")
		return &types.AttributeValueMemberB{Value: v}, err
	case "BOOL":
		v := s.literal("true")
		if !v && !s.literal("false") {
			return nil, s.found("BOOL", "a boolean")
		}
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case "NULL":
		if !s.literal("true") {
			return nil, s.found("NULL", "true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case "SS":
		v, err := set(s, "SS", s.string)
		return &types.AttributeValueMemberSS{Value: v}, err
	case "NS":
		v, err := set(s, "NS", s.number)
		return &types.AttributeValueMemberNS{Value: v}, err
	case "BS":
		v, err := set(s, "BS", s.binary)
		return &types.AttributeValueMemberBS{Value: v}, err
	case "L", "M":
		if depth == maxDepth {
			return nil, &valueError{problem: fmt.Sprintf("is more than %d lists and maps deep, want as many at most", maxDepth)}
		}
		if kind == "L" {
			v, err := s.list(depth + 1)
			return &types.AttributeValueMemberL{Value: v}, err
		}
		if s.peek() != '{' {
			return nil, s.found("M", "an object")
		}
		v, err := s.item(depth + 1)
		return &types.AttributeValueMemberM{Value: v}, err
	}
	return nil, &valueError{problem: fmt.Sprintf("is of type %.20q, want S, N, B, BOOL, NULL, SS, NS, BS, L or M", kind)}
}

func (s *attributes) list(depth int) ([]types.AttributeValue, *valueError) {
	if s.peek() != '[' {
		return nil, s.found("L", "an array")
	}
	list := []types.AttributeValue{}
	err := s.elements(func(i int) *valueError {
		v, err := s.value(depth)
		if err != nil {
			return err.within(fmt.Sprintf("[%d]", i))
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

// set reads a set of what read reads one of.
func set[E any](s *attributes, kind string, read func(kind string) (E, *valueError)) ([]E, *valueError) {
	if s.peek() != '[' {
		return nil, s.found(kind, "an array")
	}
	set := []E{}
	err := s.elements(func(i int) *valueError {
		v, err := read(kind[:1])
		if err != nil {
			return err.within(fmt.Sprintf("[%d]", i))
		}
		set = append(set, v)
		return nil
	})
	return set, err
}

func (s *attributes) string(kind string) (string, *valueError) {
	if s.peek() != '"' {
		return "", s.found(kind, "a string")
	}
	return strings.Clone(text(s.quoted())), nil
}

// number reads the text of a number. What is no number is refused, since DynamoDB has none such, and the SDK would put
// the text into a string or an attributevalue.Number unseen.
func (s *attributes) number(kind string) (string, *valueError) {
	if s.peek() != '"' {
		return "", s.found(kind, "a string")
	}
	n := text(s.quoted())
	if _, ok := parseNumber(n); !ok {
		return "", &valueError{problem: fmt.Sprintf("%s is text of %d bytes that is no number, want one", kind, len(n))}
	}
	return strings.Clone(n), nil
}

func (s *attributes) binary(kind string) ([]byte, *valueError) {
	if s.peek() != '"' {
		return nil, s.found(kind, "a string")
	}
	data, err := base64.StdEncoding.DecodeString(text(s.quoted()))
	if err != nil {
		return nil, &valueError{problem: kind + " is text that is not base64, want base64"}
	}
	return data, nil
}

// typeOf returns the type of the value, as the JSON names it.
func typeOf(v types.AttributeValue) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
}

// text returns the text of a JSON string. It may be a part of it.
func text(quoted string) string {
	t, _ := envelope.String(quoted)
	return t
}

// valueError is what is wrong with the JSON of an attribute value. It goes to logs, and shows of the item nothing but
// the names of its attributes, types and places: the rest may be personal.
type valueError struct {
	path    string // of the value in its item, such as: attribute "lines"[3].*
	problem string
}

func (e *valueError) Error() string {
	if e.path == "" {
		return "it " + e.problem
	}
	return e.path + " " + e.problem
}

// within returns the error for what the value is in.
func (e *valueError) within(step string) *valueError {
	e.path = step + e.path
	return e
}
