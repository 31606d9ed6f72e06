package simulation

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// TestExplain charges an order twice, under the claims a and b of the invocations 1 and 2.
func TestExplain(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	lease := start.Add(time.Second)
	for _, test := range []struct {
		name        string
		change      func(e *evidence)
		ending      sqstest.Ending
		result      *batch.Result // what became of the first charge's order; nil: nothing any more
		cause       string
		unexplained bool
	}{
		{
			name: "crash", ending: sqstest.Crashed,
			cause: "a crash fell between charge and completion",
		},
		{
			name: "killed", ending: sqstest.TimedOut,
			cause: "the function was killed at its timeout, between charge and completion",
		},
		{
			name: "throttled", ending: sqstest.Answered,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: fmt.Errorf("completion: %w", errThrottled)},
			cause:  "the table was throttled and did not take the completion",
		},
		{
			name: "throttled, then a crash", ending: sqstest.Crashed,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: fmt.Errorf("completion: %w", errThrottled)},
			cause:  "the table was throttled and did not take the completion",
		},
		{
			name: "store is gone", ending: sqstest.Answered,
			result: &batch.Result{Outcome: batch.Succeeded, Unrecorded: true, Err: errors.New("no route")},
			cause:  "the table did not take the completion (no route)",
		},
		{
			name: "hung", ending: sqstest.Answered, result: &batch.Result{Outcome: batch.Abandoned},
			cause: "its handler hung after the charge, ignored its context and was given up",
		},
		{
			name: "all was well", ending: sqstest.Answered, result: &batch.Result{Outcome: batch.Succeeded},
			cause: "UNEXPLAINED: after the charge it was succeeded (<nil>)", unexplained: true,
		},
		{
			name: "a crash after all was well", ending: sqstest.Crashed, result: &batch.Result{Outcome: batch.Succeeded},
			cause: "UNEXPLAINED: after the charge it was succeeded (<nil>)", unexplained: true,
		},
		{
			name: "nothing happened", ending: sqstest.Answered,
			cause: "UNEXPLAINED: its invocation answered", unexplained: true,
		},
		{
			name: "a crash, but completed", ending: sqstest.Crashed,
			change: func(e *evidence) { e.completed["a"] = true },
			cause:  "UNEXPLAINED: the completion of the first charge was stored", unexplained: true,
		},
		{
			name: "a crash, but the lease holds", ending: sqstest.Crashed,
			change: func(e *evidence) { e.claims["b"] = claim{made: lease} },
			cause:  "UNEXPLAINED: the claim of the first charge had not run out", unexplained: true,
		},
		{
			name: "a crash, but nobody claimed", ending: sqstest.Crashed,
			change: func(e *evidence) { delete(e.claims, "b") },
			cause:  "UNEXPLAINED: it was charged without a claim", unexplained: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEvidence()
			e.claims["a"] = claim{made: start, lease: lease}
			e.claims["b"] = claim{made: lease.Add(time.Millisecond)}
			e.delivered(sqstest.Delivery{Invocation: 1, Ending: test.ending})
			// What happened to others, or elsewhere, is no excuse.
			e.finished(attempt{"order-0002", 1}, batch.Result{Outcome: batch.Abandoned})
			e.finished(attempt{"order-0001", 2}, batch.Result{Outcome: batch.Abandoned})
			if test.result != nil {
				e.finished(attempt{"order-0001", 1}, *test.result)
			}
			if test.change != nil {
				test.change(e)
			}
			got := e.explain(
				charge{order: "order-0001", owner: "a", invocation: 1},
				charge{order: "order-0001", owner: "b", invocation: 2})
			want := Repeat{Order: "order-0001", First: 1, Again: 2, Cause: test.cause, Unexplained: test.unexplained}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("repeat (-want +got):\n%s", diff)
			}
		})
	}
}
