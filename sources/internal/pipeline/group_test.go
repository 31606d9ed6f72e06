package pipeline_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// bulkStore is a memory store that takes many requests at once, in 4 milliseconds, and keeps what it was asked.
type bulkStore struct {
	idempotency.MemoryStore

	mu       sync.Mutex
	calls    []string
	claims   []idempotency.ClaimRequest
	releases []idempotency.ReleaseRequest
	renewed  int
}

func (s *bulkStore) called(what string, n int) {
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprintf("%s %d", what, n))
	s.mu.Unlock()
	time.Sleep(4 * time.Millisecond)
}

func (s *bulkStore) BulkSizes() idempotency.BulkSizes {
	return idempotency.BulkSizes{Claims: 100, Settle: 25}
}

func (s *bulkStore) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	s.called("claim", len(requests))
	s.mu.Lock()
	s.claims = append(s.claims, requests...)
	s.mu.Unlock()
	return storetest.Bulk(&s.MemoryStore).ClaimAll(ctx, requests)
}

func (s *bulkStore) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	s.called("complete", len(requests))
	return storetest.Bulk(&s.MemoryStore).CompleteAll(ctx, requests)
}

func (s *bulkStore) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	s.called("release", len(requests))
	s.mu.Lock()
	s.releases = append(s.releases, requests...)
	s.mu.Unlock()
	return storetest.Bulk(&s.MemoryStore).ReleaseAll(ctx, requests)
}

func (s *bulkStore) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	s.called("renew", len(requests))
	s.mu.Lock()
	s.renewed += len(requests)
	s.mu.Unlock()
	return storetest.Bulk(&s.MemoryStore).RenewAll(ctx, requests)
}

// Claim and Renew of a single one are counted too.
func (s *bulkStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	answers := s.ClaimAll(ctx, []idempotency.ClaimRequest{r})
	return answers[0].ClaimResult, answers[0].Err
}

func (s *bulkStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.RenewAll(ctx, []idempotency.RenewRequest{r})[0]
}

// guard makes a guard over the store itself.
func (s *bulkStore) guard(t *testing.T, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	guard, err := idempotency.New("test", s, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("k", i)
	}
	return names
}

// A batch of a thousand costs some sixty calls, and its replay a dozen.
func TestGroupCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulkStore{}
		for _, test := range []struct {
			want batch.Outcome
			most int
		}{{batch.Succeeded, 62}, {batch.Replayed, 14}} {
			s := &source{identities: keys(numbered(1000)...)}
			report := run(t.Context(), s, &pipeline.Config{Guard: store.guard(t)})
			if got := report.Count(test.want); got != 1000 {
				t.Errorf("%d are %v, want 1000", got, test.want)
			}
			if got := len(store.calls); got > test.most {
				t.Errorf("%d calls, want %d at most: %v", got, test.most, store.calls)
			}
			store.calls = nil
		}
	})
}

// However long a record was claimed before a worker took it, its handler has its full time. Where a new claim would end
// at the same time, since the invocation does, none is made.
func TestGroupTimeout(t *testing.T) {
	for _, test := range []struct {
		name    string
		workers int
		timeout time.Duration
		left    time.Duration
		lease   time.Duration
		renews  bool
	}{
		{"timeout", 3, 2 * time.Second, 15 * time.Minute, 0, true},
		{"timeout, one at a time", 1, 2 * time.Second, 15 * time.Minute, 0, true},
		{"timeout, no deadline", 3, 2 * time.Second, 0, 0, true},
		{"the invocation ends the lease", 3, 0, 15 * time.Minute, 0, false},
		{"the invocation ends before the lease", 3, 0, 15 * time.Minute, time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.left > 0 {
					limited, cancel := context.WithTimeout(ctx, test.left)
					defer cancel()
					ctx = limited
				}
				store := &bulkStore{}
				s := &source{identities: keys(numbered(40)...), handle: func(ctx context.Context, _ int) error {
					info, _ := idempotency.FromContext(ctx)
					end, ok := ctx.Deadline()
					if left := time.Until(end); test.timeout > 0 && (!ok || left != test.timeout) {
						t.Errorf("%s has %v, want %v", info.Key, left, test.timeout)
					}
					if ok && !end.Before(info.Lease) {
						t.Errorf("%s ends at %v, behind its lease at %v", info.Key, end, info.Lease)
					}
					time.Sleep(1500 * time.Millisecond)
					return ctx.Err()
				}}
				guard := store.guard(t, func(o *idempotency.Options) { o.Lease, o.Expiry = test.lease, 24*time.Hour })
				report := run(ctx, s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Timeout: test.timeout, Concurrency: test.workers}})
				if got := report.Count(batch.Succeeded); got != 40 {
					t.Errorf("%d succeeded, want 40: %v", got, report)
				}
				if (store.renewed > 0) != test.renews {
					t.Errorf("%d claims were renewed, want some: %v", store.renewed, test.renews)
				}
				for _, key := range numbered(40) {
					wantEntry(t, store, key, idempotency.Completed)
				}
			})
		})
	}
}

