package simulation

import (
	"cmp"
	"slices"
	"sync"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// account counts what happens to clicks, and takes down why something is repeated.
type account struct {
	*evidence.Evidence

	mu         sync.Mutex
	deliveries map[evidence.Attempt]bool
	accounted  map[evidence.Attempt]bool // that ran, or were replays
	counts     totals
}

// totals are the counts of an account.
type totals struct{ deliveries, runs, replays int }

func newAccount() *account {
	return &account{
		Evidence:   evidence.New("append"),
		deliveries: make(map[evidence.Attempt]bool), accounted: make(map[evidence.Attempt]bool),
	}
}

// delivered takes down that an invocation has ended that clicks were delivered to.
func (a *account) delivered(invocation int, how lambdatest.Ending, ids []string) {
	a.InvocationEnded(invocation, how)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.deliveries += len(ids)
	for _, id := range ids {
		a.deliveries[evidence.Attempt{ID: id, Invocation: invocation}] = true
	}
}

// ran takes down that the handler was called for a click.
func (a *account) ran(at evidence.Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.runs++
	a.accounted[at] = true
}

// finished takes down what became of a click in an invocation.
func (a *account) finished(at evidence.Attempt, r batch.Result) {
	a.RecordEnded(at, r)
	if r.Outcome != batch.Replayed {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.replays++
	a.accounted[at] = true
}

func (a *account) totals() totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts
}

// notRun returns how many deliveries neither ran nor were replays.
func (a *account) notRun() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for at := range a.deliveries {
		if !a.accounted[at] {
			n++
		}
	}
	return n
}

// explain finds out why a click was appended again.
func (a *account) explain(r repeat) Repeat {
	effect := func(of appended) evidence.Effect {
		return evidence.Effect{ID: of.click.ID, Owner: of.owner, Invocation: of.invocation.number}
	}
	explained := Repeat{
		Click: r.again.click.ID, Visitor: r.again.click.Visitor, Shard: r.again.invocation.shard,
		First: r.first.invocation.delivery, Again: r.again.invocation.delivery,
	}
	explained.Cause, explained.Unexplained = a.Excuse(effect(r.first), effect(r.again))
	return explained
}

// sortRepeats puts repeats in an order that does not depend on which shard was faster.
func sortRepeats(repeats []Repeat) {
	slices.SortStableFunc(repeats, func(a, b Repeat) int {
		return cmp.Or(cmp.Compare(a.Click, b.Click), cmp.Compare(a.Again, b.Again))
	})
}
