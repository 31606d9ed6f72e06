package dynamostore

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNativeNumber(t *testing.T) {
	nines := strings.Repeat("9", maxDigits)
	zeros := strings.Repeat("0", 1000)
	for _, test := range []struct{ number, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"0e999999999999999999999", "0"},
		{"1", "1"}, {"-1", "-1"}, {"10", "10"}, {"1e3", "1000"}, {"1E+3", "1000"}, {"1.50", "1.5"}, {"-12.5e-1", "-1.25"},
		{"0.1", "0.1"}, {"1e-3", "0.001"}, {"120e-1", "12"}, {"9007199254740993", "9007199254740993"},
		{"-9223372036854775808", "-9223372036854775808"}, {"18446744073709551615", "18446744073709551615"},
		{nines, nines}, {nines + "000", nines + "000"}, {"0." + nines, "0." + nines}, {"1" + zeros + "e-1000", "1"},
		{"0." + zeros + "1e1001", "1"},
		{"1e125", "1" + strings.Repeat("0", 125)}, {"-9.9e125", "-99" + strings.Repeat("0", 124)},
		{"1e-130", "0." + strings.Repeat("0", 129) + "1"}, {"5e-324", ""},

		{nines + "9", ""}, {"1." + nines, ""}, {"1e126", ""}, {"-1e126", ""}, {"9.9e-131", ""},
		{"1e999999999999999999999", ""}, {"1e-999999999999999999999", ""}, {"1e2147483647", ""},
	} {
		got, err := nativeNumber(test.number)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("nativeNumber(%.50s) = %.150q, %v; want %.150q", test.number, got, err, test.want)
		}
		if test.want == "" && (err == nil || !strings.Contains(err.Error(), "want up to 38 significant digits, and 0 or an amount from 1E-130 to below 1E126")) {
			t.Errorf("nativeNumber(%.50s): error is %v; want the limits", test.number, err)
		}
	}
}

// TestAppendNumber has the forms in which servers write numbers.
func TestAppendNumber(t *testing.T) {
	for _, test := range []struct{ number, want string }{
		{"0", "0"}, {"1000", "1000"}, {"1E+3", "1000"}, {"1E3", "1000"}, {"0.50", "0.5"}, {".5", "0.5"}, {"5.", "5"}, {"007", "7"},
		{"", ""}, {"-", ""}, {".", ""}, {"1e", ""}, {"e1", ""}, {"--1", ""}, {"+1", ""}, {"1.2.3", ""}, {"0x1", ""}, {"NaN", ""}, {"Infinity", ""},
		{"1E400", ""}, {"1e99999999999999999999", ""}, {"1\n", ""},
	} {
		got, err := appendNumber(nil, test.number)
		if string(got) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("appendNumber(%q) = %q, %v; want %q", test.number, got, err, test.want)
		}
	}
}

// TestNativeNumberIsExact compares with the exact value of numbers of all sizes around the limits.
func TestNativeNumberIsExact(t *testing.T) {
	limit := func(exponent string) *big.Rat {
		r, _ := new(big.Rat).SetString(exponent)
		return r
	}
	least, most := limit("1e-130"), limit("1e126")
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		if !json.Valid([]byte(number)) {
			t.Fatalf("%s is no JSON", number)
		}
		exact, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("%s is no number", number)
		}
		got, err := nativeNumber(number)
		if err != nil {
			size := new(big.Rat).Abs(exact)
			d, _ := parseDecimal(number)
			if exact.Sign() != 0 && size.Cmp(least) >= 0 && size.Cmp(most) < 0 && len(d.digits) <= maxDigits {
				t.Fatalf("nativeNumber(%s): %v; want it taken", number, err)
			}
			return
		}
		back, err := appendNumber(nil, got)
		if err != nil || !json.Valid(back) {
			t.Fatalf("appendNumber(%s) = %s, %v; want JSON", got, back, err)
		}
		if r, ok := new(big.Rat).SetString(string(back)); !ok || r.Cmp(exact) != 0 {
			t.Fatalf("%s comes back as %s; want the same value", number, back)
		}
		if exact.IsInt() {
			if diff := cmp.Diff(exact.RatString(), string(back)); diff != "" {
				t.Fatalf("integer (-want +got):\n%s", diff)
			}
		}
	})
}
