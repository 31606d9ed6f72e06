package redisstore

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// Renew implements idempotency.Store with one script.
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.renewed(r, s.do(ctx, &s.renew, renewCall(r)))
}

func renewCall(r idempotency.RenewRequest) call {
	ttl := timeToLive(r.Now, later(r.Lease, endOfSecond(r.Expiry)))
	return call{r.Key, []string{
		r.Owner, r.NewOwner, seconds(r.Now), milliseconds(r.Lease), seconds(r.Expiry), number(ttl),
	}}
}

// renewed reads the reply to a renewal.
func (s *Store) renewed(r idempotency.RenewRequest, reply Reply) error {
	e, err := s.refusal(r.Key, reply)
	if err != nil || e == nil {
		return err
	}
	mine := e.Owner == r.Owner || e.Owner == r.NewOwner
	switch {
	case e.Status == idempotency.Completed && mine:
		return s.alreadyCompleted(r.Key)
	case e.Status == idempotency.InProgress && e.Owner == r.NewOwner:
		return nil // the request was sent twice
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}
