package watermarktest

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

func TestMemoryStore(t *testing.T) {
	Test(t, func(testing.TB) watermark.Store { return watermark.NewMemoryStore() })
}
