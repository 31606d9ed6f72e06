package powertools

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Powertools for Python hashes json.dumps(payload, sort_keys=True), and encodes the hash in hexadecimal
// (idempotency/persistence/base.py of aws-powertools/powertools-lambda-python, release 3; the encoder that it gives to
// json.dumps differs for Decimals, data classes and models only, none of which JSON has). json.dumps separates with ", " and
// ": ", and writes ASCII (https://docs.python.org/3/library/json.html#json.dumps). A float is its repr, an int all its digits.

func encodePython(sum []byte) string { return hex.EncodeToString(sum) }

func sortPython(members []member) []member {
	return slices.SortedFunc(slices.Values(members), func(a, b member) int { return slices.Compare(a.name, b.name) })
}

// appendPythonNumber appends an int or a float: what has a point or an exponent is a float.
func appendPythonNumber(b []byte, literal string) []byte {
	if isInteger(literal) {
		return appendInteger(b, literal)
	}
	f, _ := strconv.ParseFloat(literal, 64) // out of range is an infinity
	switch {
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case f == 0:
		return appendZero(b, f)
	}
	d := newDecimal(f)
	if d.point <= -4 || d.point > 16 {
		return d.appendScientific(b, "e", "+", 2)
	}
	return d.appendFloat(b)
}

func isInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// appendInteger appends an integer's literal, which has no leading zeros and is its canonical text but for -0.
func appendInteger(b []byte, literal string) []byte {
	if literal == "-0" {
		literal = "0"
	}
	return append(b, literal...)
}

// appendZero appends a float that is 0 or -0.
func appendZero(b []byte, f float64) []byte {
	if math.Signbit(f) {
		b = append(b, '-')
	}
	return append(b, "0.0"...)
}

// appendFloat appends the number without an exponent, and with a point.
func (d decimal) appendFloat(b []byte) []byte {
	b = d.appendFixed(b)
	if d.whole() {
		b = append(b, ".0"...)
	}
	return b
}

func appendPythonText(b []byte, t runes) []byte {
	b = append(b, '"')
	for _, r := range t {
		short := shortEscape(r)
		switch {
		case short != 0:
			b = append(b, '\\', short)
		case r < ' ' || r > '~':
			for _, unit := range units(runes{r}) {
				b = appendEscape(b, rune(unit), lowerHex)
			}
		default:
			b = append(b, byte(r))
		}
	}
	return append(b, '"')
}

func missingInPython(v value) bool {
	switch v.kind {
	case text:
		return len(v.runes) == 0
	case array:
		return allNull(v.elements)
	case object:
		return len(v.members) == 0 // it looks at the names, and none is None
	default:
		return false
	}
}

func allNull(values []value) bool {
	return !slices.ContainsFunc(values, func(v value) bool { return v.kind != null })
}
