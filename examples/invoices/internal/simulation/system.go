package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// What happens to a call of the billing system.
const (
	down        = 0.08 // it does not answer
	crashBefore = 0.04 // the function crashes before the invoice is written
	crashAfter  = 0.04 // and after that
)

// errUnknownCustomer is what the system says of one order until it is repaired.
var errUnknownCustomer = errors.New("billing: customer is unknown")

// newOrder returns the ith order. The last one is free, which no code can invoice.
func newOrder(seed draw.Seed, i, orders int) billing.Order {
	o := billing.Order{ID: fmt.Sprintf("order-%04d", i+1), Currency: "EUR"}
	o.Customer = customers[seed.Number(len(customers), "customer", o.ID)]
	if orders == 1 || i < orders-1 {
		o.Amount = int64(100 * (10 + seed.Number(200, "amount", o.ID)))
	}
	return o
}

var customers = []string{"ada", "edsger", "grace", "barbara", "leslie", "donald", "frances", "tony"}

// invoice is one that was written.
type invoice struct {
	order string
	// key and owner are those of the claim that it was written under, and empty without a guard.
	key, owner string
	invocation int
}

func (i invoice) effect() evidence.Effect {
	return evidence.Effect{ID: i.key, Owner: i.owner, Invocation: i.invocation}
}

// system is a billing.System that writes an invoice whenever it is told to, and takes them down.
type system struct {
	draw    draw.Seed
	unknown string // the order whose customer is unknown

	mu       sync.Mutex
	repaired bool
	calls    map[string]int // by order
	errors   int
	invoices []invoice
}

func newSystem(seed draw.Seed, orders int) *system {
	s := &system{draw: seed, calls: make(map[string]int)}
	if orders > 2 {
		s.unknown = newOrder(seed, seed.Number(orders/2, "unknown"), orders).ID
	}
	return s
}

// repair ends all faults, the function's too.
func (s *system) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repaired = true
}

// Invoice implements billing.System. What happens depends on the order and on how often the system was called for it.
func (s *system) Invoice(ctx context.Context, o billing.Order) error {
	s.mu.Lock()
	s.calls[o.ID]++
	call := s.calls[o.ID]
	happens := func(probability float64, what string) bool {
		return !s.repaired && s.draw.Chance(probability, what, o.ID, call)
	}
	var err error
	switch {
	case o.ID == s.unknown && !s.repaired:
		err = errUnknownCustomer
	case happens(down, "down"):
		err = billing.ErrDown
	}
	if err != nil {
		s.errors++
	}
	before, after := happens(crashBefore, "crash before"), happens(crashAfter, "crash after")
	s.mu.Unlock()

	if err != nil {
		return err
	}
	if before {
		lambdatest.Crash(ctx)
	}
	lambdatest.Checkpoint(ctx, "invoice "+o.ID) // what is left of a dead process gets no further
	claim, _ := idempotency.FromContext(ctx)
	s.mu.Lock()
	s.invoices = append(s.invoices, invoice{order: o.ID, key: claim.Key, owner: claim.Owner, invocation: invocationOf(ctx)})
	s.mu.Unlock()
	if after {
		lambdatest.Crash(ctx)
	}
	return nil
}

// all returns the invoices in the order written.
func (s *system) all() []invoice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.invoices)
}

// byOrder returns the invoices of each order.
func (s *system) byOrder() map[string][]invoice {
	orders := make(map[string][]invoice)
	for _, i := range s.all() {
		orders[i.order] = append(orders[i.order], i)
	}
	return orders
}

// failures returns how many calls have failed.
func (s *system) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors
}
