package evidence

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// TestExcuse charges an order twice, under the claims a and b of the invocations 1 and 2.
func TestExcuse(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	lease := start.Add(time.Second)
	for _, test := range []struct {
		name        string
		change      func(e *Evidence)
		ending      lambdatest.Ending
		result      *batch.Result // what became of the first charge's order; nil: nothing any more
		cause       string
		unexplained bool
	}{
		{
			name: "crash", ending: lambdatest.Crashed,
			cause: "a crash fell between charge and completion",
		},
		{
			name: "killed", ending: lambdatest.TimedOut,
			cause: "the function was killed at its timeout, between charge and completion",
		},
		{
			name: "throttled", ending: lambdatest.Answered,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: fmt.Errorf("completion: %w", ErrThrottled)},
			cause:  "the table was throttled and did not take the completion",
		},
		{
			name: "throttled, then a crash", ending: lambdatest.Crashed,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: fmt.Errorf("completion: %w", ErrThrottled)},
			cause:  "the table was throttled and did not take the completion",
		},
		{
			name: "store is gone", ending: lambdatest.Answered,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: errors.New("no route")},
			cause:  "the table did not take the completion (no route)",
		},
		{
			name: "hung", ending: lambdatest.Answered, result: &batch.Result{Outcome: batch.Abandoned},
			cause: "its handler hung after the charge, ignored its context and was given up",
		},
		{
			name: "all was well", ending: lambdatest.Answered, result: &batch.Result{Outcome: batch.Succeeded},
			cause: "UNEXPLAINED: after the charge it was succeeded (<nil>)", unexplained: true,
		},
		{
			name: "a crash after all was well", ending: lambdatest.Crashed, result: &batch.Result{Outcome: batch.Succeeded},
			cause: "UNEXPLAINED: after the charge it was succeeded (<nil>)", unexplained: true,
		},
		{
			name: "nothing happened", ending: lambdatest.Answered,
			cause: "UNEXPLAINED: its invocation answered", unexplained: true,
		},
		{
			name: "a crash, but completed", ending: lambdatest.Crashed,
			change: func(e *Evidence) { e.completed["a"] = true },
			cause:  "UNEXPLAINED: the completion of the first charge was stored", unexplained: true,
		},
		{
			name: "a crash, but the lease holds", ending: lambdatest.Crashed,
			change: func(e *Evidence) { e.claims["b"] = claim{made: lease} },
			cause:  "UNEXPLAINED: the claim of the first charge had not run out", unexplained: true,
		},
		{
			name: "a crash, but nobody claimed", ending: lambdatest.Crashed,
			change: func(e *Evidence) { delete(e.claims, "b") },
			cause:  "UNEXPLAINED: the first charge or the second had no claim", unexplained: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := New("charge")
			e.claims["a"] = claim{made: start, lease: lease}
			e.claims["b"] = claim{made: lease.Add(time.Millisecond)}
			e.InvocationEnded(1, test.ending)
			// What happened to others, or elsewhere, is no excuse.
			e.RecordEnded(Attempt{"order-0002", 1}, batch.Result{Outcome: batch.Abandoned})
			e.RecordEnded(Attempt{"order-0001", 2}, batch.Result{Outcome: batch.Abandoned})
			if test.result != nil {
				e.RecordEnded(Attempt{"order-0001", 1}, *test.result)
			}
			if test.change != nil {
				test.change(e)
			}
			cause, unexplained := e.Excuse(Effect{"order-0001", "a", 1}, Effect{"order-0001", "b", 2})
			if cause != test.cause || unexplained != test.unexplained {
				t.Errorf("cause is %q, unexplained: %v; want %q, %v", cause, unexplained, test.cause, test.unexplained)
			}
		})
	}
}
