package eventbridge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// dead is the store as a worker sees it that dies with its first claim: nothing that it says later arrives.
type dead struct{ idempotency.Store }

var errDead = errors.New("worker is dead")

func (dead) Complete(context.Context, idempotency.CompleteRequest) error { return errDead }
func (dead) Release(context.Context, idempotency.ReleaseRequest) error   { return errDead }

func timeout(d time.Duration) func(*eventbridge.Options) {
	return func(o *eventbridge.Options) { o.Timeout = d }
}

// crash starts an invocation with event 1 that crashes two seconds after its begin, and returns the store that it leaves.
func crash(t *testing.T, functionTimeout time.Duration, options ...func(*eventbridge.Options)) idempotency.Store {
	store := idempotency.NewMemoryStore()
	dies := func(context.Context, *eventbridge.Event[order]) error {
		time.Sleep(2 * time.Second)
		return errDead
	}
	h := newHandler(t, dies, append(options, func(o *eventbridge.Options) { o.Idempotency = newGuard(t, dead{store}) })...)
	_, err := h.Invoke(within(t, functionTimeout), []byte(placed(1, "o1")))
	wantError(t, err, "worker is dead")
	return store
}

// work takes that long, unless it is cut off.
func work(ctx context.Context, took time.Duration) error {
	select {
	case <-time.After(took):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retry is one of Lambda's two retries of an event whose invocation failed.
type retry struct {
	after time.Duration // of the one before: about one minute, then two
	took  time.Duration // including the second that the work takes
	err   error
}

// A worker crashes early in a long lease (case 24a). Both of Lambda's retries come while its lease is live, so one that gives
// up at once loses the event. One that waits takes over. A Timeout below the delays makes the lease short, and there is
// nothing to wait for.
func TestCrashEarlyInALongLease(t *testing.T) {
	const never = -1
	noWait := func(o *idempotency.Options) { o.Wait = never }
	wait := func(*idempotency.Options) {}
	sink := func(o *eventbridge.Options) {
		o.DeadLetter = func(context.Context, *batch.Record, error) error { return errors.New("no sink") }
	}
	for _, test := range []struct {
		name    string
		guard   func(*idempotency.Options)
		options []func(*eventbridge.Options)
		timeout time.Duration // of the function
		retries []retry
	}{
		{"giving up at once", noWait, nil, 15 * time.Minute, []retry{
			{time.Minute, 0, idempotency.ErrInProgress},
			{2 * time.Minute, 0, idempotency.ErrInProgress},
		}},
		// The lease ends 15 minutes after the begin of the first; a second of skew, and the work. The retry began 62 seconds
		// after the first, and has as long.
		{"waiting", wait, nil, 15 * time.Minute, []retry{{time.Minute, 15*time.Minute - 62*time.Second + 2*time.Second, nil}}},
		{"a timeout below the first retry", noWait, []func(*eventbridge.Options){timeout(50 * time.Second)}, 15 * time.Minute, []retry{
			{time.Minute, time.Second, nil},
		}},
		{"with a sink", noWait, []func(*eventbridge.Options){timeout(50 * time.Second), sink}, 15 * time.Minute, []retry{
			{time.Minute, time.Second, nil},
		}},
		{"a timeout below the second", noWait, []func(*eventbridge.Options){timeout(150 * time.Second)}, 15 * time.Minute, []retry{
			{time.Minute, 0, idempotency.ErrInProgress},
			{2 * time.Minute, time.Second, nil},
		}},
		{"a timeout between them, waiting", wait, []func(*eventbridge.Options){timeout(150 * time.Second)}, 15 * time.Minute, []retry{
			{time.Minute, 152*time.Second - 62*time.Second + 2*time.Second, nil},
		}},
		{"a short function", wait, nil, 30 * time.Second, []retry{{time.Minute, time.Second, nil}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := crash(t, test.timeout, test.options...)
				guard := newGuard(t, store, test.guard)
				w := &worker{work: func(context.Context, *eventbridge.Event[order]) error { time.Sleep(time.Second); return nil }}
				h := newHandler(t, w.handle, append(test.options, func(o *eventbridge.Options) { o.Idempotency = guard })...)
				payload := []byte(placed(1, "o1"))
				done := false
				for i, r := range test.retries {
					time.Sleep(r.after)
					begin := time.Now()
					_, err := h.Invoke(within(t, test.timeout), payload)
					if !errors.Is(err, r.err) || (err == nil) != (r.err == nil) {
						t.Errorf("retry %d: error is %v, want %v", i+1, err, r.err)
					}
					// The worker that died had tried to release its claim, for some 300 milliseconds.
					if took := time.Since(begin); (took - r.took).Abs() > 400*time.Millisecond {
						t.Errorf("retry %d took %v, want about %v", i+1, took, r.took)
					}
					done = err == nil
				}
				if done {
					w.wantOrder(t, "o1")
				} else {
					w.wantOrder(t)
				}
			})
		})
	}
}

