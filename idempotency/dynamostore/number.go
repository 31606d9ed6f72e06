package dynamostore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of DynamoDB's numbers,
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html.
const (
	maxDigits   = 38  // significant ones
	maxExponent = 125 // of a number written with one digit before the point
	minExponent = -130
)

// decimal is a number as its digits without zeros at either end, and the power of ten to multiply them by. Zero has no
// digits.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a number of JSON or DynamoDB.
func parseDecimal(number string) (decimal, bool) {
	var d decimal
	rest, negative := strings.CutPrefix(number, "-")
	d.negative = negative
	mantissa := rest
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		exponent, err := strconv.Atoi(rest[i+1:])
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return d, false
		}
		d.exponent = max(-1<<30, min(exponent, 1<<30)) // as good as any number that far away, and safe to add to
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits = whole + fraction
	d.exponent -= len(fraction)
	if d.digits == "" || strings.Trim(d.digits, "0123456789") != "" {
		return d, false
	}
	d.digits = strings.TrimLeft(d.digits, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

// fits reports whether DynamoDB can hold the number.
func (d decimal) fits() bool {
	leading := d.exponent + len(d.digits) - 1
	return d.digits == "" || len(d.digits) <= maxDigits && leading <= maxExponent && leading >= minExponent
}

// nativeNumber returns a number of JSON as one of DynamoDB, with the same value. Errors follow "is" or "are".
func nativeNumber(number string) (string, error) {
	d, ok := parseDecimal(number)
	if !ok || !d.fits() {
		return "", fmt.Errorf("JSON with the number %.100s; want up to %d significant digits, and 0 or an amount from 1E%d "+
			"to below 1E%d, for native data", number, maxDigits, minExponent, maxExponent+1)
	}
	return d.String(), nil
}

// appendNumber appends a number of DynamoDB as JSON. Errors follow "is" or "are".
func appendNumber(b []byte, number string) ([]byte, error) {
	d, ok := parseDecimal(number)
	if !ok || !d.fits() {
		return b, fmt.Errorf("or has the number %.100q; want one of DynamoDB's", number)
	}
	return append(b, d.String()...), nil
}

// String returns the number without an exponent: encoding/json takes 1000 for an integer, and 1e3 not.
func (d decimal) String() string {
	digits := d.digits
	switch point := len(digits) + d.exponent; {
	case digits == "":
		return "0"
	case d.exponent >= 0:
		digits += strings.Repeat("0", d.exponent)
	case point > 0:
		digits = digits[:point] + "." + digits[point:]
	default:
		digits = "0." + strings.Repeat("0", -point) + digits
	}
	if d.negative {
		return "-" + digits
	}
	return digits
}
