package eventbridgetest_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

var discard = slog.New(slog.DiscardHandler)

type placed struct{ ID string }

// newHandler returns the source's handler of fn. With a guard its store is one of the bus.
func newHandler(
	t *testing.T, b *eventbridgetest.Bus, guarded bool, fn func(context.Context, *eventbridge.Event[placed]) error,
	wait time.Duration, options ...func(*eventbridge.Options),
) *eventbridge.Handler[placed] {
	t.Helper()
	h, err := eventbridge.NewHandler(fn, append(options, func(o *eventbridge.Options) {
		o.Logger = discard
		if guarded {
			o.Idempotency = newGuard(t, b, wait)
		}
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newGuard(t *testing.T, b *eventbridgetest.Bus, wait time.Duration) *idempotency.Guard {
	t.Helper()
	guard, err := idempotency.New("invoices", b.Store(idempotency.NewMemoryStore()), func(o *idempotency.Options) {
		o.Logger, o.Wait = discard, wait
	})
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// outlive lets what Close lets go come to its end in a bubble: a worker whose handler was parked tries to release its claim.
// It is called before the bus is made, since cleanups run in reverse.
func outlive(t *testing.T) { t.Cleanup(func() { time.Sleep(time.Minute) }) }

// Events that come twice, for whichever reason, have their effect twice without a guard, and once with one.
func TestDuplicatesAndGuard(t *testing.T) {
	type options = eventbridgetest.Options
	for _, test := range []struct {
		name   string
		option func(*options)
		work   time.Duration
		again  func(t *testing.T, b *eventbridgetest.Bus, h lambdatest.Handler, id string) // after the first time
		bare   int                                                                         // effects without a guard
	}{
		{name: "nothing", bare: 1},
		{name: "delivered twice", bare: 2, again: func(t *testing.T, b *eventbridgetest.Bus, h lambdatest.Handler, id string) {
			if err := b.Redeliver(id); err != nil {
				t.Error(err)
			}
		}},
		{name: "a lost answer", bare: 2, option: func(o *options) {
			o.Crash = func(p lambdatest.Point) bool { return p.Moment == lambdatest.AfterInvoke && p.Attempt == 1 }
		}},
		{name: "a crash after the effect", bare: 2, option: func(o *options) {
			o.Crash = func(p lambdatest.Point) bool { return p.Name == "done" && p.Attempt == 1 }
		}},
		{name: "an archive replay", bare: 2, again: func(t *testing.T, b *eventbridgetest.Bus, h lambdatest.Handler, id string) {
			if n, err := b.Replay(time.Now().Add(-time.Hour), time.Now(), "fix"); n != 1 || err != nil {
				t.Errorf("Replay returned %d and %v, want 1", n, err)
			}
		}},
		{name: "a synchronous target that gives up", bare: 2, work: 12 * time.Second, option: func(o *options) {
			o.Seed, o.FunctionTimeout, o.TargetRetry.MaximumRetryAttempts = 1, 5*time.Minute, 1
			o.Subscriber = &subscriber{RequestResponse: true, InvocationTimeout: 10 * time.Second}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, guarded := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					outlive(t)
					if test.option == nil {
						test.option = func(*options) {}
					}
					b := newBus(t, "orders", test.option, func(o *options) { o.Concurrency = 2 })
					var effects log[string]
					h := newHandler(t, b, guarded, func(ctx context.Context, e *eventbridge.Event[placed]) error {
						time.Sleep(test.work)
						effects.add(e.Detail.ID)
						lambdatest.Checkpoint(ctx, "done")
						return nil
					}, 0)
					id := put(t, b, "o1")[0]
					drain(t, b, h)
					if test.again != nil {
						test.again(t, b, h, id)
						drain(t, b, h)
					}
					want := test.bare
					if guarded && test.name != "a crash after the effect" {
						want = 1 // no guard can know of an effect whose completion it was not told
					}
					if n := len(effects.all()); n != want {
						t.Errorf("guarded %t: %d effects, want %d; %v", guarded, n, want, b.Stats())
					}
				})
			}
		})
	}
}

// A worker crashes two seconds into a lease of 15 minutes. Both of Lambda's retries come while the key is held. One that does
// not wait loses the event to the dead-letter queue, one that waits takes over, and a Timeout makes the lease so short that
// the first retry finds the key free.
func TestLeaseLeftByCrash(t *testing.T) {
	for _, test := range []struct {
		name    string
		wait    time.Duration
		options []func(*eventbridge.Options)
		worked  []float64 // when the work was begun
		stats   string
	}{
		{name: "without waiting", wait: -1, worked: []float64{0}, stats: "1 put, 3 invocations, 1 dead-lettered, 1 crash, 2 errors"},
		// The lease ends at 900 seconds. The retry began at 62 with as much time, looks at least every two seconds, and allows
		// for a second of skew between clocks.
		{name: "waiting", worked: []float64{0, 901}, stats: "1 put, 2 invocations, 1 done, 1 crash"},
		{name: "Timeout", wait: -1, options: []func(*eventbridge.Options){func(o *eventbridge.Options) { o.Timeout = 50 * time.Second }},
			worked: []float64{0, 62}, stats: "1 put, 2 invocations, 1 done, 1 crash"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outlive(t)
				b := newBus(t, "orders", func(o *eventbridgetest.Options) {
					o.FunctionTimeout = 15 * time.Minute
					o.Crash = func(p lambdatest.Point) bool { return p.Name == "working" && p.Attempt == 1 }
				})
				start := time.Now()
				var worked log[float64]
				h := newHandler(t, b, true, func(ctx context.Context, e *eventbridge.Event[placed]) error {
					worked.add(time.Since(start).Seconds())
					time.Sleep(2 * time.Second)
					lambdatest.Checkpoint(ctx, "working")
					return nil
				}, test.wait, test.options...)
				put(t, b, "o1")
				drain(t, b, h)
				got := worked.all()
				if len(got) != len(test.worked) || got[len(got)-1] < test.worked[len(got)-1] || got[len(got)-1] > test.worked[len(got)-1]+2.1 {
					t.Errorf("worked at %v, want about %v", got, test.worked)
				}
				if got := b.Stats().String(); got != test.stats {
					t.Errorf("stats are %q, want %q", got, test.stats)
				}
			})
		})
	}
}

