// Package number parses the numbers on the command lines of the examples. What it returns is for flag.FlagSet.Func, which
// puts the flag and the text in front of the error.
package number

import (
	"fmt"
	"math"
	"strconv"
)

// From parses a whole number from low to high.
func From(low, high int, value *int) func(text string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("want a whole number from %d to %d", low, high)
		}
		*value = n
		return nil
	}
}

// Seed parses a seed of any 64 bits.
func Seed(value *uint64) func(text string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("want a whole number from 0 to %d", uint64(math.MaxUint64))
		}
		*value = n
		return nil
	}
}
