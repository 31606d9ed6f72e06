package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// markStore is a bulkStore that counts what it was asked to find and to mark.
type markStore struct {
	bulkStore
	mark   error // nil: the store's answer
	finds  []int // how many keys each call had
	marked int   // keys
}

func (s *markStore) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	s.called("find", len(requests))
	s.mu.Lock()
	s.finds = append(s.finds, len(requests))
	s.mu.Unlock()
	return s.MemoryStore.FindAll(ctx, requests)
}

func (s *markStore) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	s.called("mark", len(requests))
	s.mu.Lock()
	s.marked += len(requests)
	s.mu.Unlock()
	if s.mark != nil {
		return slices.Repeat([]error{s.mark}, len(requests))
	}
	return s.MemoryStore.MarkAll(ctx, requests)
}

// wantKeys checks that so many keys were found in one call, so many marked, and nothing else asked of the store.
func (s *markStore) wantKeys(t *testing.T, found, marked int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff([]int{found}, s.finds); diff != "" {
		t.Errorf("keys of each call that finds (-want +got):\n%s", diff)
	}
	if s.marked != marked {
		t.Errorf("%d keys were marked, want %d", s.marked, marked)
	}
	for _, call := range s.calls {
		if !strings.HasPrefix(call, "find") && !strings.HasPrefix(call, "mark") {
			t.Errorf("the store was asked for %q, want nothing but finds and marks", call)
		}
	}
	s.calls, s.finds, s.marked = nil, nil, 0
}

// readsThenMarks makes a guard over the store itself.
func (s *markStore) readsThenMarks(t *testing.T) *idempotency.Guard {
	t.Helper()
	guard, err := idempotency.New("test", s, func(o *idempotency.Options) { o.ReadThenMark = true })
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// Records are read in one group. A failure asks for nothing more, and one that is given up is marked
// under the source's own key alone. What succeeded is replayed, and nothing else.
func TestReadThenMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &markStore{}
		s := &source{identities: keys("a", "b", "c", "d", "e")}
		s.identities[4].Own = false
		s.handle = func(_ context.Context, i int) error {
			switch i {
			case 1:
				return errors.New("card declined")
			case 3, 4:
				return batch.Permanent(errors.New("no such card"))
			}
			return nil
		}
		config := &pipeline.Config{Guard: store.readsThenMarks(t), Batch: &batch.Options{
			Concurrency: 5, DeadLetter: func(context.Context, *batch.Record, error) error { return nil },
		}}
		report := run(t.Context(), s, config)
		wantOutcomes(t, report, batch.Succeeded, batch.Failed, batch.Succeeded, batch.DeadLettered, batch.DeadLettered)
		store.wantKeys(t, 5, 3)
		s.handle, s.ran = nil, nil
		report = run(t.Context(), s, config)
		wantOutcomes(t, report, batch.Replayed, batch.Succeeded, batch.Replayed, batch.Replayed, batch.Succeeded)
		store.wantKeys(t, 5, 2)
	})
}

// Work that is done and whose mark is undecided is unrecorded. Work whose key was claimed meanwhile fails, as with a lost claim.
func TestReadThenMarkNotStored(t *testing.T) {
	for _, test := range []struct {
		name       string
		mark       error
		want       batch.Outcome
		unrecorded bool
	}{
		{"undecided", errStore, batch.Succeeded, true},
		{"claimed", idempotency.ErrClaimLost, batch.Failed, false},
		{"recorded by another run", idempotency.ErrAlreadyCompleted, batch.Succeeded, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, identities := range [][]pipeline.Identity{keys("a"), keys("a", "b")} {
					store := &markStore{mark: test.mark}
					report := run(t.Context(), &source{identities: identities}, &pipeline.Config{Guard: store.readsThenMarks(t)})
					for _, r := range report.Results {
						if r.Outcome != test.want || r.Unrecorded != test.unrecorded {
							t.Errorf("%d records: %s is %v, unrecorded is %t, want %v and %t",
								len(identities), r.Record.ID, r.Outcome, r.Unrecorded, test.want, test.unrecorded)
						}
					}
				}
			})
		})
	}
}

// A record that waits for a worker for long is not admitted again, and handlers' contexts end when the batch is cut off, or
// not at all.
func TestReadThenMarkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{0, 10 * time.Minute} {
			store := &markStore{}
			ctx, cut := t.Context(), time.Time{}
			if limit > 0 {
				limited, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				ctx, cut = limited, time.Now().Add(limit-time.Second)
			}
			s := &source{identities: keys("a", "b", "c"), handle: func(ctx context.Context, _ int) error {
				if end, ok := ctx.Deadline(); !end.Equal(cut) || ok != (limit > 0) {
					t.Errorf("limit %v: the context ends at %v (%t), want %v", limit, end, ok, cut)
				}
				time.Sleep(2 * time.Minute)
				return ctx.Err()
			}}
			report := run(ctx, s, &pipeline.Config{Guard: store.readsThenMarks(t), Batch: &batch.Options{Concurrency: 1}})
			wantOutcomes(t, report, batch.Succeeded, batch.Succeeded, batch.Succeeded)
			s.wantRan(t, 0, 1, 2)
			store.mu.Lock()
			if store.renewed > 0 || len(store.claims) > 0 {
				t.Errorf("%d claims and %d renewals, want none", len(store.claims), store.renewed)
			}
			store.mu.Unlock()
		}
	})
}
