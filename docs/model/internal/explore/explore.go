// Package explore visits every state that a system can reach, breadth first, so that the first way it finds to a state
// is a shortest one. States are compared whole: none is taken for another because of its hash.
package explore

import (
	"hash/maphash"
	"math"
)

// System is what is explored. Next and Judge must give the same answers to the same arguments.
type System[S comparable, A any] interface {
	// Initial returns the state that it begins with.
	Initial() S
	// Next calls emit with each step that is possible in s, and the state after it.
	Next(s *S, emit func(step A, after *S))
	// Judge returns the properties that a step breaks, as a set of up to 64 bits.
	Judge(before *S, step A, after *S) uint64
	// Settle returns the properties that a state breaks by itself. It is called once for each state.
	Settle(s *S) uint64
}

// Options bounds an exploration. Its zero value explores everything.
type Options struct {
	// Until ends the exploration once each of these properties was found broken. 0: it does not end early.
	Until uint64
	// MaxStates ends the exploration with Complete false. 0: no limit.
	MaxStates int
}

// Result is what an exploration came to.
type Result[S comparable, A any] struct {
	States, Transitions int
	Depth               int // of the deepest state, in steps
	Complete            bool
	// Broken has a shortest way to each property that is broken, by the property's bit.
	Broken map[uint64]Trace[S, A]
}

// Trace is a way from the initial state. After[i] is the state after Steps[i].
type Trace[S comparable, A any] struct {
	Initial S
	Steps   []A
	After   []S
}

// Run explores the system.
func Run[S comparable, A any](system System[S, A], options Options) Result[S, A] {
	e := exploration[S, A]{system: system, seed: maphash.MakeSeed(), table: make([]int32, 1<<12)}
	e.result.Broken = map[uint64]Trace[S, A]{}
	initial := system.Initial()
	e.visit(&initial, -1)
	depthEnd := 1 // the states before it are no deeper than Depth
	for at := 0; at < len(e.states); at++ {
		if at == depthEnd {
			e.result.Depth++
			depthEnd = len(e.states)
		}
		e.expand(int32(at))
		if options.Until != 0 && options.Until&^e.found == 0 || options.MaxStates > 0 && len(e.states) > options.MaxStates {
			e.result.States = len(e.states)
			return e.result
		}
	}
	e.result.States, e.result.Complete = len(e.states), true
	return e.result
}

type exploration[S comparable, A any] struct {
	system System[S, A]
	result Result[S, A]
	found  uint64
	states []S
	parent []int32
	seed   maphash.Seed
	table  []int32 // open addressing: 1 + index of the state, 0: none
}

func (e *exploration[S, A]) expand(at int32) {
	before := e.states[at] // a copy: the slice moves as it grows
	e.system.Next(&before, func(step A, after *S) {
		e.result.Transitions++
		e.visit(after, at)
		if broken := e.system.Judge(&before, step, after) &^ e.found; broken != 0 {
			trace := e.trace(at)
			trace.Steps, trace.After = append(trace.Steps, step), append(trace.After, *after)
			e.report(broken, trace)
		}
	})
	if broken := e.system.Settle(&before) &^ e.found; broken != 0 {
		e.report(broken, e.trace(at))
	}
}

func (e *exploration[S, A]) report(broken uint64, trace Trace[S, A]) {
	e.found |= broken
	for ; broken != 0; broken &= broken - 1 {
		e.result.Broken[broken&-broken] = trace
	}
}

// trace returns the way to a state. Steps are not kept while exploring: they are found again here.
func (e *exploration[S, A]) trace(at int32) Trace[S, A] {
	var way []int32
	for ; at >= 0; at = e.parent[at] {
		way = append(way, at)
	}
	trace := Trace[S, A]{Initial: e.states[0]}
	for i := len(way) - 1; i > 0; i-- {
		want, done := e.states[way[i-1]], false
		e.system.Next(&e.states[way[i]], func(step A, after *S) {
			if !done && *after == want {
				trace.Steps, trace.After, done = append(trace.Steps, step), append(trace.After, want), true
			}
		})
	}
	return trace
}

// visit keeps the state, if it is new.
func (e *exploration[S, A]) visit(s *S, parent int32) {
	if 2*len(e.states) >= len(e.table) {
		e.grow()
	}
	slot := e.slot(s)
	if e.table[slot] != 0 {
		return
	}
	if len(e.states) == math.MaxInt32-1 {
		panic("explore: more states than an int32 counts; the bounds are too large")
	}
	e.states, e.parent = append(e.states, *s), append(e.parent, parent)
	e.table[slot] = int32(len(e.states))
}

// slot returns where in the table the state is, or belongs.
func (e *exploration[S, A]) slot(s *S) uint64 {
	mask := uint64(len(e.table) - 1)
	for slot := maphash.Comparable(e.seed, *s) & mask; ; slot = (slot + 1) & mask {
		if at := e.table[slot]; at == 0 || e.states[at-1] == *s {
			return slot
		}
	}
}

func (e *exploration[S, A]) grow() {
	e.table = make([]int32, 2*len(e.table))
	for i := range e.states {
		e.table[e.slot(&e.states[i])] = int32(i + 1)
	}
}
