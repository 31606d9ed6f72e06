package idempotency

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInProgress means that another worker holds a live claim on the key. The error in the chain that says until
	// when is an *InProgressError.
	ErrInProgress = errors.New("idempotency: key is in progress elsewhere")

	// ErrFingerprintMismatch means that the key was used before with another payload. It is never replayed.
	ErrFingerprintMismatch = errors.New("idempotency: key was used with another payload")

	// ErrClaimLost means that a claim was no longer its owner's when it was to be completed, released or renewed:
	// its lease ran out and another worker took over, or the entry was deleted or expired. Nothing was changed.
	ErrClaimLost = errors.New("idempotency: claim was lost")

	// ErrKeyMissing means that a record has no key: the function that computes it returned "".
	ErrKeyMissing = errors.New("idempotency: key is missing")

	// ErrAlreadyCompleted means that a claim cannot be released or renewed because it is completed.
	ErrAlreadyCompleted = errors.New("idempotency: claim is already completed")

	// ErrResultNotStored means that the work is done and recorded as done, but that its result is not stored, so it
	// cannot be replayed: it was too large, it could not be encoded, or what it was kept in is gone. The error of a replay is
	// a *ResultNotStoredError.
	ErrResultNotStored = errors.New("idempotency: result is not stored")

	// ErrResultInvalid means that the work is done and recorded as done, but that what is stored as its result is not a
	// valid one, so it cannot be replayed: it is of another type, or the store has changed it.
	ErrResultInvalid = errors.New("idempotency: stored result is not valid")

	// ErrStoreFull means that a bounded store has no room for another claim.
	ErrStoreFull = errors.New("idempotency: store is full")

	// ErrStoreUnusable means that the store cannot serve any request of this kind until someone changes its
	// configuration: the table does not exist, access is denied.
	ErrStoreUnusable = errors.New("idempotency: store is unusable")

	// ErrLeaseEnding is the cause with which the context of work ends, a little before the lease of its claim does.
	ErrLeaseEnding = errors.New("idempotency: lease is about to end")

	// ErrLeaseTooShort means that no time was left to start work under a claim, because the lease or the invocation was
	// about to end. The work did not start.
	ErrLeaseTooShort = errors.New("idempotency: no time left to start under the claim")
)

// InProgressError says who stands in the way of a claim. It matches ErrInProgress.
type InProgressError struct {
	// Key is the key as it is stored, without the namespace.
	Key string
	// Lease is when the holder's lease ends, or when its entry expires if it has no lease.
	Lease time.Time
	// Free is the first moment at which the key can be taken over, by time.Now.
	Free time.Time
}

// Error names the key and the end of the lease.
func (e *InProgressError) Error() string {
	return fmt.Sprintf("%v: %q is held until %s", ErrInProgress, e.Key, e.Lease.UTC().Format(time.RFC3339Nano))
}

// Is reports whether target is ErrInProgress.
func (e *InProgressError) Is(target error) bool { return target == ErrInProgress }

// RetryIn returns how long to wait before the next look at the key, the poll-th (from 0), for someone who waits no longer
// than left: 100 milliseconds at first, then ever longer up to two seconds, but no longer than until the key can be taken
// over, and not past the end of left, where the last look is. It returns 0 if that was the last one.
func (e *InProgressError) RetryIn(poll int, left time.Duration) time.Duration {
	delay := min(100*time.Millisecond<<min(max(poll, 0), 5), 2*time.Second)
	if free := time.Until(e.Free); free > 0 {
		delay = min(delay, free)
	}
	return max(min(delay, left), 0)
}
