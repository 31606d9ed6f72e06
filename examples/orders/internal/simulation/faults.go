package simulation

import (
	"errors"
	"sync"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

var errReplyLost = errors.New("table did not answer")

const (
	throttling = 0.03 // of the store calls are refused
	replyLoss  = 0.02 // of them are applied, but the answer is lost
)

// faults makes store calls fail. Which ones depends on the order and on how many calls of the kind there were about it.
type faults struct {
	draw draw.Seed
	// refused says whether no completion of an order is to be taken at first.
	refused func(id string) bool

	mu        sync.Mutex
	calls     map[string]int
	throttled int
	lost      int
}

// firstCompletion is how often a guard tries to store one completion.
const firstCompletion = 3

// at is sqstest's Options.StoreFault.
func (f *faults) at(p lambdatest.Point) lambdatest.Fault {
	id := orderOf(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[p.Name+id]++
	call := f.calls[p.Name+id]
	fault := lambdatest.Fault{Latency: f.draw.Duration(minStore, maxStore, "latency", p.Name, id, call)}
	switch {
	case p.Name == "Complete" && call <= firstCompletion && f.refused(id),
		f.draw.Chance(throttling, "throttled", p.Name, id, call):
		fault.Err = evidence.ErrThrottled
		f.throttled++
	case f.draw.Chance(replyLoss, "reply lost", p.Name, id, call):
		fault.Err, fault.ReplyLost = errReplyLost, true
		f.lost++
	}
	return fault
}
