package broken

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Complete implements idempotency.Store.
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if ctx.Err() != nil {
		return s.contextError(ctx)
	}
	s.lock()
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]
	switch mine := e.Owner == r.Owner || s.is(CompleteAnyOwner) || e.Owner == "" && s.is(OwnerlessIsMine); {
	case !known && s.is(CompleteCreates):
		e = idempotency.Entry{Owner: r.Owner}
	case !known || !mine:
		return s.refuseCompletion(key, e)
	case e.Status == idempotency.Completed && s.is(OwnCompletionUnknown):
		return idempotency.ErrClaimLost
	case e.Status == idempotency.Completed && !s.is(CompleteAnyStatus):
		return nil
	case s.expired(e, r.Now) && !s.is(CompleteExpired), s.is(CompleteChecksLease) && e.Lease.Before(r.Now):
		return idempotency.ErrClaimLost
	}
	s.pause(CompleteNotAtomic)

	if s.is(DataNotCompleted) && len(r.Data) > 100_000 {
		return idempotency.ErrResultNotStored
	}
	done := idempotency.Entry{
		Status: idempotency.Completed, Owner: r.Owner, Fingerprint: e.Fingerprint,
		Expiry: time.Unix(r.Expiry.Unix(), 0), Data: s.in(r.Data),
	}
	if s.is(CompleteKeepsExpiry) {
		done.Expiry = e.Expiry
	}
	if s.is(ExpiryExact) {
		done.Expiry = r.Expiry
	}
	if s.is(CompleteDropsPrint) {
		done.Fingerprint = ""
	}
	if s.is(AttemptsCompletion) {
		done.Attempts = e.Attempts
	}
	s.entries[key] = done
	return nil
}

func (s *Store) refuseCompletion(key string, e idempotency.Entry) error {
	if s.is(CompleteRefusedChanges) && e.Status == idempotency.InProgress {
		e.Expiry = e.Expiry.Add(time.Hour)
		s.entries[key] = e
	}
	return idempotency.ErrClaimLost
}

func (s *Store) in(data []byte) []byte {
	switch {
	case s.is(DataDropped) && len(data) > 100_000:
		return nil
	case s.is(DataNilIsNull) && data == nil:
		return []byte("null")
	case s.is(DataNullIsNil) && string(data) == "null":
		return nil
	case s.is(DataCompacted) && data != nil:
		var b bytes.Buffer
		if json.Compact(&b, data) == nil {
			return b.Bytes()
		}
	case s.is(DataAliasedIn):
		return data
	}
	return bytes.Clone(data)
}

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	if ctx.Err() != nil {
		return s.contextError(ctx)
	}
	s.lock()
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]
	free := known && e.Status == idempotency.InProgress && e.Owner == "" && !e.Lease.IsZero() && e.Lease.UnixMilli() == 0
	switch mine := e.Owner == r.Owner || s.is(ReleaseAnyOwner) || e.Owner == "" && s.is(OwnerlessIsMine); {
	case !known && s.is(ReleaseMissingRefused):
		return idempotency.ErrClaimLost
	case !known:
		return nil
	case free && s.is(ReleaseTwiceRefused):
		return idempotency.ErrClaimLost
	case free && s.is(AttemptsBackTwice) && r.Unstarted:
		e.Attempts--
		s.entries[key] = e
		return nil
	case free:
		return nil
	case e.Status == idempotency.Completed && mine && s.is(ReleaseCompletedSilent):
		return nil
	case e.Status == idempotency.Completed && (mine && !s.is(ReleaseAnyStatus) || !mine && s.is(ReleaseCompletedOthers)):
		return idempotency.ErrAlreadyCompleted
	case !mine:
		if s.is(ReleaseRefusedChanges) {
			e.Lease = time.UnixMilli(0)
			s.entries[key] = e
		}
		return idempotency.ErrClaimLost
	case !r.CountAttempts:
		delete(s.entries, key)
		return nil
	}
	if !s.is(ReleasedKeepsOwner) {
		e.Owner = ""
	}
	if !s.is(ReleasedKeepsLease) {
		e.Lease = time.UnixMilli(0)
	}
	if r.Unstarted && !s.is(AttemptsNotBack) {
		e.Attempts--
	}
	if s.is(AttemptsRelease) {
		e.Attempts = 0
	}
	s.entries[key] = e
	return nil
}

// Renew implements idempotency.Store.
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	if ctx.Err() != nil {
		return s.contextError(ctx)
	}
	s.lock()
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]
	mine := known && (e.Owner == r.Owner || s.is(RenewAnyOwner) || e.Owner == "" && s.is(OwnerlessIsMine) ||
		s.is(RenewIgnoresOldOwner) && s.former[r.Owner] && e.Owner != "")
	renewed := known && e.Owner == r.NewOwner
	switch {
	case !known && s.is(RenewCreates):
		e = idempotency.Entry{Status: idempotency.InProgress}
	case !mine && !renewed:
		if s.is(RenewRefusedChanges) && known {
			e.Expiry = e.Expiry.Add(time.Hour)
			s.entries[key] = e
		}
		return idempotency.ErrClaimLost
	case e.Status == idempotency.Completed && s.is(RenewCompletedLost):
		return idempotency.ErrClaimLost
	case e.Status == idempotency.Completed && !s.is(RenewAnyStatus):
		return idempotency.ErrAlreadyCompleted
	case renewed && s.is(OwnRenewalUnknown):
		return idempotency.ErrClaimLost
	case renewed:
		return nil
	case s.expired(e, r.Now) && !s.is(RenewExpired):
		return idempotency.ErrClaimLost
	}
	s.pause(RenewNotAtomic)

	e.Status = idempotency.InProgress
	s.former[e.Owner] = true
	if !s.is(RenewKeepsOwner) {
		e.Owner = r.NewOwner
	}
	if !s.is(RenewKeepsLease) {
		e.Lease, e.Expiry = time.UnixMilli(r.Lease.UnixMilli()), time.Unix(r.Expiry.Unix(), 0)
	}
	if s.is(RenewDropsPrint) {
		e.Fingerprint = ""
	}
	if s.is(AttemptsRenew) {
		e.Attempts = 0
	}
	s.entries[key] = e
	return nil
}
