package pipeline_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(sourcetest.Twice{M: m, InBulk: &inGroups}) }

// inGroups is whether guards have stores that take many requests at once.
var inGroups bool

// source is a batch whose records are named by their identities.
type source struct {
	identities []pipeline.Identity
	prepare    func(i int) error                      // nil: succeeds
	handle     func(ctx context.Context, i int) error // nil: succeeds

	mu  sync.Mutex
	ran []int
}

func (s *source) Prepare(i int) (pipeline.Identity, error) {
	if s.prepare != nil {
		if err := s.prepare(i); err != nil {
			return pipeline.Identity{}, err
		}
	}
	return s.identities[i], nil
}

func (s *source) Handle(ctx context.Context, i int) error {
	s.mu.Lock()
	s.ran = append(s.ran, i)
	s.mu.Unlock()
	if s.handle == nil {
		return nil
	}
	return s.handle(ctx, i)
}

func (s *source) wantRan(t *testing.T, indexes ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(indexes, s.ran); diff != "" {
		t.Errorf("records that ran (-want +got):\n%s", diff)
	}
	s.ran = nil
}

// keys returns identities of the source's own keys.
func keys(keys ...string) []pipeline.Identity {
	identities := make([]pipeline.Identity, len(keys))
	for i, key := range keys {
		identities[i] = pipeline.Identity{Key: key, Own: true}
	}
	return identities
}

// run runs the batch of s. Record i has the ID "r<i>".
func run(ctx context.Context, s *source, config *pipeline.Config) *batch.Report {
	if config.Batch == nil {
		config.Batch = &batch.Options{}
	}
	if config.Batch.Logger == nil {
		config.Batch.Logger = slog.New(slog.DiscardHandler)
	}
	records := make([]batch.Record, len(s.identities))
	for i := range records {
		records[i].ID = "r" + strconv.Itoa(i)
	}
	return pipeline.Run(ctx, records, s, config)
}

func newGuard(t *testing.T, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	if inGroups {
		bulk := storetest.Bulk(store)
		if transactor, ok := store.(idempotency.Transactor); ok {
			store = struct {
				idempotency.BulkStore
				idempotency.Transactor
			}{bulk, transactor}
		} else {
			store = bulk
		}
	}
	guard, err := idempotency.New("test", store, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func wantOutcomes(t *testing.T, report *batch.Report, want ...batch.Outcome) {
	t.Helper()
	var got []batch.Outcome
	for _, r := range report.Results {
		got = append(got, r.Outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
		for _, r := range report.Results {
			t.Logf("%s: %v, %v", r.Record.ID, r.Outcome, r.Err)
		}
	}
}

func wantEntry(t *testing.T, store interface {
	Get(string) (idempotency.Entry, bool)
}, key string, want idempotency.Status) {
	t.Helper()
	if entry, _ := store.Get("test#" + key); entry.Status != want {
		t.Errorf("entry of %q is %v, want %v", key, entry.Status, want)
	}
}

// told keeps the keys and kinds of the events that a guard's hook is told of.
type told struct {
	mu    sync.Mutex
	kinds []string
}

func (t *told) OnIdempotency(_ context.Context, e idempotency.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kinds = append(t.kinds, e.Key+" "+e.Kind.String())
}

func (t *told) option(o *idempotency.Options) { o.Hooks = []idempotency.Hook{t} }

func (t *told) want(tb testing.TB, kinds ...string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if diff := cmp.Diff(kinds, t.kinds); diff != "" {
		tb.Errorf("events (-want +got):\n%s", diff)
	}
}

var errStore = errors.New("store is down")

// faults is a memory store whose requests fail as the functions say. A request whose function returns nil goes through.
type faults struct {
	idempotency.MemoryStore
	claim, complete, release    func(context.Context) error
	claimed                     func() // before a claim's reply
	claims, completes, releases atomic.Int32
}

func (s *faults) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.claims.Add(1)
	if s.claim != nil {
		if err := s.claim(ctx); err != nil {
			return idempotency.ClaimResult{}, err
		}
	}
	result, err := s.MemoryStore.Claim(ctx, r)
	if s.claimed != nil {
		s.claimed()
	}
	return result, err
}

func (s *faults) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	s.completes.Add(1)
	if s.complete != nil {
		if err := s.complete(ctx); err != nil {
			return err
		}
	}
	return s.MemoryStore.Complete(ctx, r)
}

func (s *faults) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	s.releases.Add(1)
	if s.release != nil {
		if err := s.release(ctx); err != nil {
			return err
		}
	}
	return s.MemoryStore.Release(ctx, r)
}
