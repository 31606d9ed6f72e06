package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// A record whose key is held elsewhere waits as long as the source or the guard say, and then does what the holder left
// to do: nothing, or all. Streams are built on that.
func TestWait(t *testing.T) {
	const holds = 5 * time.Second
	for _, test := range []struct {
		name         string
		source       time.Duration // Config.Wait
		guard        time.Duration // idempotency.Options.Wait
		holderFails  bool
		want         batch.Outcome
		least, after time.Duration // of the waiting batch
	}{
		{"not at all by default", 0, 0, false, batch.InProgress, 0, 0},
		{"not at all", -1, 0, false, batch.InProgress, 0, 0},
		{"the guard says so", -1, time.Minute, false, batch.Replayed, holds, 7 * time.Second},
		{"the guard says not at all", time.Minute, -1, false, batch.InProgress, 0, 0},
		{"until the holder completes", time.Minute, 0, false, batch.Replayed, holds, 7 * time.Second},
		{"until the holder fails", time.Minute, 0, true, batch.Succeeded, holds, 7 * time.Second},
		// The last look is at the end of the wait, and not before.
		{"until the wait is over", 4 * time.Second, 0, false, batch.InProgress, 4 * time.Second, 4 * time.Second},
		{"until a short wait is over", time.Millisecond, 0, false, batch.InProgress, time.Millisecond, time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store idempotency.MemoryStore
				holder := &source{identities: keys("k"), handle: func(context.Context, int) error {
					time.Sleep(holds)
					if test.holderFails {
						return errors.New("no")
					}
					return nil
				}}
				go run(t.Context(), holder, &pipeline.Config{Guard: newGuard(t, &store)})
				synctest.Wait()

				begin := time.Now()
				waiter := &source{identities: keys("k")}
				guard := newGuard(t, &store, func(o *idempotency.Options) { o.Wait = test.guard })
				report := run(t.Context(), waiter, &pipeline.Config{Guard: guard, Wait: test.source})
				wantOutcomes(t, report, test.want)
				if took := time.Since(begin); took < test.least || took > test.after {
					t.Errorf("the batch took %v, want %v to %v", took, test.least, test.after)
				}
				if test.want == batch.InProgress && !errors.Is(report.Results[0].Err, idempotency.ErrInProgress) {
					t.Errorf("error is %v, want %v", report.Results[0].Err, idempotency.ErrInProgress)
				}
				if test.want == batch.Succeeded {
					waiter.wantRan(t, 0)
				} else {
					waiter.wantRan(t)
				}
				time.Sleep(holds)
			})
		})
	}
}

// A record that waits holds no worker: with a single one, others run meanwhile.
func TestWaitHoldsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store idempotency.MemoryStore
		guard := newGuard(t, &store)
		go run(t.Context(), &source{identities: keys("k"), handle: func(context.Context, int) error {
			time.Sleep(5 * time.Second)
			return nil
		}}, &pipeline.Config{Guard: guard})
		synctest.Wait()

		others := time.Duration(0)
		begin := time.Now()
		waiter := &source{identities: keys("k", "other", "another")}
		waiter.handle = func(context.Context, int) error { others = time.Since(begin); return nil }
		report := run(t.Context(), waiter,
			&pipeline.Config{Guard: guard, Wait: time.Minute, Batch: &batch.Options{Concurrency: 1}})
		wantOutcomes(t, report, batch.Replayed, batch.Succeeded, batch.Succeeded)
		waiter.wantRan(t, 1, 2)
		if others != 0 {
			t.Errorf("the others ran after %v, want at once", others)
		}
	})
}

// A holder that crashed is waited for until its lease is over, and its work is taken over.
func TestWaitTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store idempotency.MemoryStore
		guard := newGuard(t, &store, func(o *idempotency.Options) { o.Lease = 10 * time.Second })
		if _, err := guard.Claim(t.Context(), idempotency.Request{Key: "k"}); err != nil { // and nothing more
			t.Fatal(err)
		}
		begin := time.Now()
		s := &source{identities: keys("k")}
		report := run(t.Context(), s, &pipeline.Config{Guard: guard, Wait: time.Hour})
		wantOutcomes(t, report, batch.Succeeded)
		s.wantRan(t, 0)
		// Ten seconds, one of skew, a millisecond since the limits are strict.
		if took := time.Since(begin); took < 11*time.Second || took > 11*time.Second+5*time.Millisecond {
			t.Errorf("the batch took %v, want as long as the lease and the skew", took)
		}
		wantEntry(t, &store, "k", idempotency.Completed)
	})
}

// A wait ends with the batch's time. The record is in progress then, and not skipped: it says who is in its way.
func TestWaitEndsWithTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store idempotency.MemoryStore
		guard := newGuard(t, &store)
		if _, err := guard.Claim(t.Context(), idempotency.Request{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		report := run(ctx, &source{identities: keys("k", "k")}, &pipeline.Config{Guard: guard, Wait: time.Hour})
		wantOutcomes(t, report, batch.InProgress, batch.InProgress) // a twin shares the outcome
		for _, r := range report.Results {
			if !errors.Is(r.Err, idempotency.ErrInProgress) {
				t.Errorf("error is %v, want %v", r.Err, idempotency.ErrInProgress)
			}
		}
		if took := time.Since(begin); took != 9*time.Second {
			t.Errorf("the batch took %v, want 9s", took)
		}
	})
}

// Looks at the key are ever rarer: each of them costs a write.
func TestWaitLooksRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faults{}
		guard := newGuard(t, store)
		if _, err := guard.Claim(t.Context(), idempotency.Request{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		store.claims.Store(0)
		report := run(t.Context(), &source{identities: keys("k")}, &pipeline.Config{Guard: guard, Wait: 30 * time.Second})
		wantOutcomes(t, report, batch.InProgress)
		if got := store.claims.Load(); got < 16 || got > 22 {
			t.Errorf("%d looks in 30s, want some 19", got)
		}
	})
}
