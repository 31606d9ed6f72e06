package lambdatest

import (
	"context"
	"runtime"
	"time"
)

// Checkpoint marks a point in the code under test at which its invocation can crash: FunctionOptions.Crash is
// asked, with the moment AtCheckpoint and the given name. If it says yes, or if the invocation is dead already, the
// goroutine is parked until the function is closed, and ends with runtime.Goexit then. Outside an invocation Checkpoint
// does nothing.
//
// ctx is Invoke's context or one derived from it.
func Checkpoint(ctx context.Context, name string) {
	if v := invocationOf(ctx); v != nil && !v.survives(AtCheckpoint, name) {
		runtime.Goexit()
	}
}

// Crash crashes the invocation that ctx belongs to, without asking anyone, and does not return: the goroutine is
// parked until the function is closed, and ends with runtime.Goexit then. An invocation that has answered cannot crash
// any more; its goroutine only ends. Outside an invocation Crash panics.
func Crash(ctx context.Context) {
	v := invocationOf(ctx)
	if v == nil {
		panic("lambdatest: Crash was called with a context that belongs to no invocation")
	}
	v.end(Crashed, nil, nil)
	v.alive()
	runtime.Goexit()
}

// dies reports whether the invocation is dead at this point, which includes that it dies here.
func (v *invocation) dies(moment Moment, name string, keys ...string) bool {
	ended, dead := v.state()
	if crash := v.function.options.Crash; !ended && crash != nil {
		if crash(v.at(moment, name, keys...)) {
			v.end(Crashed, nil, nil)
		}
		_, dead = v.state() // once more, since the hook may have waited past the deadline
	}
	return dead
}

// state reports whether the invocation has ended, and whether it is dead.
func (v *invocation) state() (ended, dead bool) {
	if !time.Now().Before(v.deadline) {
		// The timer that ends the invocation has fired or is about to. Its goroutine and this one, which may have
		// waited for the same moment, run in either order, and time decides.
		v.end(TimedOut, nil, nil)
	}
	v.function.mu.Lock()
	defer v.function.mu.Unlock()
	return v.ended, v.dead
}

// at returns the point with what it has in common with the invocation's others.
func (v *invocation) at(moment Moment, name string, keys ...string) Point {
	p := v.point
	p.Moment, p.Name = moment, name
	if len(keys) > 0 {
		p.Key = keys[0]
	}
	if len(keys) > 1 {
		p.Keys = keys
	}
	return p
}

// survives reports whether the invocation is still alive after this point. If it is not, survives parks the
// goroutine, so that nothing that it has deferred runs, and returns only when the function is closed.
func (v *invocation) survives(moment Moment, name string, keys ...string) bool {
	return v.parkIf(v.dies(moment, name, keys...))
}

// alive is survives at a moment that is no point.
func (v *invocation) alive() bool {
	_, dead := v.state()
	return v.parkIf(dead)
}

// parkIf parks the goroutine until the function is closed if the invocation is dead. It reports whether there is
// anything left to go on for.
func (v *invocation) parkIf(dead bool) bool {
	if dead {
		<-v.function.done
	}
	select {
	case <-v.function.done:
		return false
	default:
		return true
	}
}
