// Package evidence takes down what happens in the examples' simulations, to tell afterwards why an effect was made twice.
package evidence

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// ErrThrottled is what the store of a simulation returns that is throttled.
var ErrThrottled = errors.New("table is throttled")

// Evidence is what was seen to happen. It is safe for concurrent use.
type Evidence struct {
	effect string

	mu        sync.Mutex
	claims    map[string]claim // granted, by owner
	completed map[string]bool  // by owner: the store has the completion
	endings   map[int]lambdatest.Ending
	results   map[Attempt]batch.Result
}

// claim is a claim that the store has granted.
type claim struct{ made, lease time.Time }

// Attempt is one delivery of a record to one invocation.
type Attempt struct {
	ID         string
	Invocation int
}

// Effect is something that was done for the record with the ID, under the claim of Owner, by an invocation.
type Effect struct {
	ID, Owner  string
	Invocation int
}

// New returns empty evidence about effects that are called so, in a word such as "charge".
func New(effect string) *Evidence {
	return &Evidence{
		effect: effect, claims: make(map[string]claim), completed: make(map[string]bool),
		endings: make(map[int]lambdatest.Ending), results: make(map[Attempt]batch.Result),
	}
}

// InvocationEnded takes down how an invocation ended.
func (e *Evidence) InvocationEnded(invocation int, how lambdatest.Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endings[invocation] = how
}

// HasEnded reports whether an invocation has ended.
func (e *Evidence) HasEnded(invocation int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ended := e.endings[invocation]
	return ended
}

// RecordEnded takes down what became of a record in an invocation.
func (e *Evidence) RecordEnded(a Attempt, r batch.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Outcome != batch.Replayed { // of twins, the one that ran
		e.results[a] = r
	}
}

// Store returns the store, seen from behind the faults: what gets there and succeeds has happened. It takes one request in
// a call, whatever inner does: which records share a call depends on which goroutine comes first, and what goes wrong in a
// simulation must not.
func (e *Evidence) Store(inner idempotency.Store) idempotency.Store { return &store{inner, e} }

type store struct {
	idempotency.Store
	evidence *Evidence
}

// Claim implements idempotency.Store.
func (s *store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	result, err := s.Store.Claim(ctx, r)
	if err == nil && result.Claimed {
		s.evidence.mu.Lock()
		defer s.evidence.mu.Unlock()
		s.evidence.claims[r.Owner] = claim{made: r.Now, lease: r.Lease}
	}
	return result, err
}

// Complete implements idempotency.Store.
func (s *store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	err := s.Store.Complete(ctx, r)
	if err == nil {
		s.evidence.mu.Lock()
		defer s.evidence.mu.Unlock()
		s.evidence.completed[r.Owner] = true
	}
	return err
}
