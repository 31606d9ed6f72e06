package powertools

import (
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Powertools for TypeScript hashes JSON.stringify(deepSort(payload)), and encodes the hash in base64 (BasePersistenceLayer
// and deepSort of @aws-lambda-powertools/idempotency 2.35.0). The rules of JSON.stringify, of the order of properties and of
// numbers are those of ECMA-262 (https://tc39.es/ecma262/, SerializeJSONProperty, OrdinaryOwnPropertyKeys,
// Number::toString).

func encodeTypeScript(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

func appendTypeScriptNumber(b []byte, literal string) []byte {
	f, _ := strconv.ParseFloat(literal, 64) // out of range is an infinity
	switch {
	case math.IsInf(f, 0):
		return append(b, "null"...)
	case f == 0:
		return append(b, '0')
	}
	d := newDecimal(f)
	if d.point > -6 && d.point <= 21 {
		return d.appendFixed(b)
	}
	return d.appendScientific(b, "e", "+", 1)
}

func appendTypeScriptText(b []byte, t runes) []byte {
	b = append(b, '"')
	for _, r := range t {
		short := shortEscape(r)
		switch {
		case short != 0:
			b = append(b, '\\', short)
		case r < ' ' || utf16.IsSurrogate(r):
			b = appendEscape(b, r, lowerHex)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// sortTypeScript returns the members in the order in which JavaScript enumerates an object that deepSort made: array
// indices by number, then other names by their lower case, names of the same lower case in their first order. The sort does
// that although its comparison says of two equal names that each comes after the other, since all it asks is which of two
// comes before.
func sortTypeScript(members []member) []member {
	type sortable struct {
		member
		index bool
		rank  uint64
		lower []uint16
	}
	sorted := make([]sortable, 0, len(members))
	for _, m := range members {
		if m.name.identity() == "__proto__" {
			continue // to assign it to an object sets its prototype, which is not enumerated
		}
		s := sortable{member: m}
		if s.rank, s.index = arrayIndex(m.name); !s.index {
			s.lower = units(lower(m.name))
		}
		sorted = append(sorted, s)
	}
	slices.SortStableFunc(sorted, func(a, b sortable) int {
		switch {
		case a.index && b.index:
			return cmp.Compare(a.rank, b.rank)
		case a.index:
			return -1
		case b.index:
			return 1
		default:
			return slices.Compare(a.lower, b.lower)
		}
	})
	result := make([]member, len(sorted))
	for i, s := range sorted {
		result[i] = s.member
	}
	return result
}

// arrayIndex returns the number that the name is, if it is one from 0 to 2^32-2 without leading zeros.
func arrayIndex(name runes) (uint64, bool) {
	if len(name) == 0 || len(name) > 10 || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	var n uint64
	for _, r := range name {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = n*10 + uint64(r-'0')
	}
	return n, n < math.MaxUint32
}

// units returns t in UTF-16, by whose units JavaScript compares.
func units(t runes) []uint16 {
	u := make([]uint16, 0, len(t))
	for _, r := range t {
		if r < 0x10000 { // surrogates without their partners too
			u = append(u, uint16(r))
		} else {
			u = utf16.AppendRune(u, r)
		}
	}
	return u
}

func missingInTypeScript(v value) bool {
	switch v.kind {
	case array:
		return !slices.ContainsFunc(v.elements, truthy)
	case object:
		return !slices.ContainsFunc(v.members, func(m member) bool { return truthy(m.value) })
	default:
		return !truthy(v)
	}
}

// truthy reports whether JavaScript takes v for true.
func truthy(v value) bool {
	switch v.kind {
	case null:
		return false
	case boolean:
		return v.literal == "true"
	case number:
		f, _ := strconv.ParseFloat(v.literal, 64)
		return f != 0
	case text:
		return len(v.runes) > 0
	default:
		return true
	}
}
