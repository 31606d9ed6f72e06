package idempotency

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// failOpen makes unprotected work of a claim that the store could not decide, if the guard's options want that. It is
// called after the claim was given back, in case it was made after all, which may have taken the time that was left.
func (c *Claim) failOpen(ctx context.Context, kind EventKind, err error) (EventKind, error) {
	if kind != EventClaimFailed || !c.guard.options.FailOpen {
		return kind, err
	}
	if !c.inTime(ctx) {
		return EventTooLate, fmt.Errorf("%w: %w", ErrLeaseTooShort, err)
	}
	c.guard.openWarning.Do(func() {
		c.log(ctx, slog.LevelWarn, "idempotency store has failed: work runs unprotected", slog.String("error", err.Error()))
	})
	c.key, c.owner, c.failed = "", "", err
	c.claimed, c.lease, c.startBy, c.deadline, c.end = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return EventUnprotected, nil
}
