package evidence

import (
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Excuse finds out why the first effect was made again. The cause is what the first one lacked, so that nobody could know
// of it: never more than what was seen to happen.
//
// There is no excuse if the completion of the first effect was stored, or if the second one was made while the first
// one's claim was good. Otherwise the first effect must have been kept from being completed by something that was seen to
// happen to just this record in just this invocation.
func (e *Evidence) Excuse(first, again Effect) (cause string, unexplained bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	claim, claimed := e.claims[first.Owner]
	next, claimedAgain := e.claims[again.Owner]
	switch {
	case !claimed || !claimedAgain:
		return fmt.Sprintf("UNEXPLAINED: the first %s or the second had no claim", e.effect), true
	case e.completed[first.Owner]:
		return fmt.Sprintf("UNEXPLAINED: the completion of the first %s was stored", e.effect), true
	case !next.made.After(claim.lease):
		return fmt.Sprintf("UNEXPLAINED: the claim of the first %s had not run out", e.effect), true
	}
	result, ended := e.results[Attempt{first.ID, first.Invocation}]
	switch how := e.endings[first.Invocation]; {
	case ended && result.Unrecorded && errors.Is(result.Err, ErrThrottled):
		return "the table was throttled and did not take the completion", false
	case ended && result.Unrecorded:
		return fmt.Sprintf("the table did not take the completion (%v)", result.Err), false
	case ended && result.Outcome == batch.Abandoned:
		return fmt.Sprintf("its handler hung after the %s, ignored its context and was given up", e.effect), false
	case ended:
		return fmt.Sprintf("UNEXPLAINED: after the %s it was %v (%v)", e.effect, result.Outcome, result.Err), true
	case how == lambdatest.Crashed:
		return fmt.Sprintf("a crash fell between %s and completion", e.effect), false
	case how == lambdatest.TimedOut:
		return fmt.Sprintf("the function was killed at its timeout, between %s and completion", e.effect), false
	default:
		return fmt.Sprintf("UNEXPLAINED: its invocation %v", how), true
	}
}
