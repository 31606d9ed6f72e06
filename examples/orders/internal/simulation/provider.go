package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/pause"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// outage is how many charges the provider refuses for now.
const outage = 0.03

var (
	errUnavailable = errors.New("provider is unavailable")
	errHung        = errors.New("provider closed the connection")
)

// charge is one line of the ledger: money has moved.
type charge struct {
	order      string
	owner      string // of the claim it was made under; "": there is no guard
	invocation int
	at         time.Time
}

// provider is the payment provider of the run. Its ledger is the truth about what was charged. It knows no idempotency
// keys, so what it is asked twice it does twice.
type provider struct {
	draw draw.Seed
	fate func(id string) fate
	// hangs is told of an order whose handler hangs from now on.
	hangs func(id string)
	// closed lets the handlers that hang go, after the run.
	closed chan struct{}

	mu     sync.Mutex
	calls  map[string]int
	ledger []charge
}

// Charge implements shop.Provider.
func (p *provider) Charge(ctx context.Context, o shop.Order) error {
	p.mu.Lock()
	p.calls[o.ID]++
	call := p.calls[o.ID]
	p.mu.Unlock()

	if o.Card == shop.CardDeclined {
		return shop.ErrDeclined
	}
	if p.draw.Chance(outage, "outage", o.ID, call) {
		return errUnavailable
	}
	if err := pause.For(ctx, p.draw.Duration(minCharge, maxCharge, "charge", o.ID, call)); err != nil {
		return fmt.Errorf("charge: %w", err)
	}
	hangs := call == 1 && p.fate(o.ID) == hung
	charged := !hangs || p.draw.Chance(0.5, "charged before it hangs", o.ID)
	if charged {
		// Two points to crash at. The first also keeps what is left of a dead process from charging anyone, since Go
		// cannot kill its goroutines.
		lambdatest.Checkpoint(ctx, "charge "+o.ID)
		p.record(ctx, o.ID)
		lambdatest.Checkpoint(ctx, "charged "+o.ID)
	}
	if hangs {
		p.hangs(o.ID)
		<-p.closed // and not ctx.Done
		return errHung
	}
	return nil
}

func (p *provider) record(ctx context.Context, id string) {
	claim, _ := idempotency.FromContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger = append(p.ledger, charge{order: id, owner: claim.Owner, invocation: invocationOf(ctx), at: time.Now()})
}

// charges returns the ledger's lines for each order, in the order made.
func (p *provider) charges() map[string][]charge {
	p.mu.Lock()
	defer p.mu.Unlock()
	charges := make(map[string][]charge)
	for _, c := range p.ledger {
		charges[c.order] = append(charges[c.order], c)
	}
	return charges
}
