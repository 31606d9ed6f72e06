package broken

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Claim implements idempotency.Store.
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	if ctx.Err() != nil {
		return idempotency.ClaimResult{}, s.contextError(ctx)
	}
	s.lock()
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]

	if s.limit > 0 && len(s.entries) >= s.limit && (!known || s.is(FullRefusesKnown)) && !s.makeRoom(r.Now) {
		return idempotency.ClaimResult{}, idempotency.ErrStoreFull
	}
	if known && e.Owner == r.Owner && !s.is(OwnClaimUnknown) &&
		(e.Status == idempotency.InProgress || s.is(OwnClaimAnyStatus)) {
		if s.is(AttemptsTwice) && r.CountAttempts {
			e.Attempts++
			s.entries[key] = e
		}
		return idempotency.ClaimResult{Claimed: true, Entry: s.out(e)}, nil
	}
	if known && !s.free(e, r) {
		return idempotency.ClaimResult{Entry: s.refuse(key, e, r)}, nil
	}
	s.pause(TwoWinners)

	claimed := idempotency.Entry{
		Status: idempotency.InProgress, Owner: r.Owner, Fingerprint: r.Fingerprint,
		Lease: time.UnixMilli(r.Lease.UnixMilli()), Expiry: time.Unix(r.Expiry.Unix(), 0), Attempts: e.Attempts,
	}
	if s.is(AttemptsTakeover) && e.Owner != "" {
		claimed.Attempts = 0
	}
	if r.CountAttempts && !s.is(AttemptsNever) || s.is(AttemptsAlways) {
		claimed.Attempts++
	}
	if s.is(TakeoverKeepsData) {
		claimed.Data = e.Data
	}
	if s.is(TakeoverKeepsPrint) && r.Fingerprint == "" {
		claimed.Fingerprint = e.Fingerprint
	}
	if s.is(ClaimDropsPrint) {
		claimed.Fingerprint = ""
	}
	if longest := r.Now.Add(24 * time.Hour); s.is(LeaseShort) && claimed.Lease.After(longest) {
		claimed.Lease = longest
	}
	if s.is(LeaseExact) {
		claimed.Lease = r.Lease
	}
	if s.is(LeaseWholeSeconds) {
		claimed.Lease = time.Unix(r.Lease.Unix(), 0)
	}
	s.entries[key] = claimed
	if !s.is(LeaseExact) {
		return idempotency.ClaimResult{Claimed: true, TookOver: s.tookOver(e), Entry: s.out(claimed)}, nil
	}
	claimed.Lease = time.UnixMilli(r.Lease.UnixMilli()) // exact in the comparison, not in what is shown
	return idempotency.ClaimResult{Claimed: true, TookOver: s.tookOver(e), Entry: s.out(claimed)}, nil
}

func (s *Store) tookOver(e idempotency.Entry) bool {
	switch {
	case s.is(TookOverNever):
		return false
	case e.Status == idempotency.Completed:
		return s.is(TookOverExpired)
	case e.Status == idempotency.InProgress && !s.is(TookOverReleased):
		return e.Lease.UnixMilli() > 0
	}
	return e.Status == idempotency.InProgress
}

// refuse returns the entry that stands in the way of a claim.
func (s *Store) refuse(key string, e idempotency.Entry, r idempotency.ClaimRequest) idempotency.Entry {
	switch changed := e; {
	case s.is(ClaimRefusedChanges):
		changed.Lease = r.Lease
		s.entries[key] = changed
	case s.is(ClaimRefusedMarks):
		changed.Fingerprint = r.Fingerprint
		s.entries[key] = changed
	case s.is(AttemptsRefused) && r.CountAttempts:
		changed.Attempts++
		s.entries[key] = changed
	}
	e = s.out(e)
	if s.is(RefusedNoData) {
		e.Data = nil
	}
	if s.is(RefusedNoEntry) {
		e = idempotency.Entry{}
	}
	if s.is(LeaseExact) && !e.Lease.IsZero() {
		e.Lease = time.UnixMilli(e.Lease.UnixMilli())
	}
	if s.is(ExpiryExact) {
		e.Expiry = time.Unix(e.Expiry.Unix(), 0)
	}
	return e
}

func (s *Store) out(e idempotency.Entry) idempotency.Entry {
	if !s.is(DataAliasedOut) {
		e.Data = bytes.Clone(e.Data)
	}
	return e
}

// makeRoom reports whether a new key has room, once what has expired is gone.
func (s *Store) makeRoom(now time.Time) bool {
	if s.is(FullUnheeded) {
		return true
	}
	early := time.Duration(0)
	if s.is(FullEvictsEarly) {
		early = time.Second
	}
	if !s.is(FullForEver) {
		maps.DeleteFunc(s.entries, func(_ string, e idempotency.Entry) bool { return s.expired(e, now.Add(early)) })
	}
	evict := map[Fault]idempotency.Status{
		FullEvictsClaim: idempotency.InProgress, FullEvictsCompletion: idempotency.Completed,
	}[s.fault]
	for key, e := range s.entries {
		if len(s.entries) >= s.limit && evict != idempotency.Absent && e.Status == evict {
			delete(s.entries, key)
		}
	}
	return len(s.entries) < s.limit
}
