package draw_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oncekit/oncekit/examples/internal/draw"
)

// TestChoices makes many choices of each kind: they are within their limits, spread, and the same when made again.
func TestChoices(t *testing.T) {
	const n = 4000
	seed, other := draw.Seed(1), draw.Seed(2)
	yes, numbers, differ := 0, make([]int, 4), 0
	for i := range n {
		if seed.Chance(0.25, "chance", i) {
			yes++
		}
		numbers[seed.Number(4, "number", i)]++
		d := seed.Duration(time.Second, 2*time.Second, "duration", i)
		if d < time.Second || d >= 2*time.Second || d != seed.Duration(time.Second, 2*time.Second, "duration", i) {
			t.Fatalf("duration %d is %v, want one of [1s, 2s), the same each time", i, d)
		}
		if d != other.Duration(time.Second, 2*time.Second, "duration", i) {
			differ++
		}
	}
	for _, got := range append(numbers, yes) {
		if got < n/4-n/20 || got > n/4+n/20 {
			t.Errorf("of %d choices with a probability of 1/4 there were %d", n, got)
		}
	}
	if differ < n*9/10 {
		t.Errorf("two seeds differ in %d of %d choices, want most", differ, n)
	}
	order := seed.Order(10)
	if slices.Equal(order, other.Order(10)) || !slices.Equal(order, seed.Order(10)) {
		t.Errorf("order is %v, want it to depend on the seed and on nothing else", order)
	}
	slices.Sort(order)
	if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("order has the numbers %v, want 0 to 9", order)
	}
}
