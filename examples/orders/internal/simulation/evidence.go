package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// evidence is what was seen to happen, to tell afterwards why something was repeated.
type evidence struct {
	mu         sync.Mutex
	claims     map[string]claim // granted, by owner
	completed  map[string]bool  // by owner: the store has the completion
	deliveries map[int]sqstest.Delivery
	results    map[attempt]batch.Result
	counts     map[batch.Outcome]int
	failures   map[string]error // by order: the last one
	// accounted is how many deliveries of an order to an invocation ran, were replayed or were in progress elsewhere.
	accounted map[attempt]int
}

// claim is a claim that the store has granted.
type claim struct{ made, lease time.Time }

// attempt is one delivery of an order to one invocation.
type attempt struct {
	order      string
	invocation int
}

func newEvidence() *evidence {
	return &evidence{
		claims: make(map[string]claim), completed: make(map[string]bool), deliveries: make(map[int]sqstest.Delivery),
		results: make(map[attempt]batch.Result), counts: make(map[batch.Outcome]int), failures: make(map[string]error),
		accounted: make(map[attempt]int),
	}
}

// delivered takes down how an invocation ended.
func (e *evidence) delivered(d sqstest.Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliveries[d.Invocation] = d
}

// ran takes down that the handler was called for an order.
func (e *evidence) ran(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accounted[a]++
}

// unreached returns how many deliveries neither ran nor were replayed or in progress elsewhere, given the order of each
// message.
func (e *evidence) unreached(orderOf map[string]string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	copies := make(map[attempt]int)
	for _, d := range e.deliveries {
		for _, m := range d.Messages {
			copies[attempt{orderOf[m.MessageId], d.Invocation}]++
		}
	}
	n := 0
	for a, delivered := range copies {
		n += max(0, delivered-e.accounted[a])
	}
	return n
}

// ended reports whether an invocation has ended.
func (e *evidence) ended(invocation int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ended := e.deliveries[invocation]
	return ended
}

// finished takes down what became of an order in an invocation.
func (e *evidence) finished(a attempt, r batch.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[r.Outcome]++
	if r.Outcome == batch.Replayed || r.Outcome == batch.InProgress {
		e.accounted[a]++
	}
	if r.Err != nil {
		e.failures[a.order] = r.Err
	}
	if r.Outcome != batch.Replayed { // of twins, the one that ran
		e.results[a] = r
	}
}

// store is the function's store, seen from behind the faults: what gets here and succeeds has happened.
type store struct {
	idempotency.Store
	evidence *evidence
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
