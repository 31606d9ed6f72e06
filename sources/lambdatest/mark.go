package lambdatest

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// marks are the calls of an inner store that is an idempotency.Marker.
type marks struct {
	function *Function
	marker   idempotency.Marker
}

func (m *marks) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	key := func(r idempotency.FindRequest) string { return r.Key }
	failed := func(err error) idempotency.FindAnswer { return idempotency.FindAnswer{Err: err} }
	return callAll(ctx, m.function, "FindAll", requests, key, m.marker.FindAll, failed)
}

func (m *marks) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	key := func(r idempotency.MarkRequest) string { return r.Key }
	return callAll(ctx, m.function, "MarkAll", requests, key, m.marker.MarkAll, itself)
}

type (
	markedStore struct {
		*store
		*marks
	}
	markedBulkStore struct {
		*bulkStore
		*marks
	}
)
