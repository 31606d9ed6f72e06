package simulation

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// draw makes all choices of a run. A choice depends on the seed and on what it is about, and on nothing else: not on
// when it is made, and not on which choices were made before. Goroutines may therefore choose in any order.
type draw uint64

// fraction returns a number of [0, 1).
func (d draw) fraction(about ...any) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q", uint64(d), fmt.Sprintln(about...)))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// chance returns true with the given probability.
func (d draw) chance(probability float64, about ...any) bool {
	return d.fraction(about...) < probability
}

// number returns one of 0 to n-1.
func (d draw) number(n int, about ...any) int { return int(d.fraction(about...) * float64(n)) }

// duration returns one from low up to high.
func (d draw) duration(low, high time.Duration, about ...any) time.Duration {
	return low + time.Duration(d.fraction(about...)*float64(high-low))
}

// order returns the numbers 0 to n-1 in a random order.
func (d draw) order(n int) []int { return rand.New(rand.NewPCG(uint64(d), 0)).Perm(n) }
