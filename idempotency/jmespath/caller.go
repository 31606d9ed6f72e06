package jmespath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
)

// caller calls the functions of one evaluation.
type caller struct {
	*library
	first error // that a function returned
}

// lost returns the first error of a function if it is not err: the evaluator takes some errors on the left of a filter for
// null, so that a payload that is broken would pass for one without a key.
func (c *caller) lost(err error) error {
	if c.first == nil || errors.Is(err, c.first) {
		return nil
	}
	return c.first
}

// CallFunction calls the function with the name, which exists.
func (c *caller) CallFunction(name string, arguments []any) (any, error) {
	value, err := c.functions.CallFunction(name, arguments)
	if err == nil {
		return value, nil
	}
	if _, ours := errors.AsType[*problem](err); !ours {
		// The evaluator's own text shows the arguments.
		err = fmt.Errorf("it fails for %s, want %s", kinds(arguments), wanted(c.entries[name].Arguments))
	}
	err = fmt.Errorf("function %s: %w", name, err)
	if c.first == nil {
		c.first = err
	}
	return nil, err
}

// problem is an error that shows nothing of the arguments.
type problem struct{ error }

func (p *problem) Unwrap() error { return p.error }

func problemf(format string, args ...any) error { return &problem{fmt.Errorf(format, args...)} }

// kinds returns what the values are, such as "(string, null)".
func kinds(values []any) string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = kindOf(value)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case digits:
		return "number beyond float64"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case functions.ExpRef:
		return "expression"
	}
	return fmt.Sprintf("%T", value)
}

// wanted returns what arguments a function takes, such as "(string, number or string, any...)".
func wanted(arguments []functions.ArgSpec) string {
	names := make([]string, len(arguments))
	for i, argument := range arguments {
		var types []string
		for _, t := range argument.Types {
			types = append(types, string(t))
		}
		names[i] = strings.Join(types, " or ")
		switch {
		case argument.Variadic:
			names[i] += "..."
		case argument.Optional:
			names[i] = "[" + names[i] + "]"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}
