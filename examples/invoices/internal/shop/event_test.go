package shop

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/invoices/billing"
)

func TestDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the time
		for _, replay := range []string{"", "replay-1"} {
			want := map[string]any{
				"version": "0", "id": "e1", "source": billing.Source, "detail-type": billing.DetailType, "account": "123456789012",
				"region": "us-east-1", "time": "2000-01-01T00:00:00Z", "resources": []any{},
				"detail": map[string]any{"id": "order-1", "customer": "ada", "amount": 8900.0, "currency": "EUR"},
			}
			if replay != "" {
				want["replay-name"] = replay
			}
			order := billing.Order{ID: "order-1", Customer: "ada", Amount: 8900, Currency: "EUR"}
			var got map[string]any
			if err := json.Unmarshal(Delivered(Placed(order), "e1", replay), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		}
	})
}
