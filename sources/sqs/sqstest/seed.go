package sqstest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// seed is where everything random comes from. It is hashed with what the choice is about and not drawn from like a
// generator: goroutines that run at once ask in no fixed order, and the choices must not depend on that order.
type seed uint64

func randomSeed() seed {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return seed(binary.BigEndian.Uint64(b[:]))
}

func (s seed) digest(parts ...string) [sha256.Size]byte {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

// fraction returns a number of [0, 1).
func (s seed) fraction(parts ...string) float64 {
	d := s.digest(parts...)
	return float64(binary.BigEndian.Uint64(d[:8])>>11) / (1 << 53)
}

// uuid returns a UUID of version 4.
func (s seed) uuid(parts ...string) string {
	d := s.digest(parts...)
	d[6] = d[6]&0x0f | 0x40
	d[8] = d[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", d[:4], d[4:6], d[6:8], d[8:10], d[10:16])
}
