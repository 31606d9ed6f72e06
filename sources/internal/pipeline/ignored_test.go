package pipeline_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// ignoring is a source whose records with an empty key are ignored.
type ignoring struct{ source }

func (s *ignoring) Ignored(i int) bool { return s.identities[i].Key == "" }

// A record that its platform does not mean is done without a claim, without a key and without the handler.
func TestIgnored(t *testing.T) {
	store := &countingStore{}
	for name, guard := range map[string]*idempotency.Guard{"no guard": nil, "guard": newGuard(t, store)} {
		t.Run(name, func(t *testing.T) {
			s := &ignoring{source{identities: keys("a", "", "", "b")}}
			report := pipeline.Run(t.Context(), make([]batch.Record, 4), s, &pipeline.Config{Batch: &batch.Options{Concurrency: 1}, Guard: guard})
			wantOutcomes(t, report, batch.Succeeded, batch.Ignored, batch.Ignored, batch.Succeeded)
			s.wantRan(t, 0, 3)
		})
	}
	if diff := cmp.Diff(2, store.claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

type countingStore struct {
	idempotency.MemoryStore
	claims int
}

func (s *countingStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.claims++
	return s.MemoryStore.Claim(ctx, r)
}
