package lambdatest

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// bulkStore is the store of an inner one that takes many requests in a call.
type bulkStore struct {
	store
	many idempotency.BulkStore
}

func (s *bulkStore) BulkSizes() idempotency.BulkSizes { return s.many.BulkSizes() }

func (s *bulkStore) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	key := func(r idempotency.ClaimRequest) string { return r.Key }
	failed := func(err error) idempotency.ClaimAnswer { return idempotency.ClaimAnswer{Err: err} }
	return callAll(ctx, s.function, "ClaimAll", requests, key, s.many.ClaimAll, failed)
}

func (s *bulkStore) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	key := func(r idempotency.CompleteRequest) string { return r.Key }
	return callAll(ctx, s.function, "CompleteAll", requests, key, s.many.CompleteAll, itself)
}

func (s *bulkStore) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	key := func(r idempotency.ReleaseRequest) string { return r.Key }
	return callAll(ctx, s.function, "ReleaseAll", requests, key, s.many.ReleaseAll, itself)
}

func (s *bulkStore) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	key := func(r idempotency.RenewRequest) string { return r.Key }
	return callAll(ctx, s.function, "RenewAll", requests, key, s.many.RenewAll, itself)
}

func itself(err error) error { return err }

// callAll makes one call of many requests. What failed returns is the answer to one that was not applied, or whose reply is
// lost.
func callAll[R, A any](
	ctx context.Context, f *Function, name string, requests []R, key func(R) string,
	apply func(context.Context, []R) []A, failed func(error) A,
) []A {
	keys := make([]string, len(requests))
	for i, r := range requests {
		keys[i] = key(r)
	}
	var applied []A
	answered, err := f.call(ctx, name, keys, func(n int) { applied = apply(ctx, requests[:n]) })
	answers := append(make([]A, 0, len(requests)), applied[:answered]...)
	for range requests[answered:] {
		answers = append(answers, failed(err))
	}
	return answers
}
