package batch

import "sync"

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
