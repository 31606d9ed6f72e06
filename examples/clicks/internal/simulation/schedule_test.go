package simulation

import (
	"testing"

	"github.com/oncekit/oncekit/examples/internal/draw"
)

// TestSchedule looks at every delivery: a crash, with two calm deliveries for the halves of its batch, comes before the
// outage, and the other one after it; nothing else fails before the outage is over.
func TestSchedule(t *testing.T) {
	for seed := range draw.Seed(50) {
		s := schedule{seed}
		first, last, downs := s.outage("a"), s.outage("a")+outage-1, 0
		var crashes []int
		for delivery := range 40 {
			down := false
			for i := range visitors {
				down = down || s.down("a", delivery, visitor(i))
			}
			if down {
				downs++
			}
			if down != (first <= delivery && delivery <= last) {
				t.Errorf("seed %d: down in delivery %d is %v, want it from %d to %d", seed, delivery, down, first, last)
			}
			if s.crashes("a", delivery) {
				crashes = append(crashes, delivery)
			}
			for i := range 100 {
				if delivery <= last && s.fails("a", delivery, visitor(i)) {
					t.Errorf("seed %d: an append fails in delivery %d, by itself", seed, delivery)
				}
			}
		}
		if downs != outage || len(crashes) != 2 || crashes[0] < 1 || crashes[0]+2 >= first || crashes[1] <= last {
			t.Errorf("seed %d: crashes in deliveries %v, outage from %d to %d", seed, crashes, first, last)
		}
	}
	if outage >= maxAttempts || maxAttempts > maximumRetryAttempts-2 {
		t.Errorf("outage is %d, maxAttempts %d, maximumRetryAttempts %d; want each well below the next",
			outage, maxAttempts, maximumRetryAttempts)
	}
}
