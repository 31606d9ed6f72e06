package powertools_test

import (
	"encoding/json"
	"fmt"

	"github.com/oncekit/oncekit/idempotency/powertools"
)

// The key of an order is its id and its tenant, as with event_key_jmespath="[tenant, order.id]" in Python.
func ExampleKeys_Key() {
	keys, err := powertools.NewKeys(powertools.Python)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"tenant":"acme","order":{"id":17,"amount":9.99}}`)
	var payload struct {
		Tenant json.RawMessage
		Order  struct{ ID json.RawMessage }
	}
	if err := json.Unmarshal(body, &payload); err != nil {
		fmt.Println(err)
		return
	}
	selected, err := json.Marshal([]json.RawMessage{payload.Tenant, payload.Order.ID})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := keys.Key(selected)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(powertools.Python.Namespace("orders-consumer", "app.lambda_handler") + "#" + key)
	// Output: orders-consumer.app.lambda_handler#5cbc5624c7b0c43c2f2e5b50e9ac8a44
}
