package lambdatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// invocation is one call of the handler. It runs until it has ended, and is dead if it ended in a way that ends the
// execution environment too.
type invocation struct {
	function *Function
	tell     func(Result)
	point    Point // what all its points have in common
	started  time.Time
	deadline time.Time
	cancel   context.CancelFunc
	timer    *time.Timer
	left     chan struct{} // closed when Invoke has returned and so has what tells of the end

	// Guarded by function.mu.
	ended, dead bool
	open        int // of these two, how many have begun and not returned
}

type invocationKey struct{}

// invocationOf returns the invocation that ctx belongs to, or nil. It is a value of the context, so contexts that are
// derived from Invoke's belong to it too, those of context.WithoutCancel included.
func invocationOf(ctx context.Context) *invocation {
	v, _ := ctx.Value(invocationKey{}).(*invocation)
	return v
}

// call calls the handler.
func (v *invocation) call(ctx context.Context, h Handler, payload []byte) {
	var response []byte
	var err error
	how := Panicked // unless Invoke returns
	defer func() {
		if how == Panicked {
			if r := recover(); r != nil {
				err = fmt.Errorf("lambdatest: handler panicked: %v\n%s", r, debug.Stack())
			} else {
				err = errors.New("lambdatest: handler called runtime.Goexit")
			}
		}
		defer v.leave()
		v.end(how, response, err)
	}()

	if v.dies(BeforeInvoke, "") {
		how = Crashed
		return
	}
	response, err = h.Invoke(ctx, payload)
	how = Answered
	if err == nil && len(response) > MaxPayload {
		err = fmt.Errorf("lambdatest: answer has %d bytes, but must have at most %d", len(response), MaxPayload)
	}
	if err != nil {
		how, response = FunctionError, nil
	}
	if v.dies(AfterInvoke, "") {
		return // the payload is a dead process's memory now, which nobody uses again
	}
	// The answer may be part of the payload, so it is copied first. What the handler has kept of the payload is wrong
	// from here on, as it is with aws-lambda-go, which reads the next event into the same buffer. A goroutine that still
	// reads it is a data race, which the race detector reports.
	response = bytes.Clone(response)
	for i := range payload {
		payload[i] = '?'
	}
	v.function.mu.Lock()
	v.function.free = append(v.function.free, payload)
	v.function.mu.Unlock()
}

// end ends the invocation, unless it has ended before, and tells the one who has started it, who may end the goroutine
// with runtime.Goexit: testing.T.Fatal does.
func (v *invocation) end(how Ending, response []byte, err error) {
	f := v.function
	f.mu.Lock()
	if v.ended {
		f.mu.Unlock()
		return
	}
	now := time.Now()
	v.ended = true
	v.dead = how != Answered && how != FunctionError
	v.open++
	v.timer.Stop()
	f.mu.Unlock()

	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		v.returned()
	}()
	v.tell(Result{
		Invocation: v.point.Invocation, Started: v.started, Ended: now, Ending: how, Response: response, Err: err,
	})
}

// leave marks that Invoke has returned. The context of a dead invocation lives on until Close, since nobody is there
// who could cancel it.
func (v *invocation) leave() {
	f := v.function
	f.mu.Lock()
	defer f.mu.Unlock()
	if !v.dead {
		v.cancel()
	}
	v.returned()
}

// returned marks that Invoke or what tells of the end has returned. The caller holds function.mu.
func (v *invocation) returned() {
	if v.open--; v.open > 0 {
		return
	}
	close(v.left)
	if !v.dead {
		delete(v.function.invocations, v)
	}
}
