package idempotency_test

import (
	"encoding/json"
	"math/big"
)

// exact returns the value of a number whose exponent is small.
func exact(number json.Number) *big.Rat {
	value, ok := new(big.Rat).SetString(number.String())
	if !ok {
		panic("no number: " + number.String())
	}
	return value
}

// decimals returns a value with its numbers as text of their exact values.
func decimals(value any) any {
	switch value := value.(type) {
	case map[string]any:
		m := map[string]any{}
		for name, member := range value {
			m[name] = decimals(member)
		}
		return m
	case []any:
		list := []any{}
		for _, element := range value {
			list = append(list, decimals(element))
		}
		return list
	case json.Number:
		return exact(value).RatString()
	}
	return value
}
