package powertools

import (
	"strconv"
	"strings"
)

// decimal is a number that is not 0, as its shortest decimal that reads back as the same float64. The digits begin and end
// with one that is not 0. The point is where the decimal point is from their beginning: 12.5 is "125" and 2, 0.01 is "1"
// and -1.
type decimal struct {
	negative bool
	digits   string
	point    int
}

func newDecimal(f float64) decimal { return parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)) }

// parseDecimal reads what strconv.FormatFloat makes with the format 'e'.
func parseDecimal(s string) decimal {
	var d decimal
	s, d.negative = strings.TrimPrefix(s, "-"), strings.HasPrefix(s, "-")
	mantissa, exponent, _ := strings.Cut(s, "e")
	n, _ := strconv.Atoi(exponent)
	d.point = n + 1
	d.digits = strings.TrimRight(strings.Replace(mantissa, ".", "", 1), "0")
	return d
}

// appendFixed appends the number without an exponent, and without a point if it is whole.
func (d decimal) appendFixed(b []byte) []byte {
	if d.negative {
		b = append(b, '-')
	}
	zeros := func(n int) { b = append(b, strings.Repeat("0", n)...) }
	switch n := len(d.digits); {
	case d.point <= 0:
		b = append(b, "0."...)
		zeros(-d.point)
		return append(b, d.digits...)
	case d.point >= n:
		b = append(b, d.digits...)
		zeros(d.point - n)
		return b
	default:
		b = append(b, d.digits[:d.point]...)
		b = append(b, '.')
		return append(b, d.digits[d.point:]...)
	}
}

// whole reports whether the number is an integer.
func (d decimal) whole() bool { return d.point >= len(d.digits) }

// appendScientific appends the number with an exponent of at least so many digits, behind e, and behind plus where it is
// positive.
func (d decimal) appendScientific(b []byte, e, plus string, exponentDigits int) []byte {
	if d.negative {
		b = append(b, '-')
	}
	b = append(b, d.digits[0])
	if len(d.digits) > 1 {
		b = append(b, '.')
		b = append(b, d.digits[1:]...)
	}
	b = append(b, e...)
	exponent := d.point - 1
	if exponent < 0 {
		exponent, plus = -exponent, "-"
	}
	b = append(b, plus...)
	text := strconv.Itoa(exponent)
	for range exponentDigits - len(text) {
		b = append(b, '0')
	}
	return append(b, text...)
}
