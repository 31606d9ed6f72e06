package lambdatest

import (
	"context"
	"errors"
	"time"
)

// Fault is what goes wrong with a store call. The zero value is nothing.
type Fault struct {
	// Latency is how long the call takes before it is applied. If the call's context ends first, the call is not
	// applied and returns the context's error, unless the invocation has ended with it.
	Latency time.Duration
	// Err, if not nil, is what the call returns instead of being applied: throttling, for example.
	Err error
	// ReplyLost says that the call is applied before it returns Err.
	ReplyLost bool
	// Part, if it is more than 0, is how many of the requests of a call for many are applied, from the first one on, as if
	// the call had failed in the middle. The others are not, and return Err, or another error if that is nil. With
	// ReplyLost all of them return Err. A call that has no more requests than Part is applied, whether or not there is an
	// Err.
	Part int
}

// errNotApplied is what the rest of a call for many returns if its Fault has no error.
var errNotApplied = errors.New("lambdatest: the call failed before it came to this request")

// Call makes a call by which a function leaves its process, to a store for example, and returns apply's error. name and
// key are those of its points. A call within an invocation is applied only if the invocation is alive, and with the
// faults of FunctionOptions.StoreFault. A call of a dead invocation, or of one that dies at this point, does not return
// before the function is closed, and returns ErrClosed then. So does every call within an invocation after Close. A call
// that was being applied when another goroutine's crash fell still arrives, as over a network, and does not return
// either.
//
// Other calls are applied as they are: those without an invocation in their context, and those within an invocation of
// another function.
func (f *Function) Call(ctx context.Context, name, key string, apply func() error) error {
	var applied error
	if _, err := f.call(ctx, name, []string{key}, func(int) { applied = apply() }); err != nil {
		return err
	}
	return applied
}

// call is Call for a call of as many requests as there are keys, of which apply applies the first n. It returns how many
// are answered by what apply has got, and the error of the rest.
func (f *Function) call(ctx context.Context, name string, keys []string, apply func(n int)) (answered int, err error) {
	v := invocationOf(ctx)
	if v == nil || v.function != f {
		apply(len(keys))
		return len(keys), nil
	}
	if !v.survives(StoreCall, name, keys...) {
		return 0, ErrClosed
	}
	var fault Fault
	if f.options.StoreFault != nil {
		fault = f.options.StoreFault(v.at(StoreCall, name, keys...))
	}
	if fault.Latency > 0 {
		err = sleep(ctx, fault.Latency)
	}
	// In the meantime the invocation may have timed out, or another record may have crashed it.
	if !v.alive() {
		return 0, ErrClosed
	}
	if err != nil {
		return 0, err
	}
	n := fault.applied(len(keys))
	if n > 0 || len(keys) == 0 {
		apply(n)
		if !v.survives(StoreReply, name, keys...) {
			return 0, ErrClosed
		}
	}
	switch {
	case fault.Err != nil && fault.ReplyLost:
		return 0, fault.Err
	case n < len(keys) && fault.Err == nil:
		return n, errNotApplied
	case n < len(keys):
		return n, fault.Err
	default:
		return n, nil
	}
}

// applied returns how many of a call's requests are applied.
func (f *Fault) applied(requests int) int {
	switch {
	case f.Part > 0:
		return min(f.Part, requests)
	case f.Err != nil && !f.ReplyLost:
		return 0
	default:
		return requests
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
