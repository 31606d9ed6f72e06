package lambdatest

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// Store returns a store that belongs to the function: its calls are made through Call, under the names of its methods
// and the keys as stored. Of the optional interfaces, it forwards idempotency.Validator.
func (f *Function) Store(inner idempotency.Store) idempotency.Store {
	return &store{function: f, inner: inner}
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
