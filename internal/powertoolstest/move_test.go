package powertoolstest_test

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/idempotency/powertools"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

// TestMoveToGo moves a consumer: what TypeScript has done, Go replays, all of it, and what TypeScript left undone, Go does.
// Here the whole payload is the key, which is what Powertools does without an expression.
func TestMoveToGo(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client)
	peer := powertoolstest.Start(t)
	keys, err := powertools.NewKeys(powertools.TypeScript)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		function  powertoolstest.Function
		namespace string
	}{
		"function's name": {powertoolstest.Function{Name: "moved"}, powertools.TypeScript.Namespace("moved", "")},
		"key prefix":      {powertoolstest.Function{Name: "any", KeyPrefix: " moved.handler "}, "moved.handler"},
	} {
		t.Run(name, func(t *testing.T) {
			typeScript := test.function
			typeScript.Table, typeScript.Remaining = table, time.Minute
			var payloads []string
			for _, value := range testLines(t, "values.txt") {
				if key, err := keys.Key([]byte(value)); err != nil {
					t.Fatal(err)
				} else if key != "" {
					payloads = append(payloads, value)
				}
			}
			const undone = 5
			done := make(map[string]bool) // by key: some values are the same to TypeScript
			for _, payload := range payloads[undone:] {
				o := peer.Call(t, typeScript, payload, receipt)
				key, _ := keys.Key([]byte(payload))
				if o.Err != nil || o.Ran == done[key] {
					t.Fatalf("%s: TypeScript: %+v, want it run: %v", payload, o, !done[key])
				}
				done[key] = true
			}
			if len(done) < 80 {
				t.Fatalf("TypeScript has done %d, want more to go by", len(done))
			}

			guard, err := idempotency.New(test.namespace, dynamostore.New(client, table))
			if err != nil {
				t.Fatal(err)
			}
			for i, payload := range payloads {
				key, _ := keys.Key([]byte(payload))
				o := doAs(t, guard, key, "", receipt)
				if o.Err != nil || o.Ran == done[key] || o.Result != receipt {
					t.Errorf("%d: %s: Go: %+v, want it run: %v", i, payload, o, !done[key])
				}
				done[key] = true
			}
		})
	}
}
