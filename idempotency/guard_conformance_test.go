package idempotency_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
)

func TestGuardConformance(t *testing.T) {
	storetest.TestGuard(t, func(t testing.TB, namespace string, store idempotency.Store, o idempotency.Options) storetest.Do {
		o.Logger = slog.New(slog.DiscardHandler)
		guard, err := idempotency.New(namespace, store, func(p *idempotency.Options) { *p = o })
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, key, fingerprint string, work func(context.Context) ([]byte, error)) ([]byte, bool, error) {
			result, err := idempotency.Do(ctx, guard, key, work, func(o *idempotency.CallOptions) { o.Fingerprint = fingerprint })
			return result.Value, result.Replayed, err
		}
	})
}
