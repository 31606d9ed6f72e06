package simulation

import (
	"strings"
	"sync"
	"time"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

const (
	// crashing is how many of the invocations crash.
	crashing = 0.2
	// points is how many points an order can stop at before its invocation crashes. An order that is charged passes
	// seven of them and one that was charged before two, so some are finished by then.
	points = 9
)

// crashes lets some invocations crash in the middle of their batches, with each order at a point that is drawn for it:
// before its claim reaches the store, after its claim, before it is charged, after it is charged, after its completion.
//
// The run is to be the same for the same seed, although goroutines are not. So no order is caught wherever it happens to
// be at some moment. Each stops at its own point and waits there, and the crash comes when nothing moves any more: when
// every worker of the batch is held by an order that waits, or every order of the batch waits or is finished.
type crashes struct {
	draw        draw
	concurrency int
	timeout     time.Duration // the function's

	mu         sync.Mutex
	invocation int
	doomed     bool
	workers    int
	copies     map[string]int // of each order of the batch
	passed     map[string]int // how many points an order has passed
	waiting    map[string]bool
	finished   map[string]int // how many of its copies have an outcome
	now        chan struct{}  // closed when the crash comes
}

// at is sqstest's Options.Crash. Invocations follow one another, so only one is asked about at a time, but for handlers
// that were left over from earlier ones.
func (c *crashes) at(p sqstest.Point, orders []string) bool {
	c.mu.Lock()
	switch p.Moment {
	case sqstest.BeforeInvoke:
		c.begin(p.Invocation, orders)
		before := c.doomed && c.draw.chance(0.1, "crash before", p.Invocation)
		c.mu.Unlock()
		return before
	case sqstest.AfterInvoke:
		after := c.doomed && p.Invocation == c.invocation
		c.mu.Unlock()
		return after
	}
	id := orderOf(p)
	if !c.doomed || p.Invocation != c.invocation || c.copies[id] == 0 {
		c.mu.Unlock()
		return false
	}
	c.passed[id]++
	if c.passed[id] != 1+c.draw.number(points, "stop", c.invocation, id) {
		c.mu.Unlock()
		return false
	}
	c.waiting[id] = true
	c.decide()
	now := c.now
	c.mu.Unlock()

	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-now:
	case <-timer.C: // the invocation is over, so nothing is left to crash
	}
	return true
}

// begin begins an invocation. The caller holds c.mu.
func (c *crashes) begin(invocation int, orders []string) {
	c.invocation = invocation
	c.doomed = c.draw.chance(crashing, "crash", invocation)
	c.workers = min(c.concurrency, len(orders))
	c.copies, c.passed = make(map[string]int), make(map[string]int)
	c.waiting, c.finished = make(map[string]bool), make(map[string]int)
	c.now = make(chan struct{})
	for _, id := range orders {
		c.copies[id]++
	}
}

// current returns the number of the present invocation.
func (c *crashes) current() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invocation
}

// hangs says that a handler moves no more.
func (c *crashes) hangs(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = true
	c.decide()
}

// finishes says that a copy of an order of the present batch has an outcome.
func (c *crashes) finishes(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[id]++
	c.decide()
}

// decide lets the crash come if nothing moves any more. The caller holds c.mu.
func (c *crashes) decide() {
	moving := 0
	for id, copies := range c.copies {
		if !c.waiting[id] { // the other copies of one that waits share its outcome, so they wait too
			moving += copies - c.finished[id]
		}
	}
	if moving > 0 && len(c.waiting) < c.workers {
		return
	}
	select {
	case <-c.now:
	default:
		close(c.now)
	}
}

// orderOf returns the order that a point is about: store keys are "namespace#order-0001", and checkpoints are named
// "what order-0001".
func orderOf(p sqstest.Point) string {
	if p.Key != "" {
		return p.Key[strings.LastIndexByte(p.Key, '#')+1:]
	}
	return p.Name[strings.LastIndexByte(p.Name, ' ')+1:]
}
