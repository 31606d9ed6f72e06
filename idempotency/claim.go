package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Claim is a key that is its holder's to work on, or, if Replayed, one whose work is done. It is used by one goroutine.
type Claim struct {
	guard   *Guard
	request Request
	key     string // as stored; empty: the work is unprotected
	owner   string
	attempt int

	claimed  time.Time // by the guard's clock
	lease    time.Time // by the guard's clock
	startBy  time.Time // until when the work should begin, by time.Now
	deadline time.Time // when the work's context ends, by time.Now
	end      time.Time // when the lease ends, by time.Now

	replayed bool
	data     []byte
	failed   error // of the store, in spite of which the work runs unprotected: see Options.FailOpen
	context  claimContext
	work     work
}

// Replayed reports whether the work is done already, and must not be done again.
func (c *Claim) Replayed() bool { return c.replayed }

// Data returns the stored result of replayed work as it is stored, and nil if none is. What Do and Wrap store may be
// another form of a result: see Options.Results.
func (c *Claim) Data() []byte { return c.data }

// Attempt returns the number of this attempt, or 0 if nobody counts.
func (c *Claim) Attempt() int { return c.attempt }

// Deadline returns when the work's context must end, a little before the lease does. It is zero for unprotected work.
func (c *Claim) Deadline() time.Time { return c.deadline }

// name is the key as errors, log lines and hooks show it, which is as it is stored: a key that is stored as a hash is too
// long to be shown, or personal. It is empty for work without a key.
func (c *Claim) name() string { return c.key[min(len(c.key), len(c.guard.namespace)+1):] }

// log writes what no returned error tells. A logger that panics loses its line, and that is all: the work is done.
func (c *Claim) log(ctx context.Context, level slog.Level, message string, attr slog.Attr) {
	defer func() { _ = recover() }()
	logger := c.guard.options.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, level, message, slog.String("key", c.name()), attr)
}

// schedule sets the claim's times. It returns false if none is left.
func (c *Claim) schedule(ctx context.Context) bool {
	if c.guard.marker != nil {
		return c.scheduleUnclaimed(ctx)
	}
	now := time.Now()
	invocation, limited := invocationDeadline(ctx)
	lease := c.guard.options.Lease
	if lease == 0 {
		lease = DefaultLease
		if limited {
			lease = invocation.Sub(now)
		}
		if timeout := c.request.Timeout; timeout > 0 {
			// A second more, to complete in, unless there is no such number.
			if timeout = max(timeout, timeout+time.Second); !limited || timeout < lease {
				lease = timeout
			}
		}
	}
	c.claimed = now
	if c.guard.options.Clock != nil {
		c.claimed = c.guard.options.Clock()
	}
	c.lease = wholeMilliseconds(c.claimed.Add(lease))
	if lease = c.lease.Sub(c.claimed); lease < time.Millisecond {
		return false // too little to end anything before it
	}
	work := lease - margin(lease)
	c.startBy = now.Add(min(work/10, time.Second)).Round(0)
	if limited {
		left := invocation.Sub(now)
		if end := left - margin(left); end <= work {
			work, c.startBy = end, time.Time{} // a later claim would end at the same time
		}
	}
	// Without their monotonic reading, which stands still while Lambda has the process frozen. The lease does not.
	c.deadline, c.end = now.Add(work).Round(0), now.Add(lease).Round(0)
	return work > 0
}

// margin is how long before an end work must stop, to leave time to complete: as long as a batch reserves by default.
func margin(left time.Duration) time.Duration { return min(time.Second, left/10) }

// End returns when the lease ends, by time.Now. Work whose context ends before that needs no other limit. It is zero for
// unprotected work.
func (c *Claim) End() time.Time { return c.end }

// StartBy returns until when the work should begin. Work that begins later has less time than under a new claim, by more
// than asking for one takes: see Guard.RenewAll. It is zero if a new claim would not end later.
func (c *Claim) StartBy() time.Time { return c.startBy }

// open names and schedules the claim. It returns 0 if the store is to be asked, and otherwise what there is to tell.
func (c *Claim) open(ctx context.Context) (EventKind, error) {
	options := &c.guard.options
	c.request.Fingerprint = storedFingerprint(c.request.Fingerprint)
	if options.Disabled {
		return EventUnprotected, nil
	}
	if c.request.Key == "" {
		if options.MissingKey == MissingKeyRunsUnprotected {
			return EventUnprotected, nil
		}
		return EventKeyMissing, ErrKeyMissing
	}
	c.key = storedKey(c.guard.namespace, c.request.Key, options.HashKeys)
	if entry, ok := c.guard.cache.get(c.key, c.guard.now); ok {
		return c.refused(ctx, &entry)
	}
	if !c.schedule(ctx) || ctx.Err() != nil {
		return EventTooLate, c.tooLate(ctx)
	}
	c.owner = c.guard.newOwner()
	return 0, nil
}

// back says whether a claim has to be given back.
type back uint8

const (
	backNot     back = iota
	backQuietly      // it may have been made or not
	backTold         // it was made, and the error of giving it back is of interest
)