// A replay from the archive is recognised while the keys live, and runs again by option, once for each name.
func TestReplayAndGuard(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []func(*eventbridge.Options)
		after   time.Duration
		want    int
	}{
		{"recognised", nil, time.Hour, 1},
		{"older than the keys", nil, 32 * time.Hour, 2},
		{"RunReplays", []func(*eventbridge.Options){func(o *eventbridge.Options) { o.RunReplays = true }}, time.Hour, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders")
				effects := 0
				h := newHandler(t, b, true, func(context.Context, *eventbridge.Event[placed]) error { effects++; return nil }, 0, test.options...)
				put(t, b, "o1")
				drain(t, b, h)
				time.Sleep(test.after)
				for _, name := range []string{"first", "second"} {
					if n, err := b.Replay(time.Time{}, time.Now(), name); n != 1 || err != nil {
						t.Errorf("Replay returned %d and %v, want 1", n, err)
					}
					drain(t, b, h)
				}
				if effects != test.want {
					t.Errorf("%d effects, want %d", effects, test.want)
				}
			})
		})
	}
}

// A rule that fires twice for one tick has one effect, and the next tick another.
func TestTickAndGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "default")
		effects := 0
		h := newHandler(t, b, true, func(context.Context, *eventbridge.Event[placed]) error { effects++; return nil }, 0)
		due := time.Now()
		for _, at := range []time.Time{due, due, due.Add(time.Minute)} {
			if _, err := b.Tick("nightly", at); err != nil {
				t.Fatal(err)
			}
		}
		drain(t, b, h)
		if stats := b.Stats(); effects != 2 || stats.Done != 3 {
			t.Errorf("%d effects, want 2; %v", effects, stats)
		}
	})
}

