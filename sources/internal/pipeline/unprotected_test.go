package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Under a disabled guard records run as they do without one: each time, with or without a key, and those with the same key
// are no twins. The hooks are told.
func TestDisabledGuard(t *testing.T) {
	store := &faults{}
	var told told
	guard := newGuard(t, store, told.option, func(o *idempotency.Options) { o.Disabled = true })
	s := &source{identities: keys("k", "k", ""), handle: func(ctx context.Context, i int) error {
		if _, ok := idempotency.FromContext(ctx); ok {
			t.Errorf("record %d has a claim", i)
		}
		if i == 2 {
			return errors.New("card declined")
		}
		return nil
	}}
	for range 2 {
		report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Concurrency: 1}})
		wantOutcomes(t, report, batch.Succeeded, batch.Succeeded, batch.Failed)
		s.wantRan(t, 0, 1, 2)
	}
	told.want(t, " unprotected", " unprotected", " unprotected", " unprotected", " unprotected", " unprotected")
	if n := store.claims.Load() + store.completes.Load() + store.releases.Load(); n > 0 {
		t.Errorf("the store was called %d times, want never", n)
	}
}

// Where the store is down, a guard that fails open lets each record run, and one that does not lets none.
func TestFailOpen(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		open bool
		want []batch.Outcome
	}{
		{"down, closed", errStore, false, []batch.Outcome{batch.Failed, batch.Failed, batch.Failed}},
		{"down, open", errStore, true, []batch.Outcome{batch.Succeeded, batch.Succeeded, batch.Succeeded}},
		{"unusable, closed", idempotency.ErrStoreUnusable, false, []batch.Outcome{batch.Failed, batch.Skipped, batch.Skipped}},
		{"unusable, open", idempotency.ErrStoreUnusable, true, []batch.Outcome{batch.Succeeded, batch.Succeeded, batch.Succeeded}},
		{"full, open", idempotency.ErrStoreFull, true, []batch.Outcome{batch.Succeeded, batch.Succeeded, batch.Succeeded}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faults{claim: func(context.Context) error { return test.err }}
			guard := newGuard(t, store, func(o *idempotency.Options) { o.FailOpen = test.open })
			s := &source{identities: keys("a", "b", "c")}
			report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Concurrency: 1}})
			wantOutcomes(t, report, test.want...)
			if test.open {
				s.wantRan(t, 0, 1, 2)
			}
			if n := store.completes.Load(); n > 0 {
				t.Errorf("%d completions, want none", n)
			}
		})
	}
}

// What is dead-lettered without a claim is dead-lettered all the same.
func TestFailOpenDeadLetters(t *testing.T) {
	store := &faults{claim: func(context.Context) error { return errStore }}
	guard := newGuard(t, store, func(o *idempotency.Options) { o.FailOpen = true })
	s := &source{identities: keys("a"), handle: func(context.Context, int) error { return batch.Permanent(errors.New("no")) }}
	taken := 0
	report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: &batch.Options{
		DeadLetter: func(context.Context, *batch.Record, error) error { taken++; return nil },
	}})
	wantOutcomes(t, report, batch.DeadLettered)
	if taken != 1 {
		t.Errorf("the sink took %d records, want 1", taken)
	}
}
