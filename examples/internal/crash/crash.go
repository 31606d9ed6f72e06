// Package crash lets the invocations of the examples' simulations crash in the middle of their batches, the same in
// every run.
package crash

import (
	"sync"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Fate is what becomes of an invocation.
type Fate int

const (
	// Lives: it does not crash.
	Lives Fate = iota
	// NeverBegins: it crashes before it has seen its event.
	NeverBegins
	// Dies: it crashes when each of its lanes has stopped, or at its end if none does.
	Dies
)

// Options says which invocations crash, and where.
type Options struct {
	// Fate returns what becomes of an invocation.
	Fate func(invocation int) Fate
	// Stop returns at which of the points that it passes, counted from 1, a lane of an invocation that dies stops.
	Stop func(invocation int, lane string) int
	// Concurrency is how many records of a batch are handled at once.
	Concurrency int
	// Timeout is the function's.
	Timeout time.Duration
}

// Crashes lets some invocations crash, with each lane of their batches at a point of its own. A lane is the records that
// are handled one after the other, and which one is at work at which moment therefore depends on nothing else.
//
// The run is to be the same for the same seed, although goroutines are not. So no lane is caught wherever it happens to
// be at some moment. Each stops at its own point and waits there, and the crash comes when nothing moves any more: when
// every worker of the batch is held by a lane that waits, or every lane of the batch waits or is finished.
type Crashes struct {
	options Options

	mu         sync.Mutex
	invocation int
	fate       Fate
	workers    int
	records    map[string]int // of each lane of the batch
	passed     map[string]int // how many points a lane has passed
	waiting    map[string]bool
	finished   map[string]int // how many of a lane's records have an outcome
	now        chan struct{}  // closed when the crash comes
}

// New returns the Crashes of a function whose invocations follow one another.
func New(o Options) *Crashes { return &Crashes{options: o, now: make(chan struct{})} }

// At is FunctionOptions.Crash for a point that is about lane, of an invocation whose batch has the lanes, one for each
// record. It is asked about one invocation at a time, but for handlers that were left over from earlier ones.
func (c *Crashes) At(p lambdatest.Point, lane string, lanes []string) bool {
	c.mu.Lock()
	switch p.Moment {
	case lambdatest.BeforeInvoke:
		c.begin(p.Invocation, lanes)
		before := c.fate == NeverBegins
		c.mu.Unlock()
		return before
	case lambdatest.AfterInvoke:
		after := c.fate == Dies && p.Invocation == c.invocation
		c.mu.Unlock()
		return after
	}
	if c.fate != Dies || p.Invocation != c.invocation || c.records[lane] == 0 {
		c.mu.Unlock()
		return false
	}
	c.passed[lane]++
	if c.passed[lane] != c.options.Stop(c.invocation, lane) {
		c.mu.Unlock()
		return false
	}
	c.waiting[lane] = true
	c.decide()
	now := c.now
	c.mu.Unlock()

	timer := time.NewTimer(c.options.Timeout)
	defer timer.Stop()
	select {
	case <-now:
	case <-timer.C: // the invocation is over, so nothing is left to crash
	}
	return true
}

// begin begins an invocation. The caller holds c.mu.
func (c *Crashes) begin(invocation int, lanes []string) {
	c.invocation = invocation
	c.fate = c.options.Fate(invocation)
	c.workers = min(c.options.Concurrency, len(lanes))
	c.records, c.passed = make(map[string]int), make(map[string]int)
	c.waiting, c.finished = make(map[string]bool), make(map[string]int)
	c.now = make(chan struct{})
	for _, lane := range lanes {
		c.records[lane]++
	}
}

// Current returns the number of the present invocation.
func (c *Crashes) Current() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invocation
}

// Hangs says that a lane moves no more.
func (c *Crashes) Hangs(lane string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[lane] = true
	c.decide()
}

// Finishes says that a record of a lane of the present batch has an outcome.
func (c *Crashes) Finishes(lane string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[lane]++
	c.decide()
}

// decide lets the crash come if nothing moves any more. The caller holds c.mu.
func (c *Crashes) decide() {
	moving := 0
	for lane, records := range c.records {
		if !c.waiting[lane] { // the others of a lane that waits wait behind it
			moving += records - c.finished[lane]
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
