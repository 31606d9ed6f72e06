package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// variants are ways to send the same requests. What holds for one holds for all.
var variants = []struct {
	name  string
	bulk  bool // whether it takes a BulkStore
	model bool // whether the model runs over it, which takes longer than all other checks: a crowd asks first as well
	store func(t testing.TB, store idempotency.Store) idempotency.Store
}{
	{"asking first", false, false, newAsking},
	{"bulk alone", true, false, newAlone},
	{"bulk crowded", true, true, newCrowded},
}

// under has what a variant passes on of the store under test, where that has it.
type under struct{ store idempotency.Store }

// Plant implements Planter.
func (u under) Plant(t testing.TB, key string, e idempotency.Entry) {
	u.store.(Planter).Plant(t, key, e)
}

// KeepsValues implements ValueKeeper.
func (u under) KeepsValues() bool {
	k, ok := u.store.(ValueKeeper)
	return ok && k.KeepsValues()
}

// asking is a store that is asked first at every claim.
type asking struct {
	idempotency.Store
	under
}

func newAsking(_ testing.TB, s idempotency.Store) idempotency.Store { return asking{s, under{s}} }

// Claim implements idempotency.Store.
func (s asking) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	r.AskFirst = true
	return s.Store.Claim(ctx, r)
}

// Limited implements Limiter, where the store does.
func (s asking) Limited(t testing.TB, maxEntries int) idempotency.Store {
	return newAsking(t, s.Store.(Limiter).Limited(t, maxEntries))
}

// alone makes each request a call for many with nothing else in it.
type alone struct {
	idempotency.BulkStore
	under
}

func newAlone(_ testing.TB, s idempotency.Store) idempotency.Store {
	return alone{s.(idempotency.BulkStore), under{s}}
}

// Claim implements idempotency.Store.
func (s alone) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	answers := s.ClaimAll(ctx, []idempotency.ClaimRequest{r})
	return answers[0].ClaimResult, answers[0].Err
}

// Complete implements idempotency.Store.
func (s alone) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return s.CompleteAll(ctx, []idempotency.CompleteRequest{r})[0]
}

// Release implements idempotency.Store.
func (s alone) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return s.ReleaseAll(ctx, []idempotency.ReleaseRequest{r})[0]
}

// Renew implements idempotency.Store.
func (s alone) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.RenewAll(ctx, []idempotency.RenewRequest{r})[0]
}

// Limited implements Limiter, where the store does.
func (s alone) Limited(t testing.TB, maxEntries int) idempotency.Store {
	return limitedAlone(s.BulkStore, t, maxEntries)
}

// limitedAlone returns a limited store without neighbours, which would take its room.
func limitedAlone(store idempotency.Store, t testing.TB, maxEntries int) idempotency.Store {
	limited := store.(Limiter).Limited(t, maxEntries)
	if _, ok := limited.(idempotency.BulkStore); ok {
		return newAlone(t, limited)
	}
	return limited
}

// crowded makes each request a call for many, with a twin of itself, and with neighbours that are granted and refused.
// The neighbours have their answers checked. Claims ask first in turns.
type crowded struct {
	idempotency.BulkStore
	under
	t testing.TB

	mu     sync.Mutex
	claims int
	held   idempotency.ClaimRequest // a claim that nobody completes or releases
}

func newCrowded(t testing.TB, s idempotency.Store) idempotency.Store {
	return &crowded{BulkStore: s.(idempotency.BulkStore), under: under{s}, t: t}
}

func (s *crowded) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("a neighbour in a call for many: "+format, args...)
}

// neighbour returns a claim of a key of its own, at the same time.
func neighbour(r idempotency.ClaimRequest) idempotency.ClaimRequest {
	r.Key, r.Owner = newKey(), newOwner()
	return r
}

// hold claims a key for years, once.
func (s *crowded) hold(r idempotency.ClaimRequest) (idempotency.ClaimRequest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Key == "" {
		held := neighbour(r)
		held.Lease, held.Expiry = r.Now.Add(3*365*24*time.Hour), r.Now.Add(4*365*24*time.Hour)
		if got, err := s.BulkStore.Claim(context.WithoutCancel(s.t.Context()), held); err != nil || !got.Claimed {
			s.failf("claim = %+v, %v, want it granted", got, err)
		}
		s.held = held
	}
	s.claims++
	return s.held, s.claims%2 == 0
}

// Claim implements idempotency.Store.
func (s *crowded) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	held, askFirst := s.hold(r)
	late, fresh := neighbour(r), neighbour(r)
	late.Key = held.Key
	r.AskFirst, fresh.AskFirst = askFirst, !askFirst
	answers := s.ClaimAll(ctx, []idempotency.ClaimRequest{late, r, fresh, r})
	if err := answers[0].Err; ctx.Err() == nil && (err != nil || answers[0].Claimed || answers[0].Entry.Owner != held.Owner) {
		s.failf("claim of a held key = %+v, want it refused by %s", answers[0], held.Owner)
	}
	if err := answers[2].Err; ctx.Err() == nil && (err != nil || !answers[2].Claimed || answers[2].Entry.Owner != fresh.Owner) {
		s.failf("claim of an absent key = %+v, want it granted", answers[2])
	}
	got, twin := answers[1], answers[3]
	if got.Err == nil && twin.Err == nil && got.Claimed != twin.Claimed {
		s.failf("twins are claimed: %t and %t", got.Claimed, twin.Claimed)
	}
	// Either may have come first, and only that one knows what it took over.
	got.TookOver = got.TookOver || twin.TookOver
	return got.ClaimResult, got.Err
}

// settled returns the answer of two twins, and checks that of a neighbour.
func (s *crowded) settled(ctx context.Context, got, twin, neighbour, want error) error {
	if ctx.Err() == nil && (want == nil && neighbour != nil || !errors.Is(neighbour, want)) {
		s.failf("error is %v, want %v", neighbour, want)
	}
	for _, err := range []error{
		idempotency.ErrClaimLost, idempotency.ErrAlreadyCompleted, idempotency.ErrStoreFull, idempotency.ErrStoreUnusable,
	} {
		if errors.Is(got, err) != errors.Is(twin, err) {
			s.failf("twins have the errors %v and %v", got, twin)
		}
	}
	if errors.Is(twin, idempotency.ErrResultNotStored) {
		return twin
	}
	return got
}

// Complete implements idempotency.Store.
func (s *crowded) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	lost := idempotency.CompleteRequest{Key: newKey(), Owner: newOwner(), Now: r.Now, Expiry: r.Expiry}
	errs := s.CompleteAll(ctx, []idempotency.CompleteRequest{lost, r, r})
	return s.settled(ctx, errs[1], errs[2], errs[0], idempotency.ErrClaimLost)
}

// Release implements idempotency.Store.
func (s *crowded) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	absent := idempotency.ReleaseRequest{Key: newKey(), Owner: newOwner(), Now: r.Now}
	errs := s.ReleaseAll(ctx, []idempotency.ReleaseRequest{r, absent, r})
	return s.settled(ctx, errs[0], errs[2], errs[1], nil)
}

// Renew implements idempotency.Store.
func (s *crowded) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	lost := r
	lost.Key = newKey()
	errs := s.RenewAll(ctx, []idempotency.RenewRequest{r, r, lost})
	return s.settled(ctx, errs[0], errs[1], errs[2], idempotency.ErrClaimLost)
}

// Limited implements Limiter, where the store does.
func (s *crowded) Limited(t testing.TB, maxEntries int) idempotency.Store {
	return limitedAlone(s.BulkStore, t, maxEntries)
}
