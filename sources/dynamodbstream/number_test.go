package dynamodbstream

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.00", "0"}, {"0E5", "0"}, {"00", "0"},
		{"1", "1e0"}, {"+1", "1e0"}, {"1.0", "1e0"}, {"01", "1e0"}, {"10E-1", "1e0"}, {"0.1e1", "1e0"}, {"1.", "1e0"},
		{"100", "1e2"}, {"1E+2", "1e2"}, {"1.00e2", "1e2"}, {"-100", "-1e2"},
		{".5", "5e-1"}, {"0.50", "5e-1"}, {"12.34", "1234e-2"}, {"1234567890123456789012345678901234567.8", "12345678901234567890123456789012345678e-1"},
		{"1E-130", "1e-130"}, {"9.9E+125", "99e124"},
	} {
		n, ok := parseNumber(test.text)
		if got := n.canonical(); got != test.want || !ok {
			t.Errorf("%s is %s, %v, want %s", test.text, got, ok, test.want)
		}
	}
	for _, text := range []string{
		"", "-", "+", ".", "e1", "1e", "1e+", "1E1.5", "1e99999", "abc", "NaN", "Inf", "-Infinity", "0x1", "0x1p-2", "1_000", "1,5",
		" 1", "1 ", "1\n", "--1", "1-", "1.2.3", "١", "1\x00",
	} {
		if n, ok := parseNumber(text); ok {
			t.Errorf("%q is the number %s, want none", text, n.canonical())
		}
	}
}

// Two texts have one canonical form if and only if they are the same number.
func TestNumberCanonicalForm(t *testing.T) {
	text := rapid.StringMatching(`[-+]?[0-2]{0,4}(\.[0-2]{0,4})?([eE][-+]?[0-3])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		m, okM := parseNumber(a)
		n, okN := parseNumber(b)
		if okX != okM || okY != okN {
			t.Fatalf("%q is a number: %v, want %v; %q: %v, want %v", a, okM, okX, b, okN, okY)
		}
		if okX && okY && (x.Cmp(y) == 0) != (m.canonical() == n.canonical()) {
			t.Fatalf("%q is %s and %q is %s, but that they are the same number is %v", a, m.canonical(), b, n.canonical(), x.Cmp(y) == 0)
		}
	})
}