// One bad event of a batch brings all of it back. With a guard only that one runs again.
func TestBatchAndGuard(t *testing.T) {
	for _, test := range []struct {
		guarded bool
		want    string
	}{{false, "a1 b1 c1 a1 b1 c1"}, {true, "a1 b1 c1 b1"}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", subscribed(subscriber{RequestResponse: true, FIFO: true, WithMetadata: true}))
			for _, o := range []string{"a1", "b1", "c1"} {
				putIn(t, b, o[:1], o)
			}
			result := failFirst(1)
			var got []string
			h := newHandler(t, b, test.guarded, func(_ context.Context, e *eventbridge.Event[placed]) error {
				got = append(got, e.Detail.ID)
				if e.Group() == "b" {
					return result()
				}
				return nil
			}, 0, func(o *eventbridge.Options) { o.Concurrency = 1 })
			drain(t, b, h)
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("guarded %t (-want +got):\n%s", test.guarded, diff)
			}
		})
	}
}

// completions is a store that remembers which completions it has applied.
type completions struct {
	idempotency.Store
	applied log[string]
}

func (c *completions) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	err := c.Store.Complete(ctx, r)
	if err == nil {
		c.applied.add(r.Key)
	}
	return err
}

// The bus against the real guard: whatever is throttled, crashes, is given up on and comes twice, every event's work is done or
// its event is dead-lettered, and none is done again once its completion has reached the store.
func TestGuardedHandler(t *testing.T) {
	var repeats, crashes, duplicates, givenUp int // over all seeds: a single one may be a lucky run
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			outlive(t)
			throttled := lambdatest.Randomly(seed+100, .05)
			b := newBus(t, "orders", func(o *eventbridgetest.Options) {
				o.Seed, o.Concurrency, o.DuplicateProbability = seed+1, 3, .2
				o.Crash, o.Throttle = lambdatest.Randomly(seed, .02), lambdatest.Randomly(seed+200, .1)
				if seed%2 == 1 {
					o.Subscriber = &subscriber{RequestResponse: true, WithMetadata: true, MaxBatchSize: 5, InvocationTimeout: time.Second}
				}
				o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
					if throttled(p) {
						return lambdatest.Fault{Err: errNo, Latency: 100 * time.Millisecond}
					}
					return lambdatest.Fault{Latency: time.Millisecond}
				}
			})
			store := &completions{Store: idempotency.NewMemoryStore()}
			var inner idempotency.Store = store
			if seed >= 3 {
				inner = storetest.Bulk(store)
			}
			guard, err := idempotency.New("invoices", b.Store(inner), func(o *idempotency.Options) { o.Logger = discard })
			if err != nil {
				t.Fatal(err)
			}
			var effects log[string]
			h, err := eventbridge.NewHandler(func(ctx context.Context, e *eventbridge.Event[placed]) error {
				lambdatest.Checkpoint(ctx, "before "+e.Detail.ID)
				for _, key := range store.applied.all() {
					if strings.HasSuffix(key, e.ID()) {
						t.Errorf("seed %d: order %s is worked on after its completion was stored", seed, e.Detail.ID)
					}
				}
				effects.add(e.Detail.ID)
				time.Sleep(300 * time.Millisecond)
				lambdatest.Checkpoint(ctx, "after "+e.Detail.ID)
				return nil
			}, func(o *eventbridge.Options) { o.Idempotency, o.Logger, o.Concurrency = guard, discard, 2 })
			if err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				put(t, b, fmt.Sprint(i))
			}
			drain(t, b, h)
			time.Sleep(time.Minute)
			worked := make(map[string]int)
			for _, id := range effects.all() {
				worked[id]++
			}
			for i, h := range b.Histories() {
				if h.Waiting || h.Done.IsZero() && h.DeadLettered.IsZero() || !h.Done.IsZero() && worked[fmt.Sprint(i)] == 0 {
					t.Errorf("seed %d: order %d is lost: %+v", seed, i, h)
				}
			}
			stats := b.Stats()
			repeats += len(effects.all()) - len(worked)
			crashes += stats.Crashes
			duplicates += stats.Duplicates
			givenUp += stats.GivenUp
		})
	}
	if repeats < 5 || crashes < 5 || duplicates < 5 || givenUp < 5 {
		t.Errorf("%d repeats, %d crashes, %d duplicates, %d given up, want at least 5 each", repeats, crashes, duplicates, givenUp)
	}
}
