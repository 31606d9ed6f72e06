package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Rule 8: a key that cannot be claimed is not worked on, and its record says why.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name      string
		claim     error // of the store
		want      batch.Outcome
		is        error
		permanent bool
		releases  int32
	}{
		{"undecided", errStore, batch.Failed, errStore, false, 1},
		{"store full", idempotency.ErrStoreFull, batch.Failed, idempotency.ErrStoreFull, false, 0},
		{"store unusable", idempotency.ErrStoreUnusable, batch.Failed, idempotency.ErrStoreUnusable, false, 0},
		{"cancelled by the store itself", context.Canceled, batch.Failed, context.Canceled, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faults{claim: func(context.Context) error { return test.claim }}
			s := &source{identities: keys("k")}
			sunk := false
			options := &batch.Options{MaxAttempts: 1, DeadLetter: func(context.Context, *batch.Record, error) error {
				sunk = true
				return nil
			}}
			report := run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store), Batch: options})
			wantOutcomes(t, report, test.want)
			if err := report.Results[0].Err; !errors.Is(err, test.is) || batch.IsPermanent(err) != test.permanent {
				t.Errorf("error is %v, want %v, permanent %v", err, test.is, test.permanent)
			}
			if store.releases.Load() != test.releases {
				t.Errorf("%d releases, want %d", store.releases.Load(), test.releases)
			}
			if sunk {
				t.Error("the record was dead-lettered for a fault of the store")
			}
			s.wantRan(t)
		})
	}
}

// A claim that the batch's end interrupts is undecided: it is released, and its record is skipped, since it will come
// again with more time.
func TestRefusedAtTheEndOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faults{claim: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := &source{identities: keys("k", "l")}
		report := run(ctx, s, &pipeline.Config{Guard: newGuard(t, store)})
		wantOutcomes(t, report, batch.Skipped, batch.Skipped)
		for _, r := range report.Results {
			if !errors.Is(r.Err, batch.ErrDeadlineNear) {
				t.Errorf("error is %v, want %v", r.Err, batch.ErrDeadlineNear)
			}
		}
		synctest.Wait()
		if store.releases.Load() != 2 {
			t.Errorf("%d releases, want 2", store.releases.Load())
		}
		s.wantRan(t)
	})
}

// A mismatch with what the store has is permanent, so that a sink takes the record: it will not become a match.
func TestRefusedMismatch(t *testing.T) {
	for _, completed := range []bool{false, true} {
		t.Run(fmt.Sprint("completed ", completed), func(t *testing.T) {
			store := &faults{}
			guard := newGuard(t, store)
			claim, err := guard.Claim(t.Context(), idempotency.Request{Key: "k", Fingerprint: "a"})
			if err != nil {
				t.Fatal(err)
			}
			want := idempotency.InProgress
			if completed {
				want = idempotency.Completed
				if err := claim.Complete(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			var sunk error
			options := &batch.Options{DeadLetter: func(_ context.Context, _ *batch.Record, err error) error {
				sunk = err
				return nil
			}}
			s := &source{identities: []pipeline.Identity{{Key: "k", Fingerprint: "b", Own: true}}}
			report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: options, Wait: time.Hour})
			wantOutcomes(t, report, batch.DeadLettered)
			if !errors.Is(sunk, idempotency.ErrFingerprintMismatch) || !batch.IsPermanent(sunk) {
				t.Errorf("sink got %v, want a permanent %v", sunk, idempotency.ErrFingerprintMismatch)
			}
			s.wantRan(t)
			// The entry is another record's, and stays as it is.
			wantEntry(t, store, "k", want)
			if entry, _ := store.Get("test#k"); entry.Fingerprint != "a" {
				t.Errorf("entry's fingerprint is %q, want a", entry.Fingerprint)
			}
		})
	}
}

// A store that is unusable is asked by the records that are under way, and no more. One of them is told as the failure.
func TestRefusedByAnUnusableStore(t *testing.T) {
	for _, n := range []int{1, 3} {
		var underWay sync.WaitGroup
		underWay.Add(n)
		store := &faults{claim: func(context.Context) error {
			if !inGroups {
				underWay.Done()
				underWay.Wait() // for the others
			}
			return idempotency.ErrStoreUnusable
		}}
		s := &source{identities: keys("a", "b", "c", "d", "e", "f")}
		report := run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store), Batch: &batch.Options{Concurrency: n}})
		want := int32(n)
		if inGroups {
			want = 6 // in one call
		}
		if report.Count(batch.Failed) != 1 || report.Count(batch.Skipped) != 5 || store.claims.Load() != want {
			t.Errorf("%v after %d claims, want 1 failed, 5 skipped, %d claims", report, store.claims.Load(), want)
		}
		s.wantRan(t)
	}
}
