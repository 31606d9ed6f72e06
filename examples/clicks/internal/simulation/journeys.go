package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/internal/pause"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// How long an append takes.
const minAppend, maxAppend = 2 * time.Millisecond, 8 * time.Millisecond

var errUnreachable = errors.New("journey cannot be reached")

// appended is one line of the ledger: a click is part of its visitor's journey.
type appended struct {
	click      site.Click
	owner      string // of the claim it was made under; "": there is no guard
	invocation invocation
	redelivery bool // in the redelivered segment
}

// journeys are the journeys of the run. Their ledger is the truth about what was appended, and in which order. They know
// no idempotency keys, so what they are asked twice they do twice.
type journeys struct {
	draw     draw.Seed
	schedule schedule
	ran      func(evidence.Attempt) // is told of every call
	progress func(appended int)

	mu         sync.Mutex
	calls      map[string]int
	clicks     map[string]bool
	ledger     []appended
	redelivery bool
}

// Append implements site.Journeys.
func (j *journeys) Append(ctx context.Context, c site.Click) error {
	v := invocationOf(ctx)
	// A point to crash at. It also keeps what is left of a dead process from counting, since Go cannot kill its goroutines.
	lambdatest.Checkpoint(ctx, "run "+c.ID)
	j.ran(evidence.Attempt{ID: c.ID, Invocation: v.number})
	j.mu.Lock()
	j.calls[c.ID]++
	call := j.calls[c.ID]
	j.mu.Unlock()

	switch {
	case c.Page == site.PageBroken:
		return site.ErrBroken
	case j.schedule.down(v.shard, v.delivery, c.Visitor), call == 1 && j.schedule.fails(v.shard, v.delivery, c.ID):
		return errUnreachable
	}
	if err := pause.For(ctx, j.draw.Duration(minAppend, maxAppend, "append", c.ID, call)); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	lambdatest.Checkpoint(ctx, "append "+c.ID)
	j.record(ctx, c)
	lambdatest.Checkpoint(ctx, "appended "+c.ID)
	return nil
}

func (j *journeys) record(ctx context.Context, c site.Click) {
	claim, _ := idempotency.FromContext(ctx)
	j.mu.Lock()
	j.ledger = append(j.ledger, appended{c, claim.Owner, invocationOf(ctx), j.redelivery})
	j.clicks[c.ID] = true
	n := len(j.clicks)
	j.mu.Unlock()
	if j.progress != nil {
		j.progress(n)
	}
}

// redeliver marks that what comes from now on is the redelivered segment.
func (j *journeys) redeliver() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.redelivery = true
}
