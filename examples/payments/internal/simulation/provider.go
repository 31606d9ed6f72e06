package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/payments/bank"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

var errBankDown = errors.New("bank did not answer")

// charge is one that the bank has made.
type charge struct {
	bank.Charge
	evidence.Effect
}

// provider is the bank. It charges as often as it is asked to.
type provider struct {
	customers map[string]*customer // by card

	mu     sync.Mutex
	calls  map[string]int // of a card
	ledger []charge       // the receipt's number is the index
}

// Charge implements bank.Provider.
func (p *provider) Charge(ctx context.Context, c bank.Charge) (string, error) {
	customer := p.customers[c.Card]
	p.mu.Lock()
	p.calls[c.Card]++
	first := p.calls[c.Card] == 1
	p.mu.Unlock()
	switch t := customer.trouble; {
	case t.declines:
		return "", bank.ErrDeclined
	case t.bankDown && first:
		return "", errBankDown
	case t.bankIdle && first:
		if err := customer.gate.pass(ctx); err != nil {
			return "", err
		}
	}
	lambdatest.Checkpoint(ctx, beforeCharge)
	receipt := p.write(ctx, customer.name, c)
	lambdatest.Checkpoint(ctx, afterCharge)
	return receipt, nil
}

func (p *provider) write(ctx context.Context, payment string, c bank.Charge) (receipt string) {
	claim, _ := idempotency.FromContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger = append(p.ledger, charge{c, evidence.Effect{ID: payment, Owner: claim.Owner, Invocation: invocationOf(ctx)}})
	return fmt.Sprint("receipt-", len(p.ledger))
}

// has reports whether the bank has made a charge of the amount under the receipt.
func (p *provider) has(receipt, card string, amount int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(receipt, "receipt-%d", &n); err != nil || n < 1 || n > len(p.ledger) {
		return false
	}
	c := p.ledger[n-1]
	return c.Card == card && c.Amount == amount
}

// gate keeps a call of the bank waiting.
type gate struct{ reached, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// pass says that a call has reached the gate, and waits until it is open.
func (g gate) pass(ctx context.Context) error {
	close(g.reached)
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