// A store may take longer to answer than a claim's work may wait. Its work begins all the same, and is not renewed for
// ever.
func TestGroupSlowStore(t *testing.T) {
	for _, test := range []struct {
		name    string
		lease   time.Duration
		takes   time.Duration // a handler
		renewed bool
	}{
		{"handlers at once", 30 * time.Millisecond, 0, false},
		{"handlers that let others wait", 30 * time.Millisecond, 10 * time.Millisecond, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				store := &bulkStore{} // which takes 4 ms, where the lease lets work wait for 2.7
				s := &source{identities: keys(numbered(20)...), handle: func(context.Context, int) error {
					time.Sleep(test.takes)
					return nil
				}}
				report := run(ctx, s, &pipeline.Config{
					Batch: &batch.Options{Concurrency: 5},
					Guard: store.guard(t, func(o *idempotency.Options) { o.Lease = test.lease }),
				})
				if got := report.Count(batch.Succeeded); got != 20 {
					t.Errorf("%d succeeded, want 20: %v", got, report)
				}
				if report.Duration > time.Second {
					t.Errorf("took %v, want a second at most", report.Duration)
				}
				if got := store.renewed > 0; got != test.renewed {
					t.Errorf("%d were renewed, want some: %v", store.renewed, test.renewed)
				}
			})
		})
	}
}

// A claim that was lost while its record waited starts nothing. What the other worker has done is found by a new claim.
func TestGroupRenewalLost(t *testing.T) {
	for _, workers := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			store := &bulkStore{}
			lease := func(o *idempotency.Options) { o.Lease = 2 * time.Second }
			other := newGuard(t, &store.MemoryStore, lease)
			s := &source{identities: keys(numbered(5)...), handle: func(_ context.Context, i int) error {
				if i == 0 {
					time.AfterFunc(4*time.Second, func() {
						claim, err := other.Claim(t.Context(), idempotency.Request{Key: "k3"})
						if err != nil {
							t.Error(err)
						} else if err := claim.Complete(t.Context(), nil); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(5 * time.Second)
				return nil
			}}
			report := run(t.Context(), s, &pipeline.Config{Guard: store.guard(t, lease), Batch: &batch.Options{Concurrency: workers}})
			wantOutcomes(t, report, batch.Succeeded, batch.Succeeded, batch.Succeeded, batch.Replayed, batch.Succeeded)
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.ran) != 4 || store.renewed == 0 {
				t.Errorf("ran %v after %d renewals, want four of them after some", s.ran, store.renewed)
			}
		})
	}
}

// Claims whose records do not start any more are given back in one call before the answer, and are no attempts.
func TestGroupReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		store := &bulkStore{}
		s := &source{identities: keys(numbered(20)...), handle: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond)
			return nil
		}}
		begin := time.Now()
		guard := store.guard(t, func(o *idempotency.Options) { o.CountAttempts = true })
		report := run(ctx, s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Concurrency: 2}})
		if report.Count(batch.Succeeded) != 2 || report.Count(batch.Skipped) != 18 {
			t.Errorf("report is %v, want 2 succeeded and 18 skipped", report)
		}
		if took := time.Since(begin); took >= 9500*time.Millisecond {
			t.Errorf("took %v, want less than 9.5s, when the answer has to go", took)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if diff := cmp.Diff([]string{"claim 20", "release 18"}, store.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		for _, r := range store.releases {
			if entry, _ := store.Get(r.Key); !r.Unstarted || entry.Status == idempotency.Completed || entry.Attempts != 0 {
				t.Errorf("%s was released with Unstarted %v and is %+v, want no attempt", r.Key, r.Unstarted, entry)
			}
		}
	})
}

