package dynamodbstreamtest

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits of a number: its significant digits, and the power of ten of the first
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html).
const (
	mostNumberDigits = 38
	lowestPower      = -130
	highestPower     = 125
)

// canonicalNumber returns a text that is the same for numbers that are equal, such as 10, 1e1 and +10.0. What DynamoDB
// would refuse as a number is an error.
func canonicalNumber(text string) (string, error) {
	refused := fmt.Errorf("number is %.100q, but must be a decimal number of at most %d digits from 1E%d to 9.99...E%d in size",
		text, mostNumberDigits, lowestPower, highestPower)

	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[at+1:]); err != nil {
			return "", refused
		}
		mantissa = text[:at]
	}
	sign := ""
	if unsigned, ok := strings.CutPrefix(mantissa, "-"); ok {
		sign, mantissa = "-", unsigned
	} else {
		mantissa = strings.TrimPrefix(mantissa, "+")
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", refused
	}
	significant := strings.TrimLeft(digits, "0")
	if significant == "" {
		return "0", nil
	}
	// The first significant digit stands left or right of the point.
	power := exponent + len(whole) - 1 - (len(digits) - len(significant))
	significant = strings.TrimRight(significant, "0")
	if len(significant) > mostNumberDigits || power < lowestPower || power > highestPower {
		return "", refused
	}
	return fmt.Sprintf("%s%sE%d", sign, significant, power), nil
}
