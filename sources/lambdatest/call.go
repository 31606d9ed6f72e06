package lambdatest

import (
	"context"
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
}

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
	v := invocationOf(ctx)
	if v == nil || v.function != f {
		return apply()
	}
	if !v.survives(StoreCall, name, key) {
		return ErrClosed
	}
	var fault Fault
	if f.options.StoreFault != nil {
		fault = f.options.StoreFault(v.at(StoreCall, name, key))
	}
	var err error
	if fault.Latency > 0 {
		err = sleep(ctx, fault.Latency)
	}
	// In the meantime the invocation may have timed out, or another record may have crashed it.
	if !v.alive() {
		return ErrClosed
	}
	switch {
	case err != nil:
		return err
	case fault.Err != nil && !fault.ReplyLost:
		return fault.Err
	}
	err = apply()
	if !v.survives(StoreReply, name, key) {
		return ErrClosed
	}
	if fault.Err != nil {
		return fault.Err
	}
	return err
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
