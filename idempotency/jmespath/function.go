package jmespath

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
)

func sortedNames(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

func keys(arguments []any) (any, error) {
	list := []any{}
	for _, name := range sortedNames(arguments[0].(map[string]any)) {
		list = append(list, name)
	}
	return list, nil
}

// members returns the values of an object, and null of anything else.
func members(arguments []any) (any, error) {
	object, ok := arguments[0].(map[string]any)
	if !ok {
		return nil, nil
	}
	list := []any{}
	for _, name := range sortedNames(object) {
		list = append(list, object[name])
	}
	return list, nil
}

func items(arguments []any) (any, error) {
	object := arguments[0].(map[string]any)
	list := []any{}
	for _, name := range sortedNames(object) {
		list = append(list, []any{name, object[name]})
	}
	return list, nil
}

func contains(arguments []any) (any, error) {
	if text, ok := arguments[0].(string); ok {
		part, ok := arguments[1].(string)
		return ok && strings.Contains(text, part), nil
	}
	return slices.ContainsFunc(arguments[0].([]any), func(element any) bool {
		return reflect.DeepEqual(element, arguments[1])
	}), nil
}

func typeOf(value any) string {
	if _, ok := value.(digits); ok {
		return "number"
	}
	return kindOf(value)
}

// toNumber returns the number that a string is, or the number itself, or nil.
func toNumber(value any) any {
	switch value := value.(type) {
	case float64, digits:
		return value
	case string:
		parsed, err := decode([]byte(value))
		if kind := kindOf(parsed); err == nil && strings.HasPrefix(kind, "number") {
			return parsed
		}
	}
	return nil
}

func toString(arguments []any) (any, error) {
	if text, ok := arguments[0].(string); ok {
		return text, nil
	}
	text, err := canonical(arguments[0])
	if err != nil {
		return nil, &problem{err}
	}
	return string(text), nil
}

// resultLimit is how many bytes the result of a function may have that can make much of little.
const resultLimit = 16 << 20

// bounded is a function that does not begin to make what is too large.
func bounded(handler functions.JpFunction, size func([]any) float64) functions.JpFunction {
	return func(arguments []any) (any, error) {
		if n := size(arguments); n > resultLimit {
			return nil, problemf("its result has %.0f bytes, want no more than %d", n, resultLimit)
		}
		return handler(arguments)
	}
}

func joined(arguments []any) float64 {
	list := arguments[1].([]any)
	size := float64(len(arguments[0].(string))) * float64(len(list))
	for _, element := range list {
		size += float64(len(element.(string)))
	}
	return size
}

func substituted(arguments []any) float64 {
	text, old, by := arguments[0].(string), arguments[1].(string), arguments[2].(string)
	return float64(len(text)) + float64(strings.Count(text, old))*float64(len(by))
}

func padded(arguments []any) float64 {
	return float64(len(arguments[0].(string))) + arguments[1].(float64)
}
