package simulation

import (
	"strings"

	"github.com/oncekit/oncekit/examples/internal/crash"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

const (
	// crashing is how many of the invocations crash.
	crashing = 0.2
	// points is how many points an order can stop at before its invocation crashes. An order that is charged passes
	// seven of them and one that was charged before two, so some are finished by then.
	points = 9
)

// newCrashes lets some invocations crash in the middle of their batches, with each order at a point that is drawn for
// it: before its claim reaches the store, after its claim, before it is charged, after it is charged, after its
// completion.
func newCrashes(d draw.Seed, config Config) *crash.Crashes {
	return crash.New(crash.Options{
		Concurrency: config.Concurrency,
		Timeout:     config.Timeout,
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
}

// orderOf returns the order that a point is about: store keys are "namespace#order-0001", and checkpoints are named
// "what order-0001".
func orderOf(p lambdatest.Point) string {
	if p.Key != "" {
		return p.Key[strings.LastIndexByte(p.Key, '#')+1:]
	}
	return p.Name[strings.LastIndexByte(p.Name, ' ')+1:]
}
