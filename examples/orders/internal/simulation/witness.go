package simulation

import (
	"sync"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// witness takes down what happens, to tell afterwards why something was repeated.
type witness struct {
	*evidence.Evidence

	mu         sync.Mutex
	deliveries map[int]sqstest.Delivery
	counts     map[batch.Outcome]int
	failures   map[string]error // by order: the last one
	// accounted is how many deliveries of an order to an invocation ran, were replayed or were in progress elsewhere.
	accounted map[evidence.Attempt]int
}

func newWitness() *witness {
	return &witness{
		Evidence: evidence.New("charge"), deliveries: make(map[int]sqstest.Delivery), counts: make(map[batch.Outcome]int),
		failures: make(map[string]error), accounted: make(map[evidence.Attempt]int),
	}
}

// delivered takes down how an invocation ended.
func (w *witness) delivered(d sqstest.Delivery) {
	w.InvocationEnded(d.Invocation, d.Ending)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliveries[d.Invocation] = d
}

// ran takes down that the handler was called for an order.
func (w *witness) ran(a evidence.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accounted[a]++
}

// unreached returns how many deliveries neither ran nor were replayed or in progress elsewhere, given the order of each
// message.
func (w *witness) unreached(orderOf map[string]string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	copies := make(map[evidence.Attempt]int)
	for _, d := range w.deliveries {
		for _, m := range d.Messages {
			copies[evidence.Attempt{ID: orderOf[m.MessageId], Invocation: d.Invocation}]++
		}
	}
	n := 0
	for a, delivered := range copies {
		n += max(0, delivered-w.accounted[a])
	}
	return n
}

// finished takes down what became of an order in an invocation.
func (w *witness) finished(a evidence.Attempt, r batch.Result) {
	w.RecordEnded(a, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[r.Outcome]++
	if r.Outcome == batch.Replayed || r.Outcome == batch.InProgress {
		w.accounted[a]++
	}
	if r.Err != nil {
		w.failures[a.ID] = r.Err
	}
}

// explain finds out why an order that was charged by the first was charged again.
func (w *witness) explain(first, again charge) Repeat {
	r := Repeat{Order: first.order, First: first.invocation, Again: again.invocation}
	r.Cause, r.Unexplained = w.Excuse(first.effect(), again.effect())
	return r
}

func (c *charge) effect() evidence.Effect {
	return evidence.Effect{ID: c.order, Owner: c.owner, Invocation: c.invocation}
}
