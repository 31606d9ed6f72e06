package lambdatest_test

import (
	"regexp"
	"testing"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestSeedKeepsPartsApart(t *testing.T) {
	if lambdatest.Seed(1).Fraction("ab", "c") == lambdatest.Seed(1).Fraction("a", "bc") {
		t.Error(`"ab", "c" and "a", "bc" give the same fraction`)
	}
}

// Values that were written down once. A change of them changes every seeded run of every user.
func TestSeedStaysTheSame(t *testing.T) {
	s := lambdatest.NewSeed(7)
	if got, want := s.UUID("message", "orders", "1"), "6bc8b58a-dfd9-46b7-bf2d-d822999efca8"; got != want {
		t.Errorf("UUID is %q, want %q", got, want)
	}
	if got, want := s.Fraction("duplicate", "1"), 0.11916874789687892; got != want {
		t.Errorf("fraction is %v, want %v", got, want)
	}
}

func TestNewSeed(t *testing.T) {
	if got := lambdatest.NewSeed(7); got != 7 {
		t.Errorf("seed of 7 is %d, want 7", got)
	}
	if one, two := lambdatest.NewSeed(0), lambdatest.NewSeed(0); one == two || one == 0 || two == 0 {
		t.Errorf("seeds of 0 are %d and %d, want two random ones", one, two)
	}
}

func TestSeedFractionIsEven(t *testing.T) {
	var tenths [10]int
	for i := range 10000 {
		f := lambdatest.Seed(i).Fraction("part")
		if f < 0 || f >= 1 {
			t.Fatalf("fraction is %v, want 0 to less than 1", f)
		}
		tenths[int(f*10)]++
	}
	for i, n := range tenths {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 10000 fractions are in tenth %d, want about 1000", n, i)
		}
	}
}

func TestSeedUUID(t *testing.T) {
	uuid := lambdatest.Seed(1).UUID("part")
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(uuid) {
		t.Errorf("%q is no UUID of version 4", uuid)
	}
}
