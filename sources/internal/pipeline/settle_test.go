package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// What becomes of a claim, by what became of its record.
func TestSettle(t *testing.T) {
	errHandler := errors.New("handler failed")
	own, business := pipeline.Identity{Key: "k", Own: true}, pipeline.Identity{Key: "k"}
	sink := func(err error) func(context.Context, *batch.Record, error) error {
		return func(context.Context, *batch.Record, error) error { return err }
	}
	for _, test := range []struct {
		name     string
		identity pipeline.Identity
		handler  error
		sink     func(context.Context, *batch.Record, error) error
		want     batch.Outcome
		entry    idempotency.Status
		event    string
	}{
		{"success", own, nil, nil, batch.Succeeded, idempotency.Completed, "completed"},
		{"success, business key", business, nil, nil, batch.Succeeded, idempotency.Completed, "completed"},
		{"failure", own, errHandler, nil, batch.Failed, idempotency.Absent, "released"},
		{"permanent failure without a sink", own, batch.Permanent(errHandler), nil, batch.Failed, idempotency.Absent, "released"},
		{"dead-lettered", own, batch.Permanent(errHandler), sink(nil), batch.DeadLettered, idempotency.Completed, "given up"},
		{"dead-lettered, business key", business, batch.Permanent(errHandler), sink(nil), batch.DeadLettered, idempotency.Absent, "given up"},
		{"sink fails", own, batch.Permanent(errHandler), sink(errors.New("full")), batch.Failed, idempotency.Absent, "released"},
		{"sink fails, business key", business, batch.Permanent(errHandler), sink(errors.New("full")), batch.Failed, idempotency.Absent, "released"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faults{}
			s := &source{identities: []pipeline.Identity{test.identity}}
			s.handle = func(context.Context, int) error {
				wantEntry(t, store, "k", idempotency.InProgress)
				return test.handler
			}
			events := &told{}
			config := &pipeline.Config{Guard: newGuard(t, store, events.option), Batch: &batch.Options{DeadLetter: test.sink}}
			report := run(t.Context(), s, config)
			wantOutcomes(t, report, test.want)
			events.want(t, "k claimed", "k "+test.event)
			if test.handler != nil && !errors.Is(report.Results[0].Err, errHandler) {
				t.Errorf("error is %v, want %v in it", report.Results[0].Err, errHandler)
			}
			wantEntry(t, store, "k", test.entry)
			if store.completes.Load()+store.releases.Load() != 1 {
				t.Errorf("%d completions and %d releases, want one request in all", store.completes.Load(), store.releases.Load())
			}
		})
	}
}

// Rule 9: work that is done but not recorded as done counts as done, by option as failed. A lost claim always fails.
// Never is it released.
func TestSettleUnrecorded(t *testing.T) {
	deadLetter := func(context.Context, *batch.Record, error) error { return nil }
	for _, test := range []struct {
		name           string
		err            error // of the store
		failUnrecorded bool
		permanent      bool // the handler's error, which the sink takes
		want           batch.Outcome
		unrecorded     bool
		tries          int32
	}{
		{"store is down", errStore, false, false, batch.Succeeded, true, 3},
		{"store is unusable", idempotency.ErrStoreUnusable, false, false, batch.Succeeded, true, 1},
		{"claim is lost", idempotency.ErrClaimLost, false, false, batch.Failed, false, 1},
		{"store is down, option", errStore, true, false, batch.Failed, false, 3},
		{"claim is lost, option", idempotency.ErrClaimLost, true, false, batch.Failed, false, 1},
		{"dead-lettered, store is down", errStore, false, true, batch.DeadLettered, true, 3},
		{"dead-lettered, store is down, option", errStore, true, true, batch.DeadLettered, true, 3},
		{"dead-lettered, claim is lost", idempotency.ErrClaimLost, false, true, batch.DeadLettered, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faults{complete: func(context.Context) error { return test.err }}
				guard := newGuard(t, store, func(o *idempotency.Options) { o.FailUnrecorded = test.failUnrecorded })
				s := &source{identities: keys("k"), handle: func(context.Context, int) error {
					if test.permanent {
						return batch.Permanent(errors.New("poison"))
					}
					return nil
				}}
				options := &batch.Options{DeadLetter: deadLetter}
				begin := time.Now()
				report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: options})
				wantOutcomes(t, report, test.want)
				result := report.Results[0]
				if result.Unrecorded != test.unrecorded || !errors.Is(result.Err, test.err) {
					t.Errorf("unrecorded: %v, error is %v, want %v and %v", result.Unrecorded, result.Err, test.unrecorded, test.err)
				}
				if store.completes.Load() != test.tries || store.releases.Load() != 0 {
					t.Errorf("%d completions, %d releases, want %d and none", store.completes.Load(), store.releases.Load(), test.tries)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("retries took %v, want less than a second", took)
				}
			})
		})
	}
}

