package idempotency

import (
	"context"
	"errors"
	"log/slog"
)

// EventKind is what has happened to a key.
//
// Each call of Guard.Claim is one of the kinds from EventClaimed to EventKeyMissing. Each claim that EventClaimed or
// EventTakenOver told of ends as one of the others, from EventCompleted on, unless its worker dies or never settles it.
type EventKind uint8

const (
	// EventClaimed: the key was free, and the work is the caller's. The work begins.
	EventClaimed EventKind = iota + 1
	// EventTakenOver is EventClaimed for a key whose last claim was neither completed nor released before its lease
	// ended: a worker crashed, or was too slow. Its work may have been done in part, or in full.
	EventTakenOver
	// EventUnprotected: the work has no key, and begins without a claim, as Options.MissingKey wants. How it ends is not
	// told.
	EventUnprotected
	// EventReplayed: the work is done already, and does not run.
	EventReplayed
	// EventInProgress: another worker holds the key. Err is an *InProgressError. Work that waits for the key looks at it
	// again and again, and each look is an event of its own: see Event.Poll.
	EventInProgress
	// EventMismatch: the key was used with another payload. Err is ErrFingerprintMismatch.
	EventMismatch
	// EventTooLate: no time was left to begin the work. Err is ErrLeaseTooShort, and the store's error beside it where the
	// time ended in a call of the store.
	EventTooLate
	// EventClaimFailed: the store did not say whether the claim was made, or can take none: ErrStoreFull,
	// ErrStoreUnusable. The work does not run.
	EventClaimFailed
	// EventKeyMissing: the work has no key, and does not run. Err is ErrKeyMissing.
	EventKeyMissing

	// EventCompleted: the work is done, and recorded as done, with its result if it has one.
	EventCompleted
	// EventResultNotStored: the work is done and recorded as done, but without its result. Err is ErrResultNotStored.
	EventResultNotStored
	// EventUnrecorded: the work is done, but the store did not say that it has recorded it. It may be done again after
	// the lease.
	EventUnrecorded
	// EventLost: the work is done, but the claim was someone else's by then, or gone: it may have been done twice. Err is
	// ErrClaimLost.
	EventLost
	// EventReleased: the work has failed, or was given up, and its key is free again.
	EventReleased
	// EventUnstarted: the work was not begun under its claim, and its key is free again.
	EventUnstarted
	// EventReleaseFailed: the work has failed or was not begun, and the store did not take the release. The key may stay
	// held until its lease ends. Err is ErrClaimLost if it is someone else's already.
	EventReleaseFailed
)

var eventNames = [...]string{
	EventClaimed: "claimed", EventTakenOver: "taken over", EventUnprotected: "unprotected", EventReplayed: "replayed",
	EventInProgress: "in progress", EventMismatch: "mismatch", EventTooLate: "too late", EventClaimFailed: "claim failed",
	EventKeyMissing: "key missing", EventCompleted: "completed", EventResultNotStored: "result not stored",
	EventUnrecorded: "unrecorded", EventLost: "lost", EventReleased: "released", EventUnstarted: "unstarted",
	EventReleaseFailed: "release failed",
}

// String returns the name of the kind in lower case, such as "taken over".
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return "unknown"
}

// Event is what has happened to a key.
type Event struct {
	Kind EventKind
	// Namespace is the guard's. Key is the key within it as it is stored, so it is a hash where Options.HashKeys asks for
	// one. It is empty for EventUnprotected and EventKeyMissing.
	Namespace, Key string
	// Owner is the token of the claim that was made or asked for, the same in all events of one claim. It is empty where
	// the store was not asked.
	Owner string
	// Attempt is the number of this attempt, from 1, or 0 if nobody counts.
	Attempt int
	// Poll is Request.Poll: how often this work has looked at its key before. Work that waits is counted once by counting
	// the events with Poll 0.
	Poll int
	// Err is the error that the call returned, or that Do has logged. It is nil where nothing went wrong.
	Err error
}

// Hook is told of all that happens under a guard: by Do, Wrap and the sources, and by whoever calls Guard.Claim.
//
// OnIdempotency is called on the goroutine that does the work, after the store has answered and before the call that asked
// returns. So it is safe for concurrent use, and quick: one that blocks uses up the lease. A panic in it is logged and goes
// no further.
//
// The context is that of the call, with its values. It may have ended; that of a completion or release is one that
// outlives the work's. FromContext does not find the claim in it: the event says what there is to know.
//
// A record that equals another of its batch is no business of the guard's, and neither is one that was refused before it
// was to be claimed; batch.OnRecordFinished tells of each record.
type Hook interface {
	OnIdempotency(ctx context.Context, e Event)
}

// HookFunc is a function as a Hook.
type HookFunc func(ctx context.Context, e Event)

// OnIdempotency calls f.
func (f HookFunc) OnIdempotency(ctx context.Context, e Event) { f(ctx, e) }

// errStorePanicked is what a hook is told of a store that did not even return an error.
var errStorePanicked = errors.New("idempotency: store panicked")

// tell calls the hooks.
func (c *Claim) tell(ctx context.Context, kind EventKind, err error) {
	e := Event{
		Kind: kind, Namespace: c.guard.namespace, Key: c.name(), Owner: c.owner,
		Attempt: c.attempt, Poll: c.request.Poll, Err: err,
	}
	for _, hook := range c.guard.options.Hooks {
		c.call(ctx, hook, e)
	}
}

func (c *Claim) call(ctx context.Context, hook Hook, e Event) {
	defer func() {
		if value := recover(); value != nil {
			c.log(ctx, slog.LevelError, "idempotency hook panicked", slog.Any("panic", value))
		}
	}()
	hook.OnIdempotency(ctx, e)
}

// claimEvent is the kind of a call of Guard.Claim that returned err.
func (c *Claim) claimEvent(err error) EventKind {
	switch {
	case err == nil && c.replayed:
		return EventReplayed
	case err == nil && c.key == "":
		return EventUnprotected
	case err == nil && c.tookOver:
		return EventTakenOver
	case err == nil:
		return EventClaimed
	case c.key == "":
		return EventKeyMissing
	case errors.Is(err, ErrLeaseTooShort): // first: the store's error, or the context's cause, is beside it
		return EventTooLate
	case errors.Is(err, ErrInProgress):
		return EventInProgress
	case errors.Is(err, ErrFingerprintMismatch):
		return EventMismatch
	default:
		return EventClaimFailed
	}
}

// settleEvent is the kind of a completion or release that returned err, and would have been succeeded without one.
func settleEvent(succeeded EventKind, err error) EventKind {
	switch {
	case err == nil:
		return succeeded
	case succeeded != EventCompleted:
		return EventReleaseFailed
	case errors.Is(err, ErrResultNotStored):
		return EventResultNotStored
	case errors.Is(err, ErrClaimLost):
		return EventLost
	default:
		return EventUnrecorded
	}
}
