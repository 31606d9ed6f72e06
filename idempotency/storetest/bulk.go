package storetest

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// Bulk returns a BulkStore over any store, for tests of what uses one: its methods for many call those for one in the order
// of the requests. Its sizes are those of a DynamoDB table, 100 claims and 25 completions or releases.
func Bulk(store idempotency.Store) idempotency.BulkStore {
	if marker, ok := store.(idempotency.Marker); ok {
		return serialMarker{serial{store}, marker}
	}
	return serial{store}
}

// serialMarker is serial for a store that is an idempotency.Marker.
type serialMarker struct {
	serial
	marker idempotency.Marker
}

func (s serialMarker) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	return s.marker.FindAll(ctx, requests)
}

func (s serialMarker) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	return s.marker.MarkAll(ctx, requests)
}

type serial struct{ idempotency.Store }

// BulkSizes implements idempotency.BulkStore.
func (serial) BulkSizes() idempotency.BulkSizes {
	return idempotency.BulkSizes{Claims: 100, Settle: 25}
}

// Validate implements idempotency.Validator for a store that does.
func (s serial) Validate() error {
	if v, ok := s.Store.(idempotency.Validator); ok {
		return v.Validate()
	}
	return nil
}

// Begin implements idempotency.Transactor for a store that does.
func (s serial) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	if t, ok := s.Store.(idempotency.Transactor); ok {
		return t.Begin(r)
	}
	return nil
}

// ClaimAll implements idempotency.BulkStore.
func (s serial) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	answers := make([]idempotency.ClaimAnswer, len(requests))
	for i, r := range requests {
		result, err := s.Claim(ctx, r)
		answers[i] = idempotency.ClaimAnswer{ClaimResult: result, Err: err}
	}
	return answers
}

// CompleteAll implements idempotency.BulkStore.
func (s serial) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	return forEach(ctx, requests, s.Complete)
}

// ReleaseAll implements idempotency.BulkStore.
func (s serial) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	return forEach(ctx, requests, s.Release)
}

// RenewAll implements idempotency.BulkStore.
func (s serial) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	return forEach(ctx, requests, s.Renew)
}

func forEach[R any](ctx context.Context, requests []R, do func(context.Context, R) error) []error {
	errs := make([]error, len(requests))
	for i, r := range requests {
		errs[i] = do(ctx, r)
	}
	return errs
}
