package batch

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
)

// Middleware puts a function around a Handler, as in net/http. It hands next the record it was given, or does not call
// next at all and decides the outcome by what it returns. It is called once for each batch, to make the batch's handler.
//
// A middleware that returns before next does, as one that enforces a timeout may, gains nothing by that: the record waits
// for its handler, since its claim must not be given up while the handler runs.
type Middleware func(next Handler) Handler

// middleware makes the handler of the batch. If a middleware panics instead, every record fails with that.
func (e *engine) middleware() {
	if len(e.options.Middleware) == 0 {
		return
	}
	e.gates = make([]gate, len(e.records))
	defer func() {
		if value := recover(); value != nil {
			err := &PanicError{Value: value, Stack: debug.Stack()}
			e.run = func(context.Context, *Record) error { return err }
		}
	}()
	e.run = func(ctx context.Context, r *Record) error {
		if r == nil || r.position == 0 {
			return errors.New("batch: middleware handed on a record of its own making, want the one it was given")
		}
		gate := &e.gates[r.position-1]
		if !gate.enter() {
			return errors.New("batch: middleware called the handler after it had returned")
		}
		defer gate.leave()
		return e.stages.Run(ctx, r.position-1)
	}
	for i := len(e.options.Middleware) - 1; i >= 0; i-- {
		e.run = e.options.Middleware[i](e.run)
	}
}

// gate keeps count of the calls of one record's handler inside its middleware, which may make them on goroutines.
type gate struct {
	mu     sync.Mutex
	inside sync.WaitGroup
	closed bool
}

// enter reports whether the handler may still be called. If so, leave follows.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

// close lets nobody in any more, and waits for those inside.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
