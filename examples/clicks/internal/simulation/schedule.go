package simulation

import "github.com/oncekit/oncekit/examples/internal/draw"

const (
	// outage is for how many deliveries of a shard the journeys of some visitors cannot be reached, one after the other.
	outage = 3
	// affected are the visitors that this happens to.
	affected = 0.4
	// failing is how many appends fail the first time, when nothing else goes wrong.
	failing = 0.03
)

// schedule says what goes wrong in which delivery of a shard, counted from 1: first a crash, then an outage, and then
// another crash. It keeps these so far apart that no click but the poison fails more than outage times, which is less than
// maxAttempts.
type schedule struct{ draw draw.Seed }

func (s schedule) crashes(shard string, delivery int) bool {
	return delivery == 2+s.draw.Number(2, "first crash", shard) ||
		delivery == s.outage(shard)+outage+1+s.draw.Number(2, "second crash", shard)
}

// outage returns the first delivery of an outage. A crash before it, and the two halves of its batch, are over by then.
func (s schedule) outage(shard string) int { return 7 + s.draw.Number(2, "outage", shard) }

// down reports whether a visitor's journey cannot be reached.
func (s schedule) down(shard string, delivery int, visitor string) bool {
	first := s.outage(shard)
	return delivery >= first && delivery < first+outage && s.draw.Chance(affected, "affected", visitor)
}

// fails reports whether the first append of a click fails by itself.
func (s schedule) fails(shard string, delivery int, click string) bool {
	return delivery >= s.outage(shard)+outage && s.draw.Chance(failing, "fails", click)
}
