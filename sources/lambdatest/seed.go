package lambdatest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Seed is where everything random in a kit comes from. It is hashed with what the choice is about, the parts, and not
// drawn from like a generator: goroutines that run at once ask in no fixed order, and the choices must not depend on
// that order. The same seed and parts give the same choice in every run. Seeds that are alike give unrelated choices.
type Seed uint64

// NewSeed returns the seed of the given value, or a random one if the value is 0.
func NewSeed(value uint64) Seed {
	for value == 0 {
		var b [8]byte
		rand.Read(b[:]) // never fails
		value = binary.BigEndian.Uint64(b[:])
	}
	return Seed(value)
}

// Digest returns 32 random bytes.
func (s Seed) Digest(parts ...string) [sha256.Size]byte {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

// Fraction returns a number of [0, 1).
func (s Seed) Fraction(parts ...string) float64 {
	d := s.Digest(parts...)
	return float64(binary.BigEndian.Uint64(d[:8])>>11) / (1 << 53)
}

// UUID returns a UUID of version 4.
func (s Seed) UUID(parts ...string) string {
	d := s.Digest(parts...)
	d[6] = d[6]&0x0f | 0x40
	d[8] = d[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", d[:4], d[4:6], d[6:8], d[8:10], d[10:16])
}
