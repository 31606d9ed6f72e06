// Package draw makes the random choices of the examples' simulations, the same in every run.
package draw

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// Seed makes all choices of a run. A choice depends on the seed and on what it is about, and on nothing else: not on
// when it is made, and not on which choices were made before. Goroutines may therefore choose in any order.
type Seed uint64

// fraction returns a number of [0, 1).
func (s Seed) fraction(about ...any) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q", uint64(s), fmt.Sprintln(about...)))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Chance returns true with the given probability.
func (s Seed) Chance(probability float64, about ...any) bool {
	return s.fraction(about...) < probability
}

// Number returns one of 0 to n-1.
func (s Seed) Number(n int, about ...any) int { return int(s.fraction(about...) * float64(n)) }

// Duration returns one from low up to high.
func (s Seed) Duration(low, high time.Duration, about ...any) time.Duration {
	return low + time.Duration(s.fraction(about...)*float64(high-low))
}

// Order returns the numbers 0 to n-1 in a random order.
func (s Seed) Order(n int) []int { return rand.New(rand.NewPCG(uint64(s), 0)).Perm(n) }
