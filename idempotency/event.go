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
// Those of Guard.TellMismatch come without a call of Claim.
type EventKind uint8

const (
	// EventClaimed: the key was free, and the work is the caller's to begin. If it does not begin after all, since the
	// batch's time is over by then or the hooks took too long, EventUnstarted follows.
	EventClaimed EventKind = iota + 1
	// EventTakenOver is EventClaimed for a key whose last claim was neither completed nor released before its lease
	// ended: a worker crashed, or was too slow. Its work may have been done in part, or in full.
	EventTakenOver
	// EventUnprotected: the work begins without a claim, since it has no key and Options.MissingKey wants that, since the
	// guard is disabled, see Options.Disabled, or since Options.FailOpen wants that where the store fails: Err says how
	// then, and is nil otherwise. How the work ends is not told.
	EventUnprotected
	// EventReplayed: the work is done already, and does not run. It is told before the stored result is decoded, and also
	// where that fails, or there is none, or WrapOptions.Replayed returns an error. Event.Owner is empty where
	// Options.LocalCache has saved the call of the store.
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

	// EventRenewed: the claim waited so long for its work to begin that it was made anew, under another owner token.
	EventRenewed

	// EventCompleted: the work is done, and recorded as done, with its result if it has one.
	EventCompleted
	// EventResultNotStored: the work is done and recorded as done, but without its result. Err is ErrResultNotStored.
	EventResultNotStored
	// EventUnrecorded: the work is done, but the store did not say that it has recorded it. It may be done again after
	// the lease. If Err is ErrTransactionUndecided, what it has collected in a transaction may not be stored either.
	EventUnrecorded
	// EventLost: the work is done, but the claim was someone else's by then, or gone: it may have been done twice. Err is
	// ErrClaimLost.
	EventLost
	// EventCancelled: the work has returned, but the transaction that was to store what it had collected, and that it is
	// done, was cancelled. Nothing of it was applied, and its key is free again, unless Err, which matches
	// ErrTransactionCancelled, tells of a release that failed as well.
	EventCancelled
	// EventReleased: the work has failed, and its key is free again.
	EventReleased
	// EventGivenUp: the work has failed for good, and was put elsewhere, such as into a dead-letter queue: see
	// Claim.GiveUp. A source's own key is recorded as done then; a business key is free again.
	EventGivenUp
	// EventUnstarted: the work was not begun under its claim, and its key is free again.
	EventUnstarted
	// EventReleaseFailed: the work has failed, was given up or was not begun, and the store did not say that it has taken
	// that. The key may stay held until its lease ends. Err is ErrClaimLost if it is someone else's already.
	EventReleaseFailed
)

var eventNames = [...]string{
	EventClaimed: "claimed", EventTakenOver: "taken over", EventUnprotected: "unprotected", EventReplayed: "replayed",
	EventInProgress: "in progress", EventMismatch: "mismatch", EventTooLate: "too late", EventClaimFailed: "claim failed",
	EventKeyMissing: "key missing", EventRenewed: "renewed", EventCompleted: "completed", EventResultNotStored: "result not stored",
	EventUnrecorded: "unrecorded", EventLost: "lost", EventCancelled: "cancelled", EventReleased: "released", EventGivenUp: "given up", EventUnstarted: "unstarted",
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
	// Owner is the token of the claim that was made or asked for, the same in all events of one claim, but for
	// EventRenewed, which gives it another one. It is empty where the store was not asked.
	Owner string
	// Attempt is the number of this attempt, from 1, or 0 if nobody counts.
	Attempt int
	// Poll is Request.Poll: how often this work has looked at its key before. To count work that waits once, leave out
	// the events of EventInProgress with Poll above 0, and no others: any other kind is what the wait has come to. So
	// those of EventInProgress with Poll 0, less those of the other kinds up to EventKeyMissing with Poll above 0, are
	// the work that gave up waiting, and that which still waits.
	Poll int
	// Err is the error that the call returned, or that Do has logged, or that work runs in spite of. It is nil where nothing
	// went wrong.
	Err error
}

// Hook is told of all that happens under a guard: by Do, Wrap and the sources, and by whoever calls Guard.Claim.
//
// OnIdempotency is called on the goroutine that does the work, after the store has answered and before the call that asked
// returns. So it must be safe for concurrent use, and quick: one that blocks uses up the lease, and work whose time is over
// when its hooks return does not begin. A panic in it is logged and goes no further. runtime.Goexit is not held back: it
// ends the goroutine that does the work, and leaves a key that was just claimed held until its lease ends.
//
// A hook may use its own guard with its own context, or one derived from it. The guard's hooks are not told of that.
//
// The context is that of the call, with its values. It may have ended; that of a completion or release is one that
// outlives the work's. FromContext does not find the claim in it: the event says what there is to know.
//
// A record that equals another of its batch is no business of the guard's, unless its payload is another, which is told as
// EventMismatch. Neither is one that was refused before it was to be claimed. batch.OnRecordFinished tells of each record.
type Hook interface {
	OnIdempotency(ctx context.Context, e Event)
}

// HookFunc is a function as a Hook.
type HookFunc func(ctx context.Context, e Event)

// OnIdempotency calls f.
func (f HookFunc) OnIdempotency(ctx context.Context, e Event) { f(ctx, e) }

// errStorePanicked is what a hook is told of a store that did not even return an error.
var errStorePanicked = errors.New("idempotency: store panicked")

// insideHook marks the contexts that a guard's hooks get, so that a hook which uses the guard is not told of itself.
type insideHook struct{ guard *Guard }

// tell calls the hooks.
func (c *Claim) tell(ctx context.Context, kind EventKind, err error) {
	if len(c.guard.options.Hooks) == 0 || ctx.Value(insideHook{c.guard}) != nil {
		return
	}
	ctx = context.WithValue(ctx, insideHook{c.guard}, true)
	if kind == EventUnprotected {
		err = c.failed
	}
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

// settleEvent is the kind of a completion or release that returned err, and would have been succeeded without one.
func settleEvent(succeeded EventKind, err error) EventKind {
	switch {
	case err == nil:
		return succeeded
	case succeeded != EventCompleted:
		return EventReleaseFailed
	case errors.Is(err, ErrTransactionCancelled):
		return EventCancelled
	case errors.Is(err, ErrResultNotStored):
		return EventResultNotStored
	case errors.Is(err, ErrClaimLost):
		return EventLost
	default:
		return EventUnrecorded
	}
}