// Where a source delivers segments again, records are looked for before they are claimed once half of at least eight were
// found to be done.
func TestGroupAsksFirst(t *testing.T) {
	for _, test := range []struct {
		name       string
		redelivers bool
		done       int // of ten records, how many were done before
		n          int
		least      int // how many are asked for first
		most       int
		workers    []int // ten prepare in any order, so that which group has which records is up to chance
	}{
		{"all are done", true, 10, 200, 160, 192, []int{1, 10}},
		{"most are done", true, 7, 200, 100, 192, []int{1, 10}},
		{"half are done", true, 5, 200, 100, 192, []int{1}},
		{"almost half are done", true, 4, 200, 0, 0, []int{1}},
		{"few are done", true, 2, 200, 0, 0, []int{1, 10}},
		{"none is done", true, 0, 200, 0, 0, []int{1, 10}},
		{"too few to tell", true, 10, 8, 0, 0, []int{1, 10}},
		{"of a source that redelivers single records", false, 10, 200, 0, 0, []int{1, 10}},
	} {
		for _, workers := range test.workers {
			t.Run(fmt.Sprint(test.name, ", workers ", workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &bulkStore{}
					guard := store.guard(t)
					before := newGuard(t, &store.MemoryStore)
					for i, key := range numbered(test.n) {
						if i%10 < test.done {
							claim, err := before.Claim(t.Context(), idempotency.Request{Key: key})
							if err != nil {
								t.Fatal(err)
							}
							if err := claim.Complete(t.Context(), nil); err != nil {
								t.Fatal(err)
							}
						}
					}
					report := run(t.Context(), &source{identities: keys(numbered(test.n)...)}, &pipeline.Config{
						Guard: guard, Redelivers: test.redelivers, Batch: &batch.Options{Concurrency: workers}})
					if got := report.Count(batch.Replayed); got != test.n*test.done/10 {
						t.Errorf("%d replayed, want %d", got, test.n*test.done/10)
					}
					asked := 0
					for _, r := range store.claims {
						if r.AskFirst {
							asked++
						}
					}
					if asked < test.least || asked > test.most {
						t.Errorf("%d of %d were asked for first, want %d to %d", asked, test.n, test.least, test.most)
					}
				})
			})
		}
	}
}

// Records that need no claim, or can have none, are in a group as well, and nobody is asked for them.
func TestGroupOfAllKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulkStore{}
		var told told
		guard := store.guard(t, told.option, func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected })
		if _, err := newGuard(t, &store.MemoryStore).Claim(t.Context(), idempotency.Request{Key: "held"}); err != nil {
			t.Fatal(err)
		}
		s := &source{identities: keys("a", "", "held", "b", "", "fails", "a")}
		s.prepare = func(i int) error {
			if i == 3 {
				return errStore
			}
			return nil
		}
		s.handle = func(_ context.Context, i int) error {
			if i == 5 {
				return errStore
			}
			return nil
		}
		report := run(t.Context(), s, &pipeline.Config{Guard: guard, Batch: &batch.Options{Concurrency: 2}})
		wantOutcomes(t, report, batch.Succeeded, batch.Succeeded, batch.InProgress, batch.Failed, batch.Succeeded, batch.Failed, batch.Replayed)
		wantEntry(t, store, "a", idempotency.Completed)
		wantEntry(t, store, "held", idempotency.InProgress)
		wantEntry(t, store, "fails", idempotency.Absent)
		counts := map[string]int{}
		for _, line := range told.kinds {
			counts[line]++
		}
		want := map[string]int{"a claimed": 1, " unprotected": 2, "held in progress": 1, "fails claimed": 1, "a completed": 1, "fails released": 1}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
