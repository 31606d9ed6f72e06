package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Renew implements idempotency.Store with one UpdateItem.
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	if s.err != nil {
		return s.err
	}
	e, err := s.update(ctx, r.Key, &s.statements.renew, map[string]types.AttributeValue{
		":owner":      text(r.Owner),
		":newOwner":   text(r.NewOwner),
		":inProgress": inProgress,
		":now":        seconds(r.Now),
		":lease":      s.lease(r.Lease),
		":expiry":     seconds(r.Expiry),
	})
	if err != nil || e == nil {
		return err
	}
	return s.judgeRenew(r, e)
}

// judgeRenew returns the answer to a renewal that e has refused.
func (s *Store) judgeRenew(r idempotency.RenewRequest, e *idempotency.Entry) error {
	mine := e.Owner == r.Owner || e.Owner == r.NewOwner
	switch {
	case e.Status == idempotency.Completed && mine:
		return s.alreadyCompleted(r.Key)
	case e.Status == idempotency.InProgress && e.Owner == r.NewOwner:
		// The SDK sent the request twice: the first one was applied and its reply was lost.
		return nil
	case e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(*e, r.Now):
		return s.contradiction(r.Key)
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}
