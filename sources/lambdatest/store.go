package lambdatest

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// Store returns a store that belongs to the function: its calls are made through Call, under the names of its methods
// and the keys as stored. Of the optional interfaces, it forwards idempotency.Validator and idempotency.Transactor. It is
// an idempotency.BulkStore or an idempotency.Marker if inner is one: a call for many is one call, which all its requests
// share the points and the fault of, except that Fault.Part can let it fail in the middle. The call of a transaction is one
// of the name Complete.
func (f *Function) Store(inner idempotency.Store) idempotency.Store {
	single := store{function: f, inner: inner}
	many, isBulk := inner.(idempotency.BulkStore)
	marker, isMarker := inner.(idempotency.Marker)
	m := &marks{function: f, marker: marker}
	switch {
	case isBulk && isMarker:
		return &markedBulkStore{&bulkStore{store: single, many: many}, m}
	case isBulk:
		return &bulkStore{store: single, many: many}
	case isMarker:
		return &markedStore{&single, m}
	default:
		return &single
	}
}

type store struct {
	function *Function
	inner    idempotency.Store
}

func (s *store) Claim(ctx context.Context, r idempotency.ClaimRequest) (result idempotency.ClaimResult, err error) {
	err = s.function.Call(ctx, "Claim", r.Key, func() error {
		result, err = s.inner.Claim(ctx, r)
		return err
	})
	if err != nil {
		return idempotency.ClaimResult{}, err // not what a lost reply said
	}
	return result, nil
}

func (s *store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return s.function.Call(ctx, "Complete", r.Key, func() error { return s.inner.Complete(ctx, r) })
}

func (s *store) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return s.function.Call(ctx, "Release", r.Key, func() error { return s.inner.Release(ctx, r) })
}

func (s *store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.function.Call(ctx, "Renew", r.Key, func() error { return s.inner.Renew(ctx, r) })
}

// Validate asks inner, if it can be asked.
func (s *store) Validate() error {
	if v, ok := s.inner.(idempotency.Validator); ok {
		return v.Validate()
	}
	return nil
}

// Begin begins a transaction of inner, if that has any.
func (s *store) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	t, ok := s.inner.(idempotency.Transactor)
	if !ok {
		return nil
	}
	if inner := t.Begin(r); inner != nil {
		return &transaction{Transaction: inner, function: s.function}
	}
	return nil
}

// transaction is one of inner, whose call is the function's.
type transaction struct {
	idempotency.Transaction
	function *Function
}

// Unwrap returns the transaction of inner.
func (t *transaction) Unwrap() idempotency.Transaction { return t.Transaction }

func (t *transaction) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return t.function.Call(ctx, "Complete", r.Key, func() error { return t.Transaction.Complete(ctx, r) })
}
