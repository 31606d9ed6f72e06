package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Without a guard there are no keys: a record runs as often as it is delivered, and its key makes no twins.
func TestWithoutGuard(t *testing.T) {
	s := &source{identities: keys("k", "k", ""), prepare: func(i int) error {
		if i == 2 {
			return errors.New("undecodable")
		}
		return nil
	}}
	config := &pipeline.Config{Batch: &batch.Options{Concurrency: 1}}
	for range 2 {
		wantOutcomes(t, run(t.Context(), s, config), batch.Succeeded, batch.Succeeded, batch.Failed)
		s.wantRan(t, 0, 1)
	}
}

// The handler's context tells of the claim, and ends before the lease does.
func TestHandlerContext(t *testing.T) {
	for _, test := range []struct {
		name     string
		deadline time.Duration // of the invocation, 0: none
		lease    time.Duration // by option
		timeout  time.Duration // of a record
		want     time.Duration // the handler's deadline
		wantHeld time.Duration // the claim's lease
	}{
		{"until the invocation's deadline", time.Minute, 0, 0, 59 * time.Second, time.Minute},
		{"a lease longer than the invocation", time.Minute, time.Hour, 0, 59 * time.Second, time.Hour},
		{"a lease shorter than the invocation", time.Minute, 30 * time.Second, 0, 29 * time.Second, 30 * time.Second},
		{"the default lease", 0, 0, 0, 59 * time.Second, time.Minute},
		{"a timeout", time.Minute, 0, 20 * time.Second, 20 * time.Second, 22 * time.Second},
		{"a timeout, no deadline", 0, 0, 20 * time.Second, 20 * time.Second, 22 * time.Second},
		{"a timeout longer than the invocation", time.Minute, 0, time.Hour, 59 * time.Second, time.Minute},
		{"a lease shorter than the timeout", time.Minute, 10 * time.Second, 20 * time.Second, 9 * time.Second, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					limited, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = limited
				}
				begin := time.Now()
				s := &source{identities: keys("k"), handle: func(ctx context.Context, _ int) error {
					info, ok := idempotency.FromContext(ctx)
					if !ok || info.Key != "k" || info.Owner == "" || info.Lease.Sub(begin) != test.wantHeld {
						t.Errorf("claim in the context: %+v, want one of k for %v", info, test.wantHeld)
					}
					end, ok := ctx.Deadline()
					if got := end.Sub(begin); !ok || got < test.want || got > test.want+time.Millisecond {
						t.Errorf("handler's deadline is %v after the beginning, want %v", got, test.want)
					}
					<-ctx.Done()
					if !time.Now().Before(info.Lease) {
						t.Error("the handler's context ended with its lease, want before it")
					}
					return nil
				}}
				guard := newGuard(t, &idempotency.MemoryStore{}, func(o *idempotency.Options) {
					if o.Lease = test.lease; test.lease > 0 {
						o.Expiry = 2 * time.Hour
					}
				})
				config := &pipeline.Config{Guard: guard, Batch: &batch.Options{Timeout: test.timeout}}
				wantOutcomes(t, run(ctx, s, config), batch.Succeeded)
				s.wantRan(t, 0)
			})
		})
	}
}

// Guarded work inside the handler has until the invocation's deadline, too, although the handler's context ends before.
func TestHandlerContextOfNestedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		guard := newGuard(t, &idempotency.MemoryStore{})
		s := &source{identities: keys("outer"), handle: func(ctx context.Context, _ int) error {
			_, err := idempotency.Do(ctx, guard, "inner", func(ctx context.Context) (int, error) {
				if info, _ := idempotency.FromContext(ctx); info.Key != "inner" || info.Lease.Sub(begin) != time.Minute {
					t.Errorf("inner claim: %+v, want one for a minute", info)
				}
				return 1, nil
			})
			return err
		}}
		wantOutcomes(t, run(ctx, s, &pipeline.Config{Guard: guard}), batch.Succeeded)
	})
}

// How long a key lives: what the guard says, or else what the source says.
func TestExpiry(t *testing.T) {
	for _, test := range []struct{ guard, want time.Duration }{{0, 25 * time.Hour}, {time.Hour, time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			var store idempotency.MemoryStore
			guard := newGuard(t, &store, func(o *idempotency.Options) { o.Expiry = test.guard })
			run(t.Context(), &source{identities: keys("k")}, &pipeline.Config{Guard: guard, Expiry: 25 * time.Hour})
			entry, _ := store.Get("test#k")
			if got := time.Until(entry.Expiry); got != test.want {
				t.Errorf("guard's expiry %v: the key lives %v, want %v", test.guard, got, test.want)
			}
		})
	}
}

