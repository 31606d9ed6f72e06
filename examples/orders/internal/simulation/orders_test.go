package simulation

import (
	"encoding/json"
	"testing"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/orders/shop"
)

func TestNewOrders(t *testing.T) {
	for _, n := range []int{1, 9, 10, 100, 101, 1000} {
		each := 0
		if n >= 10 {
			each = (n + 99) / 100
		}
		orders := newOrders(draw.Seed(3), n)
		count := make(map[fate]int)
		ids := make(map[string]bool)
		for _, o := range orders {
			count[o.fate]++
			ids[o.id] = true
			var decoded shop.Order
			err := json.Unmarshal([]byte(o.body), &decoded)
			switch {
			case (err != nil) != (o.fate == undecodable):
				t.Errorf("%s has fate %d, and its body decodes with %v", o.id, o.fate, err)
			case err == nil && (decoded.IdempotencyKey() != o.id || decoded.Amount <= 0 || len(decoded.Items) == 0):
				t.Errorf("%s has the body %s", o.id, o.body)
			case (decoded.Card == shop.CardDeclined) != (o.fate == declined):
				t.Errorf("%s has fate %d and the card %q", o.id, o.fate, decoded.Card)
			}
		}
		if len(orders) != n || len(ids) != n {
			t.Errorf("%d orders with %d IDs, want %d", len(orders), len(ids), n)
		}
		for f := undecodable; f < fates; f++ {
			want := each
			if f == hung {
				want = min(each, maxHung)
			}
			if count[f] != want {
				t.Errorf("of %d orders %d have fate %d, want %d", n, count[f], f, want)
			}
		}
	}
}
