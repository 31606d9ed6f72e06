package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settle does what settles the claim, and tells the hooks what became of it. If it succeeds, that is an event of the kind
// succeeded.
func (c *Claim) settle(ctx context.Context, succeeded EventKind, f func() error) error {
	if len(c.guard.options.Hooks) == 0 {
		return f()
	}
	err := errStorePanicked
	defer func() { c.tell(ctx, settleEvent(succeeded, err), err) }()
	err = f()
	return err
}

// trySettle settles the claim with try.
func (c *Claim) trySettle(ctx context.Context, what string, succeeded EventKind, f func() error) error {
	return c.settle(ctx, succeeded, func() error { return c.try(ctx, what, f) })
}

// try calls f up to three times, within a fraction of a second: a store's own client has retried by then, and the batch
// has to answer.
func (c *Claim) try(ctx context.Context, what string, f func() error) error {
	var err error
	for try := range settleTries {
		if try > 0 && !sleep(ctx, settleBackoff<<try) {
			break
		}
		if err = f(); settled(err) {
			break
		}
	}
	return c.settleError(what, err)
}

// What settles a claim, for errors.
const (
	completion = "completion"
	release    = "release"
)

const (
	settleTries   = 3
	settleBackoff = 50 * time.Millisecond // before the first further try it is twice that
)

// settled reports whether another try would change nothing.
func settled(err error) bool {
	return err == nil || errors.Is(err, ErrClaimLost) || errors.Is(err, ErrAlreadyCompleted) ||
		errors.Is(err, ErrResultNotStored) || errors.Is(err, ErrStoreUnusable) || errors.Is(err, ErrTransactionCancelled)
}

func (c *Claim) settleError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idempotency: %s of %q: %w", what, c.name(), err)
}
