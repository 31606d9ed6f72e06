package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Claim implements idempotency.Store with one script. TookOver is false for a claim whose reply was lost and which the
// client sent again: the second reply does not tell what the first one replaced. ClaimRequest.AskFirst changes nothing,
// since a refused claim writes nothing.
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return s.claimed(r, s.do(ctx, &s.claim, claimCall(r)))
}

func claimCall(r idempotency.ClaimRequest) call {
	return call{r.Key, []string{
		r.Owner,
		seconds(r.Now),
		freeLease(r.Now, r.Skew),
		milliseconds(r.Lease),
		seconds(r.Expiry),
		number(timeToLive(r.Now, later(r.Lease.Add(r.Skew), endOfSecond(r.Expiry)))),
		flag(r.CountAttempts),
		r.Fingerprint,
	}}
}

// claimed reads the reply to a claim.
func (s *Store) claimed(r idempotency.ClaimRequest, reply Reply) (idempotency.ClaimResult, error) {
	if reply.Err != nil {
		return idempotency.ClaimResult{}, reply.Err
	}
	if reply.Values[0] == "held" {
		e, err := s.entry(r.Key, reply)
		if err != nil {
			return idempotency.ClaimResult{}, err
		}
		if e.Status == idempotency.Absent { // nothing would be in the way
			return idempotency.ClaimResult{}, s.unexpected(r.Key, reply.Values)
		}
		// Its own claim: the request was sent twice.
		return idempotency.ClaimResult{Claimed: e.Status == idempotency.InProgress && e.Owner == r.Owner, Entry: e}, nil
	}
	if len(reply.Values) != 3 {
		return idempotency.ClaimResult{}, s.unexpected(r.Key, reply.Values)
	}
	attempts, err := strconv.Atoi(reply.Values[2])
	if err != nil {
		return idempotency.ClaimResult{}, fmt.Errorf("redisstore: %s: attempts: %w", s.where(r.Key), err)
	}
	return idempotency.ClaimResult{
		Claimed:  true,
		TookOver: reply.Values[1] == "1",
		Entry: idempotency.Entry{
			Status:      idempotency.InProgress,
			Owner:       r.Owner,
			Fingerprint: r.Fingerprint,
			Lease:       time.UnixMilli(r.Lease.UnixMilli()).UTC(),
			Expiry:      time.Unix(r.Expiry.Unix(), 0).UTC(),
			Attempts:    attempts,
		},
	}, nil
}
