package powertools

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Powertools for Java hashes the JSON of an object or array as Jackson's JsonNode.toString writes it, and what
// String.valueOf makes of anything else, so that a text is hashed without its quotes. It encodes the hash as a hexadecimal
// number of at least 32 digits (BasePersistenceStore of powertools-idempotency-core, aws-powertools/powertools-lambda-java,
// release 2). Nothing is sorted: an object's members are in the order in which Jackson has them. A double is its
// Double.toString as of Java 19, whose digits are the fewest that tell it from others, but two
// (https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/lang/Double.html#toString(double)).

func encodeJava(sum []byte) string {
	digits := strings.TrimLeft(hex.EncodeToString(sum), "0") // of BigInteger and %032x
	return strings.Repeat("0", max(32-len(digits), 0)) + digits
}

// appendJavaBare appends what String.valueOf makes of the value's Java type.
func appendJavaBare(b []byte, v value) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case boolean:
		return append(b, v.literal...)
	case number:
		return appendJavaNumber(b, v.literal, "")
	default:
		return appendJavaRunes(b, v.runes)
	}
}

func appendJacksonNumber(b []byte, literal string) []byte { return appendJavaNumber(b, literal, `"`) }

// appendJavaNumber appends an integer of any size or a double. An infinity, which has no JSON, is put
// between quotes.
func appendJavaNumber(b []byte, literal, quote string) []byte {
	if isInteger(literal) {
		return appendInteger(b, literal)
	}
	f, _ := strconv.ParseFloat(literal, 64) // out of range is an infinity
	switch {
	case math.IsInf(f, 1):
		return append(b, quote+"Infinity"+quote...)
	case math.IsInf(f, -1):
		return append(b, quote+"-Infinity"+quote...)
	case f == 0:
		return appendZero(b, f)
	}
	d := newDecimal(f)
	if len(d.digits) == 1 {
		// Where one digit would do, it is the nearest of two digits: 4.9E-324 for the smallest, not 5.0E-324.
		d = parseDecimal(strconv.FormatFloat(f, 'e', 1, 64))
	}
	if d.point > -3 && d.point <= 7 {
		return d.appendFloat(b)
	}
	if len(d.digits) == 1 {
		d.digits += "0"
	}
	return d.appendScientific(b, "E", "", 1)
}

func appendJacksonText(b []byte, t runes) []byte {
	b = append(b, '"')
	for _, r := range t {
		short := shortEscape(r)
		switch {
		case short != 0:
			b = append(b, '\\', short)
		case r < ' ':
			b = appendEscape(b, r, upperHex)
		default:
			b = appendJavaRunes(b, runes{r})
		}
	}
	return append(b, '"')
}

// appendJavaRunes appends t in UTF-8 as String.getBytes encodes it: a surrogate without its partner is a question mark.
func appendJavaRunes(b []byte, t runes) []byte {
	for _, r := range t {
		if utf16.IsSurrogate(r) {
			b = append(b, '?')
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func missingInJava(v value) bool {
	switch v.kind {
	case array:
		return allNull(v.elements)
	case object:
		return !slices.ContainsFunc(v.members, func(m member) bool { return m.value.kind != null })
	default:
		return false
	}
}
