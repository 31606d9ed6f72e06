package simulation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/draw"
)

// TestPlan checks that a plan has the life of each order, and that everything that can happen to one does.
func TestPlan(t *testing.T) {
	const orders = 40
	for seed := range draw.Seed(10) {
		want, got := make(map[string][]step), make(map[string][]step)
		seen := make(map[step]bool)
		for i := range orders {
			want[orderID(i)] = life(seed, i, orders)
		}
		for _, todo := range newPlan(seed, orders) {
			got[todo.order] = append(got[todo.order], todo.step)
			seen[todo.step] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d: steps of each order (-want +got):\n%s", seed, diff)
		}
		for s := place; s <= corrupt; s++ {
			if !seen[s] {
				t.Errorf("seed %d: no order has step %d", seed, s)
			}
		}
	}
	if got := newPlan(1, 1); len(got) != 5 || got[4].step != corrupt {
		t.Errorf("plan of one order is %v, want one that is corrupted", got)
	}
}