// answered judges what the store said to the claim.
func (c *Claim) answered(ctx context.Context, result *ClaimResult, err error) (EventKind, back, error) {
	if err != nil {
		kind := EventClaimFailed
		if !c.inTime(ctx) {
			kind, err = EventTooLate, fmt.Errorf("%w: %w", ErrLeaseTooShort, err)
		}
		if c.guard.marker != nil {
			return kind, backNot, fmt.Errorf("idempotency: read of %q: %w", c.name(), err)
		}
		if errors.Is(err, ErrStoreFull) || errors.Is(err, ErrStoreUnusable) {
			return kind, backNot, fmt.Errorf("idempotency: claim of %q: %w", c.name(), err)
		}
		// The claim may have been made. It is released, so that a redelivery need not wait for the end of its lease. If
		// the release arrives first, the lease ends it.
		return kind, backQuietly, fmt.Errorf("idempotency: claim of %q is undecided: %w", c.name(), err)
	}
	if !result.Claimed {
		kind, err := c.refused(ctx, &result.Entry)
		if kind == EventReplayed {
			c.guard.cache.put(c.key, &result.Entry)
		}
		return kind, backNot, err
	}
	if c.guard.options.CountAttempts {
		c.attempt = result.Entry.Attempts
	}
	if !c.inTime(ctx) {
		// The reply took so long that the batch's time, or the lease, is over. Work begun now would run into the next
		// owner's.
		return EventTooLate, backTold, c.tooLate(ctx)
	}
	c.putOff()
	if result.TookOver {
		return EventTakenOver, backNot, nil
	}
	return EventClaimed, backNot, nil
}

// claim asks the store for the key. Where ctx has no end of its own it waits no longer than the work could last.
func (c *Claim) claim(ctx context.Context) (ClaimResult, error) {
	ctx, cancel := limit(ctx, c.deadline)
	defer cancel()
	if c.guard.marker != nil {
		answer := c.guard.find(ctx, []ClaimRequest{c.claimRequest()})[0]
		return answer.ClaimResult, answer.Err
	}
	return c.guard.store.Claim(ctx, c.claimRequest())
}

// limit returns ctx, but ends it at end if it has no end of its own: no call of the store takes longer than the work could.
// A zero end is none.
func limit(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || end.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end)
}

func (c *Claim) claimRequest() ClaimRequest {
	return ClaimRequest{
		Key: c.key, Owner: c.owner, Fingerprint: c.request.Fingerprint, Now: c.claimed, Lease: c.lease,
		Expiry: c.claimExpiry(), Skew: c.guard.skew, CountAttempts: c.guard.options.CountAttempts,
		AskFirst: c.guard.options.asksFirst(c.request.AskFirst),
	}
}

// inTime reports whether the work may begin.
func (c *Claim) inTime(ctx context.Context) bool {
	return ctx.Err() == nil && (c.deadline.IsZero() || time.Now().Before(c.deadline))
}

// tooLate is the error of a claim whose work may not begin.
func (c *Claim) tooLate(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %q: %w", ErrLeaseTooShort, c.name(), cause)
	}
	return fmt.Errorf("%w: %q", ErrLeaseTooShort, c.name())
}

// claimExpiry is when the claim's entry may be deleted. It is later than the lease, so that neither an expiry test nor
// DynamoDB's TTL can end a live claim.
func (c *Claim) claimExpiry() time.Time {
	end := c.lease.Add(c.guard.skew)
	if expiry := c.claimed.Add(c.expiry()); expiry.After(end) {
		end = expiry
	}
	return ceilSecond(end.Add(time.Millisecond))
}

func (c *Claim) expiry() time.Duration {
	switch {
	case c.guard.options.Expiry > 0:
		return c.guard.options.Expiry
	case c.request.Expiry > 0:
		return c.request.Expiry
	default:
		return DefaultExpiry
	}
}

// ceilSecond rounds up, as stores keep whole seconds. Time.Truncate would do, for ten times as much work.
func ceilSecond(t time.Time) time.Time {
	if fraction := time.Duration(t.Nanosecond()); fraction > 0 {
		return t.Round(0).Add(time.Second - fraction)
	}
	return t
}

// refused decides what the entry means that stands in the way of the claim.
func (c *Claim) refused(ctx context.Context, entry *Entry) (EventKind, error) {
	if entry.Fingerprint != "" && c.request.Fingerprint != "" && entry.Fingerprint != c.request.Fingerprint {
		return EventMismatch, fmt.Errorf("%w: %q", ErrFingerprintMismatch, c.name())
	}
	switch entry.Status {
	case Completed:
		c.replayed, c.data = true, entry.Data
		c.guard.foreign(ctx, c, entry.Owner)
		return EventReplayed, nil
	case InProgress:
		// Both limits are strict, the one in milliseconds, the other in seconds.
		free := entry.Lease.Add(c.guard.skew + time.Millisecond)
		held := &InProgressError{Key: c.name(), Lease: entry.Lease}
		if entry.Lease.IsZero() {
			held.Lease, free = entry.Expiry, entry.Expiry.Add(time.Second)
		}
		now := time.Now()
		held.Free = now.Add(max(free.Sub(c.guard.now()), 0))
		return EventInProgress, held
	default:
		return EventClaimFailed, fmt.Errorf("idempotency: claim of %q was refused by an entry that is %v, want %v or %v",
			c.name(), entry.Status, InProgress, Completed)
	}
}

