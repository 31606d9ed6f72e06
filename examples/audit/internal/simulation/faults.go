package simulation

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/oncekit/oncekit/examples/internal/crash"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

const (
	crashing   = 0.2  // of the invocations crash
	throttling = 0.02 // of the store calls are refused
	replyLoss  = 0.02 // of them are applied, but the answer is lost

	// points is how many points an order can stop at before its invocation crashes. A change that is logged passes six:
	// claim sent, claim answered, about to append, appended, completion sent, completion answered.
	points = 12

	// firstCompletion is how often a guard tries to store one completion.
	firstCompletion = 3
)

var errReplyLost = errors.New("table did not answer")

// faults are what goes wrong, but for the log. What does depends on the seed and on what it is about, never on which
// goroutine comes first.
type faults struct {
	draw    draw.Seed
	crashes *crash.Crashes
	orderOf func(eventID string) string
	// unrecorded is a change whose completion is refused at first.
	unrecorded string

	mu        sync.Mutex
	looks     map[visit]int
	calls     map[visit]int
	throttled int
	lost      int
	refusals  int // of the completion of unrecorded
}

// visit is a kind of point of one change in one invocation.
type visit struct {
	moment     lambdatest.Moment
	name, id   string
	invocation int
}

func newFaults(d draw.Seed, concurrency int) *faults {
	f := &faults{draw: d, looks: make(map[visit]int), calls: make(map[visit]int)}
	f.crashes = crash.New(crash.Options{
		Concurrency: concurrency,
		Timeout:     timeout,
		Fate: func(invocation int) crash.Fate {
			switch {
			case !d.Chance(crashing, "crash", invocation):
				return crash.Lives
			case d.Chance(0.1, "crash before", invocation):
				return crash.NeverBegins
			default:
				return crash.Dies
			}
		},
		Stop: func(invocation int, order string) int { return 1 + d.Number(points, "stop", invocation, order) },
	})
	return f
}

// crash is the table's Options.Crash, with the orders of the batch.
func (f *faults) crash(p lambdatest.Point, orders []string) bool {
	id := eventOf(p)
	if p.Name == "Claim" && f.count(f.looks, p, id) > 1 {
		// A claim that is held elsewhere is looked at again and again, how often depends on time.
		return false
	}
	return f.crashes.At(p, f.orderOf(id), orders)
}

// store is the table's Options.StoreFault.
func (f *faults) store(p lambdatest.Point) lambdatest.Fault {
	id := eventOf(p)
	call := 1
	if p.Name != "Claim" { // see crash
		call = f.count(f.calls, p, id)
	}
	fault := lambdatest.Fault{
		Latency: f.draw.Duration(time.Millisecond/2, 2*time.Millisecond, "latency", p.Name, id, p.Invocation, call),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case p.Name == "Complete" && id == f.unrecorded && f.refusals < firstCompletion:
		f.refusals++
		fault.Err = evidence.ErrThrottled
		f.throttled++
	case f.draw.Chance(throttling, "throttled", p.Name, id, p.Invocation, call):
		fault.Err = evidence.ErrThrottled
		f.throttled++
	case f.draw.Chance(replyLoss, "reply lost", p.Name, id, p.Invocation, call):
		fault.Err, fault.ReplyLost = errReplyLost, true
		f.lost++
	}
	return fault
}

// count counts a point, and returns how many of its kind there were.
func (f *faults) count(counts map[visit]int, p lambdatest.Point, id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := visit{p.Moment, p.Name, id, p.Invocation}
	counts[at]++
	return counts[at]
}

// eventOf returns the eventID that a point is about: it is at the end of store keys, and of the names of checkpoints.
func eventOf(p lambdatest.Point) string {
	if p.Key != "" {
		return p.Key[strings.LastIndexByte(p.Key, '#')+1:]
	}
	return p.Name[strings.LastIndexByte(p.Name, ' ')+1:]
}
