package idempotency_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
)

// memoryHarness gives the conformance suite what only the tests of this package can do to a MemoryStore.
type memoryHarness struct{ *idempotency.MemoryStore }

func (h memoryHarness) Plant(_ testing.TB, key string, e idempotency.Entry) {
	h.MemoryStore.Plant(key, e)
}

func (h memoryHarness) Limited(_ testing.TB, maxEntries int) idempotency.Store {
	return idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = maxEntries })
}

func TestMemoryStoreConformance(t *testing.T) {
	storetest.Test(t, func(testing.TB) idempotency.Store { return memoryHarness{idempotency.NewMemoryStore()} })
}

func TestMemoryStoreZeroValueConformance(t *testing.T) {
	storetest.Test(t, func(testing.TB) idempotency.Store { return new(idempotency.MemoryStore) })
}

var memoryStart = time.Unix(1_800_000_000, 0)

func claimOf(key string, now time.Time) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: key, Owner: "owner of " + key, Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour), Skew: time.Second,
	}
}

func TestMemoryStoreValidate(t *testing.T) {
	for _, test := range []struct {
		maxEntries int
		want       string // part of the error, empty: none
	}{
		{0, ""}, {1, ""}, {-1, "MemoryOptions.MaxEntries is -1, want 0 (for 100000) or more"},
	} {
		s := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = test.maxEntries })
		err := s.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("MaxEntries %d: error is %v, want %q", test.maxEntries, err, test.want)
		}
	}
}

// A store that is used although its options are wrong takes nothing, rather than anything.
func TestMemoryStoreInvalidIsFull(t *testing.T) {
	s := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = -1 })
	if _, err := s.Claim(t.Context(), claimOf("k", memoryStart)); !errors.Is(err, idempotency.ErrStoreFull) {
		t.Errorf("claim: error is %v, want %v", err, idempotency.ErrStoreFull)
	}
}

func TestMemoryStoreDefaultLimit(t *testing.T) {
	s := idempotency.NewMemoryStore()
	for i := range 100_000 {
		if _, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i), memoryStart)); err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	if _, err := s.Claim(t.Context(), claimOf("one more", memoryStart)); !errors.Is(err, idempotency.ErrStoreFull) {
		t.Errorf("claim 100,001: error is %v, want %v", err, idempotency.ErrStoreFull)
	}
}

func TestMemoryStoreGet(t *testing.T) {
	s := idempotency.NewMemoryStore()
	if e, ok := s.Get("k"); ok {
		t.Errorf("absent key: got %+v, want nothing", e)
	}
	r := claimOf("k", memoryStart)
	if _, err := s.Claim(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	err := s.Complete(t.Context(), idempotency.CompleteRequest{
		Key: r.Key, Owner: r.Owner, Now: r.Now, Expiry: r.Expiry, Data: []byte(`"done"`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := idempotency.Entry{
		Status: idempotency.Completed, Owner: r.Owner, Expiry: r.Expiry, Data: []byte(`"done"`),
	}
	got, ok := s.Get("k")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Fatalf("Get: ok is %t (-want +got):\n%s", ok, diff)
	}
	clear(got.Data)
	if again, _ := s.Get("k"); !bytes.Equal(again.Data, want.Data) {
		t.Errorf("Get after the caller overwrote its bytes: data is %q, want %q", again.Data, want.Data)
	}
}

// What has expired is dropped as new keys come, also where the store is far from full.
func TestMemoryStoreDropsExpired(t *testing.T) {
	s := idempotency.NewMemoryStore()
	claim := func(i int, now time.Time) {
		t.Helper()
		if r, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i), now)); err != nil || !r.Claimed {
			t.Fatalf("claim %d: claimed is %t, error is %v", i, r.Claimed, err)
		}
	}
	for i := range 100 {
		claim(i, memoryStart.Add(time.Duration(i%7)*time.Second))
	}
	if err := s.Release(t.Context(), idempotency.ReleaseRequest{Key: "7", Owner: "owner of 7", Now: memoryStart}); err != nil {
		t.Fatal(err)
	}
	if got := s.Len(); got != 99 {
		t.Fatalf("Len after 100 claims and a release is %d, want 99", got)
	}
	later := memoryStart.Add(2 * time.Hour)
	for i := range 50 { // the first one sweeps
		claim(1000+i, later)
	}
	if got := s.Len(); got != 50 {
		t.Errorf("Len after 99 claims have expired and 50 were added is %d, want 50", got)
	}
}

// What another tool wrote may expire before its lease ends. New keys do not push it out before it is free.
func TestMemoryStoreKeepsLiveClaim(t *testing.T) {
	s := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = 2 })
	live := idempotency.Entry{
		Status: idempotency.InProgress, Owner: "other", Lease: memoryStart.Add(time.Minute), Expiry: memoryStart,
	}
	s.Plant("live", live)
	for i, now := range []time.Time{memoryStart, live.Lease, live.Lease.Add(time.Second)} {
		r := claimOf(fmt.Sprint(i), now)
		if _, err := s.Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Get("live"); !ok {
			t.Fatalf("claim of another key at %v: the live claim is gone", now)
		} else if diff := cmp.Diff(live, got); diff != "" {
			t.Fatalf("live claim (-want +got):\n%s", diff)
		}
		if err := s.Release(t.Context(), idempotency.ReleaseRequest{Key: r.Key, Owner: r.Owner, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"3", "4"} { // the second one needs the room
		if _, err := s.Claim(t.Context(), claimOf(key, live.Lease.Add(2*time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Get("live"); ok {
		t.Error("claims of other keys after the lease and its skew: the expired claim is still held")
	}
}

// A full store does not look through all that it holds for each claim that it refuses: not before something can have
// expired since it last looked.
func TestMemoryStoreFullIsCheap(t *testing.T) {
	const entries = 20_000
	s := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = entries })
	for i := range entries {
		if _, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i), memoryStart)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(n int) time.Duration {
		began := time.Now()
		for range n {
			if _, err := s.Claim(t.Context(), claimOf("one more", memoryStart.Add(time.Minute))); !errors.Is(err, idempotency.ErrStoreFull) {
				t.Fatalf("error is %v, want %v", err, idempotency.ErrStoreFull)
			}
		}
		return time.Since(began)
	}
	// Ten thousand looks at twenty thousand entries would take seconds.
	if took := refused(10_000); took > 500*time.Millisecond {
		t.Errorf("10,000 refused claims took %v, want far less", took)
	}
}
