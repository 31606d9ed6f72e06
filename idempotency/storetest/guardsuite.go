package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

const (
	guardNamespace = "orders"
	guardKey       = "order-1"
	storedGuardKey = guardNamespace + "#" + guardKey
)

var (
	errStore = errors.New("storetest: the store cannot be reached")
	errWork  = errors.New("storetest: the work failed")
)

// guardSuite is one guard under one check.
type guardSuite struct {
	newGuard NewGuard
	store    *faultyStore
	runs     int // of the work that run, fail and others do
}

func newGuardSuite(newGuard NewGuard) *guardSuite {
	return &guardSuite{newGuard: newGuard, store: &faultyStore{MemoryStore: idempotency.NewMemoryStore()}}
}

func (s *guardSuite) guard(t testing.TB, o idempotency.Options) Do {
	return s.newGuard(t, guardNamespace, s.store, o)
}

// work is work that succeeds.
func (s *guardSuite) work(context.Context) ([]byte, error) {
	s.runs++
	return []byte("done"), nil
}

// failing is work that fails.
func (s *guardSuite) failing(context.Context) ([]byte, error) {
	s.runs++
	return nil, errWork
}

// lasting is work that goes on for some time whatever its context says, and succeeds.
func (s *guardSuite) lasting(d time.Duration) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		time.Sleep(d)
		return s.work(ctx)
	}
}

// mustRun calls the guard with work that must be done, and succeed.
func (s *guardSuite) mustRun(t testing.TB, ctx context.Context, do Do) {
	t.Helper()
	before := s.runs
	data, replayed, err := do(ctx, guardKey, "", s.work)
	if err != nil || replayed || s.runs != before+1 || string(data) != "done" {
		t.Fatalf("work ran %d times, replayed is %t, result is %q, error is %v, want once, false, %q, no error",
			s.runs-before, replayed, data, err, "done")
	}
}

// mustReplay calls the guard with work that is done already.
func (s *guardSuite) mustReplay(t testing.TB, ctx context.Context, do Do) {
	t.Helper()
	before := s.runs
	data, replayed, err := do(ctx, guardKey, "", s.work)
	if err != nil || !replayed || s.runs != before || !bytes.Equal(data, []byte("done")) {
		t.Fatalf("work ran %d times, replayed is %t, result is %q, error is %v, want never, true, %q, no error",
			s.runs-before, replayed, data, err, "done")
	}
}

// mustFail calls the guard with work that must not begin, and returns the error.
func (s *guardSuite) mustFail(t testing.TB, ctx context.Context, do Do, want error) {
	t.Helper()
	before := s.runs
	_, replayed, err := do(ctx, guardKey, "", s.work)
	if s.runs != before || replayed {
		t.Fatalf("work ran %d times, replayed is %t, want never and false", s.runs-before, replayed)
	}
	s.wantError(t, err, want)
}

func (s *guardSuite) wantError(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || got == nil {
		t.Fatalf("error is %v, want %v", got, want)
	}
}

func (s *guardSuite) wantMethods(t testing.TB, want ...string) {
	t.Helper()
	if got := s.store.methods(); !slices.Equal(got, want) {
		t.Fatalf("requests are %q, want %q", got, want)
	}
}

// wantEntry checks what the store holds for the key.
func (s *guardSuite) wantEntry(t testing.TB, want idempotency.Status) {
	t.Helper()
	if e, _ := s.store.Get(storedGuardKey); e.Status != want {
		t.Fatalf("the store holds a key that is %v, want %v", e.Status, want)
	}
}

// claimElsewhere claims the key for another worker, at this moment and for a minute.
func (s *guardSuite) claimElsewhere(t testing.TB, fingerprint string) idempotency.Entry {
	t.Helper()
	now := time.Now()
	got, err := s.store.MemoryStore.Claim(context.WithoutCancel(t.Context()), idempotency.ClaimRequest{
		Key: storedGuardKey, Owner: newOwner(), Fingerprint: fingerprint,
		Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour), Skew: time.Second,
	})
	if err != nil || !got.Claimed {
		t.Fatalf("claim by another worker: claimed is %t, error is %v", got.Claimed, err)
	}
	return got.Entry
}

// on returns faults that befall the first n calls of a method. A negative n means all of them.
func on(method string, n int, f fault) func(string, int) fault {
	return func(m string, i int) fault {
		if m == method && (n < 0 || i <= n) {
			return f
		}
		return fault{}
	}
}
