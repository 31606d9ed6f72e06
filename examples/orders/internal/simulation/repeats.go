package simulation

import (
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// Repeat is an order that was charged once more.
type Repeat struct {
	Order string
	// First and Again are the invocations that charged it.
	First, Again int
	// Cause is what the first charge lacked, so that nobody could know of it: never more than what was seen to happen.
	Cause string
	// Unexplained is whether the guard had no excuse.
	Unexplained bool
}

// String names the order, the cause and the invocations.
func (r Repeat) String() string {
	return fmt.Sprintf("%s: %s (charged by invocation %d, and again by %d)", r.Order, r.Cause, r.First, r.Again)
}

// explain finds out why an order that was charged by the first was charged again.
//
// There is no excuse if the completion of the first charge was stored, or if the second one was made while the first
// one's claim was good. Otherwise the first charge must have been kept from being completed by something that was seen
// to happen to just this order in just this invocation.
func (e *evidence) explain(first, again charge) Repeat {
	r := Repeat{Order: first.order, First: first.invocation, Again: again.invocation}
	r.Cause, r.Unexplained = e.excuse(first, again)
	return r
}

func (e *evidence) excuse(first, again charge) (cause string, unexplained bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	claim, claimed := e.claims[first.owner]
	next, claimedAgain := e.claims[again.owner]
	switch {
	case !claimed || !claimedAgain:
		return "UNEXPLAINED: it was charged without a claim", true
	case e.completed[first.owner]:
		return "UNEXPLAINED: the completion of the first charge was stored", true
	case !next.made.After(claim.lease):
		return "UNEXPLAINED: the claim of the first charge had not run out", true
	}
	result, ended := e.results[attempt{first.order, first.invocation}]
	switch how := e.deliveries[first.invocation].Ending; {
	case ended && result.Unrecorded && errors.Is(result.Err, errThrottled):
		return "the table was throttled and did not take the completion", false
	case ended && result.Unrecorded:
		return fmt.Sprintf("the table did not take the completion (%v)", result.Err), false
	case ended && result.Outcome == batch.Abandoned:
		return "its handler hung after the charge, ignored its context and was given up", false
	case ended:
		return fmt.Sprintf("UNEXPLAINED: after the charge it was %v (%v)", result.Outcome, result.Err), true
	case how == sqstest.Crashed:
		return "a crash fell between charge and completion", false
	case how == sqstest.TimedOut:
		return "the function was killed at its timeout, between charge and completion", false
	default:
		return fmt.Sprintf("UNEXPLAINED: its invocation %v", how), true
	}
}
