package redisstore

import (
	"context"
	"fmt"

	"github.com/oncekit/oncekit/idempotency"
)

var _ idempotency.Marker = (*Store)(nil)

// FindAll implements idempotency.Marker with one script a request, a hundred in a round trip.
func (s *Store) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	answers := make([]idempotency.FindAnswer, len(requests))
	for i, reply := range s.doAll(ctx, &s.find, calls(requests, findCall)) {
		e, err := s.refusal(requests[i].Key, reply)
		if err != nil {
			answers[i].Err = err
		} else if e != nil {
			answers[i].Entry = *e
		}
	}
	return answers
}

func findCall(r idempotency.FindRequest) call {
	return call{r.Key, []string{seconds(r.Now), freeLease(r.Now, r.Skew)}}
}

// MarkAll implements idempotency.Marker with one script a request, a hundred in a round trip.
func (s *Store) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	return answers(requests, s.doAll(ctx, &s.mark, calls(requests, markCall)), s.marked)
}

func markCall(r idempotency.MarkRequest) call {
	args := []string{
		r.Owner, seconds(r.Now), freeLease(r.Now, r.Skew), seconds(r.Expiry), number(timeToLive(r.Now, endOfSecond(r.Expiry))),
		r.Fingerprint,
	}
	if r.Data != nil {
		args = append(args, string(r.Data))
	}
	return call{r.Key, args}
}

// marked reads the reply to a mark.
func (s *Store) marked(r idempotency.MarkRequest, reply Reply) error {
	e, err := s.refusal(r.Key, reply)
	if err != nil || e == nil {
		return err
	}
	if err = r.RefusedBy(e); err != nil {
		return fmt.Errorf("%w: redisstore: %s: it is %v", err, s.where(r.Key), e.Status)
	}
	return nil
}
