package dynamodbstream

import (
	"strconv"
	"strings"
)

// number is a decimal number, as DynamoDB writes them in the text of an N.
type number struct {
	negative        bool
	whole, fraction string // digits
	exponent        int    // of ten
}

// parseNumber returns the number that text is, and whether it is one. What strconv takes for a number besides, such as
// NaN, 0x1p-2 and 1_000, is none.
func parseNumber(text string) (n number, ok bool) {
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		n.negative = rest[0] == '-'
		rest = rest[1:]
	}
	n.whole, rest = cutDigits(rest)
	if after, found := strings.CutPrefix(rest, "."); found {
		n.fraction, rest = cutDigits(after)
	}
	if n.whole == "" && n.fraction == "" {
		return n, false
	}
	if rest == "" {
		return n, true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return n, false
	}
	// Exponents go from -130 to 125; what needs more than 16 bits is no number of DynamoDB's.
	exponent, err := strconv.ParseInt(rest[1:], 10, 16)
	n.exponent = int(exponent)
	return n, err == nil
}

// cutDigits returns the digits that s begins with, and what is behind them.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// canonical returns the one text of all the ways to write the number: its digits without zeros around them, and the power
// of ten that the last one stands for.
func (n number) canonical() string {
	digits := strings.TrimLeft(n.whole+n.fraction, "0")
	exponent := n.exponent - len(n.fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	if n.negative {
		trimmed = "-" + trimmed
	}
	return trimmed + "e" + strconv.Itoa(exponent)
}