// Work that takes longer than what is left after the wait is cut off, and the second retry does it.
func TestLongWorkAfterWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const functionTimeout = 15 * time.Minute
		store := crash(t, functionTimeout)
		w := &worker{work: func(ctx context.Context, _ *eventbridge.Event[order]) error { return work(ctx, 5*time.Minute) }}
		h := newHandler(t, w.handle, func(o *eventbridge.Options) { o.Idempotency = newGuard(t, store) })
		time.Sleep(time.Minute)
		_, err := h.Invoke(within(t, functionTimeout), []byte(placed(1, "o1")))
		if !errors.Is(err, batch.ErrDeadlineNear) {
			t.Errorf("first retry: error is %v, want %v", err, batch.ErrDeadlineNear)
		}
		time.Sleep(2 * time.Minute)
		wantDone(t, within(t, functionTimeout), h, []byte(placed(1, "o1")))
		w.wantOrder(t, "o1", "o1")
	})
}

// A synchronous target gives up after ten seconds, while the function's context says minutes, and delivers again: the
// duplicate overlaps. It waits and is replayed, so the effect is there once.
func TestOverlappingDuplicate(t *testing.T) {
	const gaveUp, functionTimeout = 10 * time.Second, 5 * time.Minute
	for _, test := range []struct {
		name    string
		timeout time.Duration // Options.Timeout
		work    time.Duration
		effects int
		first   error
		second  time.Duration // how long the duplicate took
	}{
		{"no timeout", 0, 25 * time.Second, 1, nil, 15 * time.Second},
		{"work is done in time", 0, 5 * time.Second, 1, nil, 0},
		// Work that nobody waits for is cut off, and the duplicate starts at once.
		{"a timeout below the target's", 9 * time.Second, 25 * time.Second, 0, batch.ErrTimeout, 9 * time.Second},
		{"a timeout, and work that fits", 9 * time.Second, 8 * time.Second, 1, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				effects, running, most := 0, 0, 0
				w := &worker{work: func(ctx context.Context, _ *eventbridge.Event[order]) error {
					mu.Lock()
					defer mu.Unlock()
					running++
					most = max(most, running)
					mu.Unlock()
					err := work(ctx, test.work)
					mu.Lock()
					running--
					if err == nil {
						effects++
					}
					return err
				}}
				h := newHandler(t, w.handle, guarded(t), timeout(test.timeout))
				payload := array(placed(1, "o1"))
				first := make(chan error, 1)
				go func() {
					_, err := h.Invoke(within(t, functionTimeout), payload)
					first <- err
				}()
				time.Sleep(gaveUp)
				begin := time.Now()
				_, err := h.Invoke(within(t, functionTimeout), payload)
				took := time.Since(begin)
				if err1 := <-first; !errors.Is(err1, test.first) || (err1 == nil) != (test.first == nil) {
					t.Errorf("first: error is %v, want %v", err1, test.first)
				}
				if !errors.Is(err, test.first) {
					t.Errorf("duplicate: error is %v, want %v", err, test.first)
				}
				// It looks at the key every two seconds at the most.
				if took < test.second || took > test.second+2*time.Second {
					t.Errorf("duplicate took %v, want %v to two seconds more", took, test.second)
				}
				if effects != test.effects || most > 1 {
					t.Errorf("%d effects, %d at once; want %d and never two", effects, most, test.effects)
				}
			})
		})
	}
}

// An array whose duplicate overlaps: what the first has done is replayed, what it is at is waited for, and what it has not
// started yet is done by either.
func TestOverlappingArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{work: func(context.Context, *eventbridge.Event[order]) error { time.Sleep(4 * time.Second); return nil }}
		h := newHandler(t, w.handle, guarded(t), concurrency(2))
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		first := make(chan error, 1)
		invoke := func() error {
			_, err := h.Invoke(within(t, 5*time.Minute), array(orders(ids...)...))
			return err
		}
		go func() { first <- invoke() }()
		time.Sleep(10 * time.Second)
		if err := errors.Join(invoke(), <-first); err != nil {
			t.Error(err)
		}
		w.want(t, ids...)
	})
}

// Waiting can be switched off, and ends with the invocation: the event is in progress then, and comes back.
func TestHeldElsewhere(t *testing.T) {
	for _, test := range []struct {
		name string
		wait time.Duration
		took time.Duration
	}{
		{"not at all", -1, 0},
		{"for a while", 3 * time.Second, 3 * time.Second},
		{"as long as there is time", 0, 29 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := crash(t, 15*time.Minute)
				w, r := &worker{}, &results{}
				guard := newGuard(t, store, func(o *idempotency.Options) { o.Wait = test.wait })
				h := newHandler(t, w.handle, r.option, func(o *eventbridge.Options) { o.Idempotency = guard })
				begin := time.Now()
				e := wantFailed(t, within(t, 30*time.Second), h, array(placed(1, "o1"), placed(2, "o2")), 1, 2, "is in progress elsewhere")
				if took := time.Since(begin); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				if got := r.outcomes[keyOf(1)]; got != batch.InProgress || !errors.Is(e, idempotency.ErrInProgress) {
					t.Errorf("outcome is %v, error %v, want %v", got, e, batch.InProgress)
				}
				w.wantOrder(t, "o2")
			})
		})
	}
}
