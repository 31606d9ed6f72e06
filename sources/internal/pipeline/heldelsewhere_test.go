package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

func drops(o *idempotency.Options) { o.HeldElsewhere = idempotency.HeldElsewhereDrops }

// A record that is held elsewhere is dropped by choice, after the wait that was asked for and not after the source's own.
// Its twin goes with it, and what is behind it in its lane goes on.
func TestHeldElsewhereDrops(t *testing.T) {
	for _, test := range []struct {
		name   string
		option func(*idempotency.Options)
		want   batch.Outcome
		took   time.Duration
	}{
		{"fails after the source's wait", nil, batch.InProgress, 5 * time.Second},
		{"drops at once", drops, batch.Ignored, 0},
		{"drops after a wait", func(o *idempotency.Options) { drops(o); o.Wait = 3 * time.Second }, batch.Ignored, 3 * time.Second},
		{"drops at once by choice", func(o *idempotency.Options) { drops(o); o.Wait = -1 }, batch.Ignored, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store idempotency.MemoryStore
				var told told
				held(t, &store)
				guard := newGuard(t, &store, test.option, told.option)
				s := &source{identities: keys("k", "k", "free")}
				began := time.Now()
				report := run(t.Context(), s,
					&pipeline.Config{Guard: guard, Wait: 5 * time.Second, Batch: &batch.Options{Concurrency: 1}})
				wantOutcomes(t, report, test.want, test.want, batch.Succeeded)
				s.wantRan(t, 2)
				if diff := cmp.Diff(test.took, time.Since(began)); diff != "" {
					t.Errorf("time that it took (-want +got):\n%s", diff)
				}
				wantEntry(t, &store, "k", idempotency.InProgress)
				if test.took == 0 {
					told.want(t, "k in progress", "free claimed", "free completed")
				}
			})
		})
	}
}

// A record that still waits when the batch ends has not waited as long as it was to, and is not dropped.
func TestHeldElsewhereAtTheEndOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store idempotency.MemoryStore
		held(t, &store)
		guard := newGuard(t, &store, drops, func(o *idempotency.Options) { o.Wait = 50 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantOutcomes(t, run(ctx, &source{identities: keys("k")}, &pipeline.Config{Guard: guard}), batch.InProgress)
	})
}

// What is dropped is done for its lane: the record behind it runs.
func TestDroppedRecordLetsItsLaneGoOn(t *testing.T) {
	for _, test := range []struct {
		option func(*idempotency.Options)
		want   []batch.Outcome
	}{
		{nil, []batch.Outcome{batch.InProgress, batch.Skipped}},
		{drops, []batch.Outcome{batch.Ignored, batch.Succeeded}},
	} {
		var store idempotency.MemoryStore
		held(t, &store)
		s := &source{identities: keys("k", "free")}
		config := &pipeline.Config{Guard: newGuard(t, &store, test.option), Batch: &batch.Options{}, Wait: -1}
		report := pipeline.Run(t.Context(), []batch.Record{{ID: "a", Lane: "l"}, {ID: "b", Lane: "l"}}, s, config)
		wantOutcomes(t, report, test.want...)
	}
}

// held makes a claim on k that nobody settles.
func held(t *testing.T, store idempotency.Store) {
	t.Helper()
	if _, err := newGuard(t, store).Claim(t.Context(), idempotency.Request{Key: "k"}); err != nil {
		t.Fatal(err)
	}
}
