package idempotency

import (
	"bytes"
	"slices"
	"strconv"
)

// plainDigits is how many digits a number may have before its point to be written without an exponent, as in ECMAScript
// and so in RFC 8785.
const plainDigits = 21

// appendNumber appends the one text that stands for the value of number, which is a JSON number. It is ECMAScript's of the
// exact decimal digits, so it takes no longer than the digits are many, whatever the exponent is.
func appendNumber(dst, number []byte) ([]byte, error) {
	unsigned := bytes.TrimPrefix(number, []byte("-"))
	mantissa, exponentText := unsigned, []byte(nil)
	if i := bytes.IndexAny(unsigned, "eE"); i >= 0 {
		mantissa, exponentText = unsigned[:i], unsigned[i+1:]
	}
	whole, fraction, isFraction := bytes.Cut(mantissa, []byte("."))
	if !isFraction && exponentText == nil && len(whole) <= plainDigits && whole[0] != '0' {
		return append(dst, number...), nil // as most are
	}
	var room [64]byte
	digits := append(append(room[:0], whole...), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	if len(significant) == 0 {
		return append(dst, '0'), nil // of minus zero too
	}
	exponent, err := parseExponent(exponentText)
	if err != nil {
		return nil, err
	}
	// The number is 0.d1d2d3... times ten to the power of point, and d1 is not 0.
	point := exponent + len(whole) - (len(digits) - len(significant))
	significant = bytes.TrimRight(significant, "0")
	if len(unsigned) < len(number) {
		dst = append(dst, '-')
	}
	n := len(significant)
	switch {
	case n <= point && point <= plainDigits:
		dst = append(dst, significant...)
		return append(dst, slices.Repeat([]byte("0"), point-n)...), nil
	case 0 < point && point <= plainDigits:
		dst = append(append(dst, significant[:point]...), '.')
		return append(dst, significant[point:]...), nil
	case -6 < point && point <= 0:
		dst = append(dst, "0.000000"[:2-point]...)
		return append(dst, significant...), nil
	}
	dst = append(dst, significant[0])
	if n > 1 {
		dst = append(append(dst, '.'), significant[1:]...)
	}
	dst = append(dst, 'e')
	if point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(point-1), 10), nil
}

func parseExponent(text []byte) (int, error) {
	if text == nil {
		return 0, nil
	}
	digits := bytes.TrimLeft(text, "+-0")
	if len(digits) > 18 {
		return 0, errExponent
	}
	exponent, _ := strconv.Atoi("0" + string(digits)) // digits only, and few
	if text[0] == '-' {
		exponent = -exponent
	}
	return exponent, nil
}
