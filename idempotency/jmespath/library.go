package jmespath

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
)

// library is the functions that expressions can call.
type library struct {
	entries   map[string]functions.FunctionEntry
	functions interpreter.FunctionCaller
}

// membersOf is the name of the function that * calls. No expression can.
const membersOf = "*"

// newLibrary returns the functions of JMESPath, some of them replaced, and those of Powertools.
func newLibrary(maxInflated int) *library {
	l := &library{entries: map[string]functions.FunctionEntry{}}
	for _, entry := range functions.GetDefaultFunctions() {
		l.entries[entry.Name] = entry
	}
	replace := func(name string, handler functions.JpFunction) {
		entry := l.entries[name]
		entry.Handler = handler
		l.entries[name] = entry
	}
	add := func(name string, handler functions.JpFunction) {
		any := []functions.ArgSpec{{Types: []functions.JpType{functions.JpAny}}}
		l.entries[name] = functions.FunctionEntry{Name: name, Arguments: any, Handler: handler}
	}
	// These would go through a map in the order of Go's maps.
	replace("keys", keys)
	replace("values", members)
	replace("items", items)
	add(membersOf, members)
	// This would sort its argument, which may be a part of the expression, and this one panics for objects.
	sortBy := l.entries["sort_by"].Handler
	replace("sort_by", func(a []any) (any, error) { return sortBy([]any{slices.Clone(a[0].([]any)), a[1]}) })
	replace("contains", contains)
	// These do not know digits.
	replace("type", func(a []any) (any, error) { return typeOf(a[0]), nil })
	replace("to_number", func(a []any) (any, error) { return toNumber(a[0]), nil })
	replace("to_string", toString)
	// These may make much of little.
	for name, size := range map[string]func([]any) float64{
		"join": joined, "replace": substituted, "pad_left": padded, "pad_right": padded,
	} {
		replace(name, bounded(l.entries[name].Handler, size))
	}
	add("powertools_json", orNull(func(text string) (any, error) { return decode([]byte(text)) }))
	add("powertools_base64", orNull(func(text string) (any, error) { return decodeBase64(text) }))
	add("powertools_base64_gzip", orNull(func(text string) (any, error) { return inflateBase64(text, maxInflated) }))
	l.functions = interpreter.NewFunctionCaller(slices.Collect(maps.Values(l.entries))...)
	return l
}

// check returns an error if there is no such function, or none with so many arguments.
func (l *library) check(name string, n int) error {
	entry, ok := l.entries[name]
	if !ok {
		return fmt.Errorf("it calls function %q, which does not exist", name)
	}
	least, most := 0, len(entry.Arguments)
	for _, argument := range entry.Arguments {
		if !argument.Optional {
			least++
		}
		if argument.Variadic {
			most = max(most, n)
		}
	}
	if n < least || n > most {
		return fmt.Errorf("function %s is called with %d arguments, want %s", name, n, wanted(entry.Arguments))
	}
	return nil
}
