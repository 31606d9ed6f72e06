package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// transactor is a store whose transactions count what they are given.
type transactor struct {
	faults
	commit error // what commits end with, nil: they are applied
	stored int
}

func (s *transactor) Begin(idempotency.BeginRequest) idempotency.Transaction {
	return &counter{store: s}
}

type counter struct {
	store  *transactor
	n      int
	closed bool
}

func (c *counter) Close() bool {
	c.closed = true
	return c.n > 0
}

func (c *counter) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if c.store.commit != nil {
		return c.store.commit
	}
	c.store.stored += c.n
	return c.store.MemoryStore.Complete(ctx, r)
}

func count(ctx context.Context) error {
	t, err := idempotency.TransactionFrom(ctx)
	if err == nil {
		t.(*counter).n++
	}
	return err
}

// A record whose transaction was cancelled, or may have been, is told as failed. Only a cancelled one's claim is free.
func TestTransactionOutcomes(t *testing.T) {
	for _, test := range []struct {
		name     string
		commit   error
		want     batch.Outcome
		entry    idempotency.Status
		releases int32
	}{
		{"applied", nil, batch.Succeeded, idempotency.Completed, 0},
		{"cancelled", idempotency.ErrTransactionCancelled, batch.Failed, idempotency.Absent, 1},
		{"undecided", errStore, batch.Failed, idempotency.InProgress, 0},
		{"lost", idempotency.ErrClaimLost, batch.Failed, idempotency.InProgress, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &transactor{commit: test.commit}
				s := &source{identities: keys("k"), handle: func(ctx context.Context, _ int) error { return count(ctx) }}
				report := run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store)})
				wantOutcomes(t, report, test.want)
				result := report.Results[0]
				if !errors.Is(result.Err, test.commit) || result.Unrecorded {
					t.Errorf("unrecorded: %v, error is %v, want false, %v", result.Unrecorded, result.Err, test.commit)
				}
				wantEntry(t, &store.faults, "k", test.entry)
				if store.releases.Load() != test.releases || store.completes.Load() != 0 {
					t.Errorf("%d releases, %d plain completions, want %d and none", store.releases.Load(), store.completes.Load(), test.releases)
				}
			})
		})
	}
}

// A middleware that tries a handler again starts with nothing collected, and one that takes a failure for a success has
// nothing to store.
func TestTransactionInMiddleware(t *testing.T) {
	again := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			if err := next(ctx, r); err == nil {
				return nil
			}
			return next(ctx, r)
		}
	}
	swallow := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			_ = next(ctx, r)
			return nil
		}
	}
	for name, test := range map[string]struct {
		middleware batch.Middleware
		stored     int
	}{"again": {again, 1}, "swallow": {swallow, 0}} {
		store, calls := &transactor{}, 0
		s := &source{identities: keys("k"), handle: func(ctx context.Context, _ int) error {
			if err := count(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if calls++; calls == 1 {
				return errors.New("not the first time")
			}
			return nil
		}}
		options := &batch.Options{Middleware: []batch.Middleware{test.middleware}}
		wantOutcomes(t, run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store), Batch: options}), batch.Succeeded)
		if diff := cmp.Diff(test.stored, store.stored); diff != "" {
			t.Errorf("%s: stored (-want +got):\n%s", name, diff)
		}
		wantEntry(t, &store.faults, "k", idempotency.Completed)
	}
}

// A dead-letter sink has no transaction: what it collected would not be stored.
func TestTransactionInSink(t *testing.T) {
	store := &transactor{}
	var inSink error
	s := &source{identities: keys("k"), handle: func(ctx context.Context, _ int) error {
		return errors.Join(count(ctx), batch.Permanent(errors.New("poison")))
	}}
	options := &batch.Options{DeadLetter: func(ctx context.Context, _ *batch.Record, _ error) error {
		inSink = count(ctx)
		return nil
	}}
	wantOutcomes(t, run(t.Context(), s, &pipeline.Config{Guard: newGuard(t, store), Batch: options}), batch.DeadLettered)
	if inSink == nil || store.stored != 0 {
		t.Errorf("the sink's error is %v, %d stored, want one and none", inSink, store.stored)
	}
	wantEntry(t, &store.faults, "k", idempotency.Completed)
}
