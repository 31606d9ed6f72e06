package redisstore

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// Complete implements idempotency.Store with one script.
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return s.completed(r, s.do(ctx, &s.complete, completeCall(r)))
}

func completeCall(r idempotency.CompleteRequest) call {
	args := []string{r.Owner, seconds(r.Now), seconds(r.Expiry), number(timeToLive(r.Now, endOfSecond(r.Expiry)))}
	if r.Data != nil {
		args = append(args, string(r.Data))
	}
	return call{r.Key, args}
}

// completed reads the reply to a completion.
func (s *Store) completed(r idempotency.CompleteRequest, reply Reply) error {
	e, err := s.refusal(r.Key, reply)
	switch {
	case err != nil:
		return err
	case e == nil:
		return nil
	case e.Status == idempotency.Completed && e.Owner == r.Owner:
		return nil // the request was sent twice
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}

// Release implements idempotency.Store with one script.
func (s *Store) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return s.released(r, s.do(ctx, &s.release, releaseCall(r)))
}

func releaseCall(r idempotency.ReleaseRequest) call {
	return call{r.Key, []string{r.Owner, flag(r.CountAttempts), flag(r.Unstarted)}}
}

// released reads the reply to a release.
func (s *Store) released(r idempotency.ReleaseRequest, reply Reply) error {
	e, err := s.refusal(r.Key, reply)
	switch {
	case err != nil:
		return err
	case e == nil || e.Status == idempotency.Absent || isReleased(*e):
		return nil // released now, or by an earlier copy of the request
	case e.Status == idempotency.Completed && e.Owner == r.Owner:
		return s.alreadyCompleted(r.Key)
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}

// isReleased reports whether the entry is kept only for its count of attempts.
func isReleased(e idempotency.Entry) bool {
	return e.Status == idempotency.InProgress && e.Owner == "" && !e.Lease.IsZero() && e.Lease.UnixMilli() == 0
}
