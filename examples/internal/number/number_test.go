package number

import (
	"fmt"
	"testing"
)

func TestFrom(t *testing.T) {
	for text, want := range map[string]string{
		"2": "2 <nil>", "9": "9 <nil>",
		"1": "0 want a whole number from 2 to 9", "10": "0 want a whole number from 2 to 9", "two": "0 want a whole number from 2 to 9",
	} {
		value := 0
		err := From(2, 9, &value)(text)
		if got := fmt.Sprint(value, " ", err); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0 <nil>", "18446744073709551615": "18446744073709551615 <nil>",
		"-1":                   "7 want a whole number from 0 to 18446744073709551615",
		"18446744073709551616": "7 want a whole number from 0 to 18446744073709551615",
	} {
		value := uint64(7)
		err := Seed(&value)(text)
		if got := fmt.Sprint(value, " ", err); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