// Attempts are those that the store counted, or those that the source knows of.
func TestAttempts(t *testing.T) {
	for _, counts := range []bool{false, true} {
		var store idempotency.MemoryStore
		guard := newGuard(t, &store, func(o *idempotency.Options) { o.CountAttempts = counts })
		var got []int
		s := &source{identities: keys("k"), handle: func(ctx context.Context, _ int) error {
			info, _ := idempotency.FromContext(ctx)
			got = append(got, info.Attempt)
			return errors.New("no")
		}}
		for range 3 {
			records := []batch.Record{{ID: "r0", Attempt: 7}}
			options := &batch.Options{Logger: slog.New(slog.DiscardHandler)}
			report := pipeline.Run(t.Context(), records, s, &pipeline.Config{Guard: guard, Batch: options})
			got = append(got, report.Results[0].Record.Attempt)
		}
		want := []int{7, 7, 7, 7, 7, 7}
		if counts {
			want = []int{1, 1, 2, 2, 3, 3}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attempts, counted by the store: %v (-want +got):\n%s", counts, diff)
		}
	}
}

// Twins: of records with one key and one fingerprint the first runs. Rule 11: another fingerprint is another payload.
func TestTwins(t *testing.T) {
	identity := func(key, fingerprint string) pipeline.Identity {
		return pipeline.Identity{Key: key, Fingerprint: fingerprint}
	}
	for _, n := range []int{1, 2, 10} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("concurrency %d, fails %v", n, fails), func(t *testing.T) {
				store := &faults{}
				s := &source{identities: []pipeline.Identity{
					identity("k", "a"), identity("k", "a"), identity("k", "b"), identity("k", ""), identity("l", "a"),
				}}
				s.handle = func(_ context.Context, i int) error {
					if i == 0 && fails {
						return errors.New("no")
					}
					return nil
				}
				events := &told{}
				config := &pipeline.Config{Guard: newGuard(t, store, events.option), Batch: &batch.Options{Concurrency: n}}
				report := run(t.Context(), s, config)
				if store.claims.Load() != 2 {
					t.Errorf("%d claims, want one a key", store.claims.Load())
				}
				if n > 1 {
					return // which of the first four leads is open
				}
				if fails {
					wantOutcomes(t, report, batch.Failed, batch.Failed, batch.Failed, batch.Failed, batch.Succeeded)
				} else {
					wantOutcomes(t, report, batch.Succeeded, batch.Replayed, batch.Failed, batch.Failed, batch.Succeeded)
				}
				s.wantRan(t, 0, 4)
				ended := "k completed"
				if fails {
					ended = "k released"
				}
				if inGroups { // all are prepared before the first is claimed
					events.want(t, "k mismatch", "k mismatch", "k claimed", "l claimed", ended, "l completed")
				} else {
					events.want(t, "k claimed", ended, "k mismatch", "k mismatch", "l claimed", "l completed")
				}
				mismatch := report.Results[2].Err
				if !errors.Is(mismatch, idempotency.ErrFingerprintMismatch) || !batch.IsPermanent(mismatch) {
					t.Errorf("error is %v, want a permanent %v", mismatch, idempotency.ErrFingerprintMismatch)
				}
				// One without a fingerprint cannot be told from either, and comes back.
				unclear := report.Results[3].Err
				if !errors.Is(unclear, idempotency.ErrFingerprintMismatch) || batch.IsPermanent(unclear) {
					t.Errorf("error is %v, want %v for now", unclear, idempotency.ErrFingerprintMismatch)
				}
			})
		}
	}
}

// Records without a key run unprotected where the guard allows it, and are no twins of each other.
func TestMissingKey(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		store := &faults{}
		s := &source{identities: keys("", "", "k"), handle: func(ctx context.Context, i int) error {
			if _, ok := idempotency.FromContext(ctx); ok != (i == 2) {
				t.Errorf("record %d has a claim: %v", i, ok)
			}
			return nil
		}}
		guard := newGuard(t, store, func(o *idempotency.Options) {
			if allowed {
				o.MissingKey = idempotency.MissingKeyRunsUnprotected
			}
		})
		report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Concurrency: 1}})
		if allowed {
			wantOutcomes(t, report, batch.Succeeded, batch.Succeeded, batch.Succeeded)
			s.wantRan(t, 0, 1, 2)
		} else {
			wantOutcomes(t, report, batch.Failed, batch.Failed, batch.Succeeded)
			s.wantRan(t, 2)
			if err := report.Results[0].Err; !errors.Is(err, idempotency.ErrKeyMissing) {
				t.Errorf("error is %v, want %v", err, idempotency.ErrKeyMissing)
			}
		}
		if store.claims.Load() != 1 || store.completes.Load() != 1 {
			t.Errorf("%d claims and %d completions, want one of each", store.claims.Load(), store.completes.Load())
		}
	}
}
