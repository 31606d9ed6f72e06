package lambdatest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// ErrClosed means that the function was closed, or the queue, stream or table of a kit that invokes it. It is an
// idempotency.ErrStoreUnusable too, so that a guard does not try again what a store call returned it for.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string        { return "lambdatest: function is closed" }
func (closedError) Is(target error) bool { return target == idempotency.ErrStoreUnusable }

const (
	// MaxPayload is the most bytes of a synchronous invocation's event and of its answer, 6 MB
	// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
	MaxPayload = 6 << 20

	defaultTimeout = 30 * time.Second

	// closeGrace is how long Close waits for the handler's code to return.
	closeGrace = 5 * time.Second
)

// FunctionOptions configures a function. The zero value has the default timeout and no faults.
type FunctionOptions struct {
	// Timeout ends an invocation that has not answered by then. The default is 30 seconds. A negative one ends every
	// invocation before its handler is invoked.
	Timeout time.Duration

	// Crash is asked at every Point that a running invocation passes, and ends the invocation there by returning true.
	// It is called concurrently. The default is never; Randomly makes a seeded one.
	Crash func(Point) bool

	// StoreFault is asked for every call of a store that Function.Store returned, and says what is to go wrong with it.
	// It is called concurrently. The default is nothing.
	StoreFault func(Point) Fault
}

// Function is one Lambda function: its invocations, and what is left of the dead ones. NewFunction makes one. Its
// methods are safe for concurrent use, and it holds no lock when it calls something of its user's.
type Function struct {
	options FunctionOptions
	done    chan struct{} // closed by Close: what is parked is let go

	mu          sync.Mutex
	closed      bool
	started     int
	invocations map[*invocation]struct{} // whose context is not cancelled yet
	free        [][]byte                 // the memory of events that were handled, for the next ones
}

// NewFunction returns a function without invocations. The caller closes it. A function that is made in a
// testing/synctest bubble belongs to the bubble.
func NewFunction(o FunctionOptions) *Function {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Function{options: o, done: make(chan struct{}), invocations: make(map[*invocation]struct{})}
}

// Event is what a function is invoked with.
type Event struct {
	// Payload is the event as JSON. It is the function's from Start on.
	Payload []byte
	// RecordIDs and Attempt are those of the invocation's points. Close names the records of a handler that hangs.
	RecordIDs []string
	Attempt   int
}

// Start invokes h with the event in a goroutine of its own, and returns. The values of ctx are those of Invoke's
// context; its end is not, since the end of a poll does not end what it has started.
//
// When the invocation has answered, crashed or timed out, Start's goroutine or another one calls ended, once. Invoke may
// return later or not before Close. Close ends invocations without calling ended, and after Close, Start does nothing.
// ended may end its goroutine with runtime.Goexit, and must not call Close, which would wait for it.
func (f *Function) Start(ctx context.Context, h Handler, e Event, ended func(Result)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	now := time.Now()
	f.started++
	v := &invocation{
		function: f, tell: ended, started: now, deadline: now.Add(f.options.Timeout), left: make(chan struct{}), open: 1,
		point: Point{Invocation: f.started, RecordIDs: e.RecordIDs, Attempt: e.Attempt},
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), invocationKey{}, v)
	ctx, v.cancel = context.WithDeadline(ctx, v.deadline)
	v.timer = time.AfterFunc(f.options.Timeout, func() { v.end(TimedOut, nil, nil) })
	f.invocations[v] = struct{}{}
	go v.call(ctx, h, f.reuse(e.Payload))
}

// reuse returns the payload in the memory of an earlier event if one is done with. The caller holds f.mu.
func (f *Function) reuse(payload []byte) []byte {
	last := len(f.free) - 1
	if last < 0 {
		return payload
	}
	memory := f.free[last]
	f.free = f.free[:last]
	return append(memory[:0], payload...)
}

// Close ends every invocation that still runs. The contexts of all invocations are cancelled, then the goroutines that
// a crash or a timeout left parked are let go: a store call returns ErrClosed without any effect, a checkpoint ends its
// goroutine with runtime.Goexit. Until then nothing of a dead invocation runs, not even what it has deferred.
//
// Close waits until all calls of Invoke have returned, and those of what Start was to call at their end. If one takes 5
// seconds more, Close gives up with an error that names its records. Closing twice is allowed.
func (f *Function) Close() error {
	f.mu.Lock()
	first := !f.closed
	f.closed = true
	running := slices.Collect(maps.Keys(f.invocations))
	for _, v := range running {
		v.ended, v.dead = true, true
	}
	f.mu.Unlock()

	for _, v := range running {
		v.cancel()
		v.timer.Stop()
	}
	if first {
		close(f.done)
	}

	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	for _, v := range running {
		select {
		case <-v.left:
		case <-grace.C:
			return unreturned(running)
		}
	}
	return nil
}

// unreturned says which of the invocations still run. That is none if the last has returned in this moment.
func unreturned(invocations []*invocation) error {
	n := 0
	var ids []string
	for _, v := range invocations {
		select {
		case <-v.left:
		default:
			n++
			ids = append(ids, v.point.RecordIDs...)
		}
	}
	if n == 0 {
		return nil
	}
	slices.Sort(ids)
	return fmt.Errorf("lambdatest: handler or observer has not returned %v after Close: %d invocations with records %q",
		closeGrace, n, ids)
}