// Complete records the work as done, with data as its result (nil: none), for callers to come. It is called after the
// work has succeeded, and by the goroutine that did it. A completion that fails is tried again, briefly.
//
// It returns nil for unprotected work; ErrResultNotStored if the work is recorded as done without its result;
// ErrClaimLost if the claim is someone else's by now, so that the work may be done twice; any other error if it is open
// whether the completion was stored. In no case may the claim be released then.
//
// If the work has collected writes in a transaction, see TransactionFrom, they are stored with the completion. Then it
// returns an error as well if the work is not done, or may not be: ErrTransactionCancelled, in which case it has released
// the claim, and ErrTransactionUndecided.
//
// The context is one of Detach's, or another that outlives the work's.
func (c *Claim) Complete(ctx context.Context, data []byte) error {
	return c.complete(ctx, EventCompleted, data, nil)
}

// complete is Complete. If the completion is stored, it returns notStored, which says why data is missing.
func (c *Claim) complete(ctx context.Context, succeeded EventKind, data []byte, notStored error) error {
	if c.key == "" {
		return nil
	}
	t := c.work.end()
	if t != nil && succeeded == EventCompleted {
		return c.settle(ctx, succeeded, func() error { return c.commit(ctx, t, data, notStored) })
	}
	request := c.completeRequest(c.guard.now(), data)
	return c.trySettle(ctx, completion, succeeded, func() error {
		err := c.completeOnce(ctx, request)
		if err == nil {
			err = notStored
		}
		return err
	})
}

func (c *Claim) completeOnce(ctx context.Context, r CompleteRequest) error {
	if c.guard.marker != nil {
		return c.guard.mark(ctx, []*Claim{c}, []CompleteRequest{r})[0]
	}
	err := c.guard.store.Complete(ctx, r)
	if err == nil {
		c.remember(&r)
	}
	return err
}

// completeRequest returns the request for a completion at now. A further try says the same moment: if the first one was
// stored, that is when the key expires.
func (c *Claim) completeRequest(now time.Time, data []byte) CompleteRequest {
	return CompleteRequest{Key: c.key, Owner: c.owner, Now: now, Expiry: ceilSecond(now.Add(c.expiry())), Data: data}
}

// Release gives the claim back after the work has failed, so that it can be tried again at once. Like Complete it is
// called by the goroutine that did the work, with a context that outlives it, and tried again, briefly, if it fails. It
// returns ErrClaimLost if the claim is someone else's by now, and ErrAlreadyCompleted if the work was completed under it.
func (c *Claim) Release(ctx context.Context) error { return c.settleRelease(ctx, EventReleased) }

// ReleaseUnstarted is Release for work that was never begun. It is not counted as an attempt.
func (c *Claim) ReleaseUnstarted(ctx context.Context) error {
	return c.settleRelease(ctx, EventUnstarted)
}

// GiveUp settles the claim of work that has failed for good and was put elsewhere, such as into a dead-letter queue. If
// done is true it does as Complete does, so that the work is not tried again under its key. Otherwise it does as Release
// does, so that it can be tried again from where it was put. Its errors are theirs.
func (c *Claim) GiveUp(ctx context.Context, done bool) error {
	if done {
		return c.complete(ctx, EventGivenUp, nil, nil)
	}
	return c.settleRelease(ctx, EventGivenUp)
}

func (c *Claim) settleRelease(ctx context.Context, released EventKind) error {
	if c.key == "" {
		return nil
	}
	_ = c.work.end()
	return c.trySettle(ctx, release, released, func() error { return c.release(ctx, released == EventUnstarted) })
}

func (c *Claim) release(ctx context.Context, unstarted bool) error {
	if c.guard.marker != nil {
		return nil // nothing was claimed
	}
	return c.guard.store.Release(ctx, c.releaseRequest(unstarted))
}

func (c *Claim) releaseRequest(unstarted bool) ReleaseRequest {
	return ReleaseRequest{
		Key: c.key, Owner: c.owner, Now: c.guard.now(),
		CountAttempts: c.guard.options.CountAttempts, Unstarted: unstarted,
	}
}

// giveBack releases a claim that was not begun, once, on a context of its own.
func (c *Claim) giveBack(ctx context.Context) error {
	// Two seconds, and not until the end of the invocation: the lease ends the claim in any case, and a store that hangs
	// must not hold a worker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFloor)
	defer cancel()
	if err := c.release(ctx, true); err != nil && !errors.Is(err, ErrClaimLost) { // lost: it is given back already
		return fmt.Errorf("idempotency: release of %q: %w", c.name(), err)
	}
	return nil
}
