package dynamostore_test

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestConformance(t *testing.T) {
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, dynamotest.Client(t), l.options)
			storetest.Test(t, func(testing.TB) idempotency.Store { return p })
		})
	}
}
