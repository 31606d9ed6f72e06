package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// A change that another invocation works on is waited for, as long as there is time, and is replayed if that one succeeds
// and run if it fails. Other items go on meanwhile, and what is behind it of its item waits.
func TestWaitForAClaimHeldElsewhere(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("concurrency %d, fails %v", n, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					begin := time.Now()
					var ended sync.Map
					w := &worker{}
					w.work = func(_ context.Context, c *dynamodbstream.Change[order]) error {
						defer func() { ended.Store(c.New.Note, time.Since(begin)) }()
						if c.New.Note == "a0" && time.Since(begin) == 0 {
							<-release
							if fails {
								return errors.New("no")
							}
						}
						return nil
					}
					h := newHandler(t, w.handle, concurrency(n), guarded(t))
					var first sync.WaitGroup
					first.Go(func() {
						number := ""
						if fails {
							number = sequence(0)
						}
						wantCheckpoint(t, t.Context(), h, event(noted("a0")...), number)
					})
					time.Sleep(time.Millisecond)
					var second sync.WaitGroup
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					second.Go(func() { wantCheckpoint(t, ctx, h, event(noted("a0", "a1", "b2")...), "") })
					time.Sleep(20 * time.Second)
					w.want(t, "a0", "b2")
					close(release)
					first.Wait()
					second.Wait()
					if fails {
						w.wantOrder(t, "a0", "a1")
					} else {
						w.wantOrder(t, "a1")
					}
					if at, _ := ended.Load("a1"); at.(time.Duration) < 20*time.Second || at.(time.Duration) > 23*time.Second {
						t.Errorf("a1 ran at %v, want it soon after a0 ended at 20s", at)
					}
				})
			})
		}
	}
}

// What is held by a worker that crashed is taken over when its lease ends, in the same invocation if that is long enough.
func TestWaitTakesOver(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration // of the invocation
		number  string
		ran     []string
	}{
		{"in the same invocation", 3 * time.Minute, "", []string{"a0", "b1"}},
		{"not before the invocation ends", 30 * time.Second, sequence(0), []string{"b1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := newGuard(t, idempotency.NewMemoryStore())
				if _, err := guard.Claim(t.Context(), idempotency.Request{Key: keyOf(0)}); err != nil { // for a minute
					t.Fatal(err)
				}
				var logged logs
				w := &worker{}
				h := newHandler(t, w.handle, logged.option, func(o *dynamodbstream.Options) { o.Idempotency = guard })
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				begin := time.Now()
				wantCheckpoint(t, ctx, h, event(noted("a0", "b1")...), test.number)
				w.want(t, test.ran...)
				took := time.Since(begin)
				if test.number == "" && (took < time.Minute || took > 64*time.Second) {
					t.Errorf("it took %v, want the minute that the lease has and little more", took)
				}
				if test.number != "" {
					if line := logged.Failure(t, eventID(0)); line.Outcome != "in progress" || took > test.timeout {
						t.Errorf("after %v the line is %+v, want it in progress, before the deadline", took, line)
					}
				}
			})
		})
	}
}

// Serial lets nothing begin behind a change that is held elsewhere.
func TestWaitSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := newGuard(t, idempotency.NewMemoryStore())
		claim, err := guard.Claim(t.Context(), idempotency.Request{Key: keyOf(1)})
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{}
		h := newHandler(t, w.handle, serial, func(o *dynamodbstream.Options) { o.Idempotency = guard })
		var running sync.WaitGroup
		running.Go(func() { wantCheckpoint(t, t.Context(), h, event(noted("a0", "b1", "c2")...), "") })
		time.Sleep(10 * time.Second)
		w.want(t, "a0")
		if err := claim.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		running.Wait()
		w.wantOrder(t, "b1", "c2")
	})
}

// By option nobody waits.
func TestWaitNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Wait = -1 })
		if _, err := guard.Claim(t.Context(), idempotency.Request{Key: keyOf(1)}); err != nil {
			t.Fatal(err)
		}
		w := &worker{}
		h := newHandler(t, w.handle, func(o *dynamodbstream.Options) { o.Idempotency = guard })
		begin := time.Now()
		wantCheckpoint(t, t.Context(), h, event(noted("a0", "b1", "b2", "c3")...), sequence(1))
		w.want(t, "a0", "c3")
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v, want no time", took)
		}
	})
}

// A change whose handler ignores its cancelled context is told as failed in time. What it does later completes its own
// claim, if its lease has not ended, and nothing else.
func TestAbandoned(t *testing.T) {
	for _, isGuarded := range []bool{false, true} {
		t.Run(fmt.Sprint("guard ", isGuarded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := idempotency.NewMemoryStore()
				var logged logs
				options := []func(*dynamodbstream.Options){logged.option}
				if isGuarded {
					options = append(options, withStore(t, store))
				}
				w := &worker{work: func(ctx context.Context, c *dynamodbstream.Change[order]) error {
					if c.New.Note == "a1" {
						time.Sleep(time.Minute)
					}
					return nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begin := time.Now()
				wantCheckpoint(t, ctx, newHandler(t, w.handle, options...), event(noted("a0", "a1", "a2", "b3")...), sequence(1))
				if took := time.Since(begin); took != 9500*time.Millisecond {
					t.Errorf("the answer took %v, want 9.5s", took)
				}
				if isGuarded {
					w.want(t, "a0", "a1", "b3")
				} else {
					w.want(t, "a0", "a1")
				}
				if line := logged.Failure(t, eventID(1)); line.Outcome != "abandoned" {
					t.Errorf("line is %+v, want it abandoned", line)
				}
				time.Sleep(2 * time.Minute)
				w.want(t) // a2 does not begin after the answer
			})
		})
	}
}

// A change whose turn does not come before the deadline is skipped, and names the checkpoint if it is the first.
func TestDeadlineNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{work: func(context.Context, *dynamodbstream.Change[order]) error {
			time.Sleep(3100 * time.Millisecond)
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantCheckpoint(t, ctx, newHandler(t, w.handle), event(numbered(4)...), sequence(3))
		w.wantOrder(t, "r0", "r1", "r2") // the third ends at 9.3 s, after the cut and before the answer
	})
}

// Work whose completion is not stored is done, and its item stops there.
func TestUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faults{OnComplete: func() error { return errors.New("store is down") }}
		var logged logs
		w := &worker{}
		h := newHandler(t, w.handle, withStore(t, store), logged.option)
		wantCheckpoint(t, t.Context(), h, event(noted("a0", "a1", "b2")...), sequence(1))
		w.want(t, "a0", "b2")
		if line := logged.Failure(t, eventID(1)); line.Outcome != "skipped" || !strings.Contains(line.Error, batch.ErrOrder.Error()) {
			t.Errorf("line is %+v, want it skipped behind a change that is not recorded", line)
		}
	})
}

// A claim that cannot be decided is a failure of that change: its handler does not run.
func TestUndecidedClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		store := &faults{OnClaim: func() (err error) {
			once.Do(func() { err = errors.New("store is down") })
			return err
		}}
		w := &worker{}
		h := newHandler(t, w.handle, withStore(t, store), concurrency(1))
		wantCheckpoint(t, t.Context(), h, event(noted("a0", "a1", "b2")...), sequence(0))
		w.want(t, "b2")
		wantCheckpoint(t, t.Context(), h, event(noted("a0", "a1", "b2")...), "")
		w.wantOrder(t, "a0", "a1")
	})
}