// Rule 10: a release that fails too is said, behind the handler's error.
func TestSettleReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errHandler := errors.New("handler failed")
		store := &faults{release: func(context.Context) error { return errStore }}
		s := &source{identities: keys("k"), handle: func(context.Context, int) error { return errHandler }}
		report := run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store)})
		wantOutcomes(t, report, batch.Failed)
		err := report.Results[0].Err
		if !errors.Is(err, errHandler) || !errors.Is(err, errStore) || !strings.HasPrefix(err.Error(), errHandler.Error()) {
			t.Errorf("error is %v, want %v first and %v behind it", err, errHandler, errStore)
		}
	})
}

// Rule 7: whatever happens to the handler's context and the batch's, a completion and a release get the time they need.
func TestSettleContext(t *testing.T) {
	for _, test := range []struct {
		name     string
		deadline time.Duration // of the invocation, 0: it is cancelled after a second instead
		reserve  time.Duration
		ends     time.Duration // the handler
		want     time.Duration // what its settling has
	}{
		{"in time", time.Minute, 0, 10 * time.Second, 50 * time.Second},
		{"at the cut", time.Minute, 0, 59 * time.Second, 2 * time.Second},
		{"with less than two seconds left", time.Minute, 0, 59400 * time.Millisecond, 2 * time.Second},
		{"between answer and deadline", time.Minute, 20 * time.Second, 52 * time.Second, 8 * time.Second},
		{"after the deadline", time.Minute, 0, 70 * time.Second, 2 * time.Second},
		{"cancelled, in the grace", 0, 0, 1500 * time.Millisecond, 5 * time.Second},
		{"cancelled, late", 0, 0, time.Minute / 2, 5 * time.Second},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", fails ", fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
					defer cancel()
					if test.deadline > 0 {
						limited, cancelLimited := context.WithTimeout(ctx, test.deadline)
						defer cancelLimited()
						ctx = limited
					} else {
						time.AfterFunc(time.Second, cancel)
					}
					settled := 0
					check := func(ctx context.Context) error {
						settled++
						end, ok := ctx.Deadline()
						if left := time.Until(end); !ok || ctx.Err() != nil || left != test.want {
							t.Errorf("context ends in %v, error is %v, want %v", left, ctx.Err(), test.want)
						}
						if ctx.Value(valueKey{}) != "value" {
							t.Error("context has lost the invocation's values")
						}
						time.Sleep(test.want - time.Millisecond)
						return ctx.Err()
					}
					store := &faults{complete: check, release: check}
					ended := make(chan struct{})
					s := &source{identities: keys("k"), handle: func(context.Context, int) error {
						defer close(ended)
						time.Sleep(test.ends)
						if fails {
							return errors.New("no")
						}
						return nil
					}}
					guard := newGuard(t, store, func(o *idempotency.Options) { o.Lease, o.Expiry = time.Hour, time.Hour })
					run(ctx, s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Reserve: test.reserve}})
					<-ended
					time.Sleep(test.want)
					synctest.Wait()
					if settled != 1 {
						t.Errorf("%d tries to settle, want one that succeeds", settled)
					}
					want := idempotency.Completed
					if fails {
						want = idempotency.Absent
					}
					wantEntry(t, store, "k", want)
				})
			})
		}
	}
}

type valueKey struct{}

// Case 24b: a claim that is the record's only when it is too late to begin is given back, and not counted as an attempt.
func TestSettleOfALateClaim(t *testing.T) {
	for _, reply := range []time.Duration{9200 * time.Millisecond, 9700 * time.Millisecond} { // before the answer, after it
		synctest.Test(t, func(t *testing.T) {
			store := &faults{claimed: func() { time.Sleep(reply) }}
			guard := newGuard(t, store, func(o *idempotency.Options) { o.CountAttempts = true })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			s := &source{identities: keys("k")}
			report := run(ctx, s, &pipeline.Config{Guard: guard})
			wantOutcomes(t, report, batch.Skipped)
			if err := report.Results[0].Err; !errors.Is(err, batch.ErrDeadlineNear) {
				t.Errorf("error is %v, want %v", err, batch.ErrDeadlineNear)
			}
			time.Sleep(time.Second)
			s.wantRan(t)
			entry, held := store.Get("test#k")
			if !held || entry.Attempts != 0 || entry.Lease.UnixMilli() != 0 || store.releases.Load() != 1 {
				t.Errorf("entry is %+v after %d releases, want it free after one", entry, store.releases.Load())
			}
		})
	}
}
