package idempotency_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// bulkStore is a faultStore that takes many requests at once, each through the faults of its own. It keeps how many each
// call had.
type bulkStore struct {
	faultStore
	onRenew fault             // nil: none
	onCall  func(what string) // before a call for many is carried out, nil: nothing
	cut     func(n int) int   // how many answers a call of n requests gets, nil: n

	// What is answered in the store's stead to the requests for a key, and how often: 0 is always.
	claim, complete, release map[string]error
	times                    map[string]int

	count  map[string]int // requests for a key
	bulk   []string
	renews []idempotency.RenewRequest
}

func (s *bulkStore) fails(faults map[string]error, key string) error {
	key = strings.TrimPrefix(key, "orders#")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	if s.count[key]++; s.times[key] > 0 && s.count[key] > s.times[key] {
		return nil
	}
	return faults[key]
}

func (s *bulkStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	if err := s.fails(s.claim, r.Key); err != nil {
		return idempotency.ClaimResult{}, err
	}
	return s.faultStore.Claim(ctx, r)
}

func (s *bulkStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if err := s.fails(s.complete, r.Key); err != nil {
		return err
	}
	return s.faultStore.Complete(ctx, r)
}

func (s *bulkStore) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	if err := s.fails(s.release, r.Key); err != nil {
		return err
	}
	return s.faultStore.Release(ctx, r)
}

func (s *bulkStore) BulkSizes() idempotency.BulkSizes {
	return idempotency.BulkSizes{Claims: 100, Settle: 25}
}

func (s *bulkStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	n := note(ctx, &s.faultStore, "renew", &s.renews, r)
	return pass(ctx, s.onRenew, n, func() error { return s.MemoryStore.Renew(context.WithoutCancel(ctx), r) })
}

func (s *bulkStore) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	return together(s, "claim", requests, func(r idempotency.ClaimRequest) idempotency.ClaimAnswer {
		result, err := s.Claim(ctx, r)
		return idempotency.ClaimAnswer{ClaimResult: result, Err: err}
	})
}

func (s *bulkStore) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	return together(s, "complete", requests, func(r idempotency.CompleteRequest) error { return s.Complete(ctx, r) })
}

func (s *bulkStore) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	return together(s, "release", requests, func(r idempotency.ReleaseRequest) error { return s.Release(ctx, r) })
}

func (s *bulkStore) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	return together(s, "renew", requests, func(r idempotency.RenewRequest) error { return s.Renew(ctx, r) })
}

// together carries out the requests of a call at the same time, since a fault may keep one of them back.
func together[R, A any](s *bulkStore, what string, requests []R, each func(R) A) []A {
	s.mu.Lock()
	s.bulk = append(s.bulk, fmt.Sprintf("%s %d", what, len(requests)))
	s.mu.Unlock()
	if s.onCall != nil {
		s.onCall(what)
	}
	answers := make([]A, len(requests))
	var group sync.WaitGroup
	for i, r := range requests {
		group.Go(func() { answers[i] = each(r) })
	}
	group.Wait()
	if s.cut != nil {
		answers = append(answers, answers...)[:s.cut(len(answers))]
	}
	return answers
}

func (s *bulkStore) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.bulk); diff != "" {
		t.Errorf("calls for many (-want +got):\n%s", diff)
	}
	s.bulk = nil
}

// eventLines keeps what a guard's hooks are told, a line each.
type eventLines struct {
	mu    sync.Mutex
	lines []string
}

func (e *eventLines) OnIdempotency(_ context.Context, event idempotency.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf("%s: %v, attempt %d, poll %d, owner %t: %s",
		event.Key, event.Kind, event.Attempt, event.Poll, event.Owner != "", errorText(event.Err)))
}

func (e *eventLines) option(o *idempotency.Options) { o.Hooks = []idempotency.Hook{e} }

func (e *eventLines) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	return lines
}

// entries returns the statuses of the keys.
func (s *bulkStore) entries(keys ...string) map[string]idempotency.Status {
	statuses := map[string]idempotency.Status{}
	for _, key := range keys {
		entry, _ := s.Get("orders#" + key)
		statuses[key] = entry.Status
	}
	return statuses
}

// claimed is what became of a claim, to compare.
type claimed struct {
	Replayed bool
	Data     string
	Attempt  int
	Deadline time.Time
	Err      string
}

func claimedOf(c *idempotency.Claim, err error) claimed {
	if c == nil {
		return claimed{Err: errorText(err)}
	}
	return claimed{c.Replayed(), string(c.Data()), c.Attempt(), c.Deadline(), errorText(err)}
}

// Claims that are made together come to what each would come to alone, for the caller, the hooks and the store.
func TestClaimAllIsClaim(t *testing.T) {
	requests := []idempotency.Request{
		{Key: "free", Attempt: 3}, {Key: "held", Poll: 2}, {Key: "done"}, {Key: "expired"}, {Key: "mismatch", Fingerprint: "b"},
		{Key: ""}, {Key: "undecided"}, {Key: "full"}, {Key: "unusable"}, {Key: "cancelled"}, {Key: "negative timeout", Timeout: -1}, {Key: "last", Fingerprint: "f"},
	}
	keys := []string{"free", "held", "done", "expired", "mismatch", "undecided", "full", "unusable", "cancelled", "last"}
	for _, options := range []func(*idempotency.Options){
		func(*idempotency.Options) {},
		func(o *idempotency.Options) { o.CountAttempts = true },
		func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected },
		func(o *idempotency.Options) { o.FailOpen = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			run := func(claim func(*idempotency.Guard) []claimed) ([]claimed, []string, map[string]idempotency.Status, *bulkStore) {
				store := &bulkStore{claim: map[string]error{
					"undecided": errThrottled, "full": idempotency.ErrStoreFull, "unusable": idempotency.ErrStoreUnusable, "cancelled": context.Canceled,
				}}
				plain := newGuard(t, &store.MemoryStore, options)
				for key, fingerprint := range map[string]string{"held": "", "done": "", "mismatch": "a"} {
					c, err := plain.Claim(t.Context(), idempotency.Request{Key: key, Fingerprint: fingerprint})
					wantErr(t, err)
					if key == "done" {
						wantErr(t, c.Complete(t.Context(), []byte(`"result"`)))
					}
				}
				_, err := newGuard(t, &store.MemoryStore, options, func(o *idempotency.Options) {
					o.Lease, o.Clock = time.Second, func() time.Time { return time.Now().Add(-time.Minute) }
				}).
					Claim(t.Context(), idempotency.Request{Key: "expired"})
				wantErr(t, err)
				var told eventLines
				got := claim(newGuard(t, store, options, told.option))
				return got, told.take(), store.entries(keys...), store
			}
			single, singleEvents, singleEntries, _ := run(func(g *idempotency.Guard) (got []claimed) {
				for _, r := range requests {
					got = append(got, claimedOf(g.Claim(t.Context(), r)))
				}
				return got
			})
			all, allEvents, allEntries, store := run(func(g *idempotency.Guard) (got []claimed) {
				claims, errs := g.ClaimAll(t.Context(), requests)
				for i := range claims {
					got = append(got, claimedOf(claims[i], errs[i]))
				}
				return got
			})
			for _, diff := range []string{cmp.Diff(single, all), cmp.Diff(singleEvents, allEvents), cmp.Diff(singleEntries, allEntries)} {
				if diff != "" {
					t.Errorf("together (-alone +together):\n%s", diff)
				}
			}
			store.wantCalls(t, "claim 11", "release 2") // all that have a key, and those that are undecided
		})
	}
}

// Claims that are settled together come to what each would come to alone. Only those that are undecided are tried again.
func TestSettleAllIsSettle(t *testing.T) {
	type settling struct {
		key    string
		ending idempotency.Ending
	}
	cases := []settling{
		{"complete", idempotency.EndComplete}, {"complete down", idempotency.EndComplete}, {"complete down once", idempotency.EndComplete},
		{"complete lost", idempotency.EndComplete}, {"complete unusable", idempotency.EndComplete},
		{"complete without result", idempotency.EndComplete}, {"", idempotency.EndComplete},
		{"release", idempotency.EndRelease}, {"release down", idempotency.EndRelease}, {"release lost", idempotency.EndRelease},
		{"release down twice", idempotency.EndRelease}, {"release completed", idempotency.EndRelease},
		{"unstarted", idempotency.EndUnstarted}, {"unstarted down", idempotency.EndUnstarted},
		{"given up", idempotency.EndGivenUp}, {"given up down", idempotency.EndGivenUp}, {"given up free", idempotency.EndGivenUpFree},
		{"given up free down", idempotency.EndGivenUpFree}, {"", idempotency.EndRelease},
	}
	synctest.Test(t, func(t *testing.T) {
		run := func(settle func(context.Context, *idempotency.Guard, []*idempotency.Claim) []string) ([]string, []string, map[string]idempotency.Status, *bulkStore) {
			store := &bulkStore{times: map[string]int{"complete down once": 1, "release down twice": 2}}
			store.complete = map[string]error{
				"complete down": errThrottled, "complete down once": errThrottled, "complete lost": idempotency.ErrClaimLost,
				"complete unusable": idempotency.ErrStoreUnusable, "complete without result": idempotency.ErrResultNotStored, "given up down": errThrottled,
			}
			store.release = map[string]error{
				"release down": errThrottled, "release down twice": errThrottled, "release lost": idempotency.ErrClaimLost,
				"release completed": idempotency.ErrAlreadyCompleted, "unstarted down": errThrottled, "given up free down": errThrottled,
			}
			var told eventLines
			g := newGuard(t, store, told.option, func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected })
			var claims []*idempotency.Claim
			var keys []string
			for _, s := range cases {
				c, err := g.Claim(t.Context(), idempotency.Request{Key: s.key})
				wantErr(t, err)
				claims, keys = append(claims, c), append(keys, s.key)
			}
			store.count = nil
			told.take()
			ctx, cancel := idempotency.Detach(t.Context())
			defer cancel()
			errs := settle(ctx, g, claims)
			return errs, told.take(), store.entries(keys...), store
		}
		single, singleEvents, singleEntries, singleStore := run(func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim) (errs []string) {
			for i, c := range claims {
				var err error
				switch cases[i].ending {
				case idempotency.EndComplete:
					err = c.Complete(ctx, nil)
				case idempotency.EndRelease:
					err = c.Release(ctx)
				case idempotency.EndUnstarted:
					err = c.ReleaseUnstarted(ctx)
				case idempotency.EndGivenUp, idempotency.EndGivenUpFree:
					err = c.GiveUp(ctx, cases[i].ending == idempotency.EndGivenUp)
				}
				errs = append(errs, errorText(err))
			}
			return errs
		})
		all, allEvents, allEntries, allStore := run(func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim) (errs []string) {
			endings := make([]idempotency.Ending, len(cases))
			for i := range cases {
				endings[i] = cases[i].ending
			}
			for _, err := range g.SettleAll(ctx, claims, endings) {
				errs = append(errs, errorText(err))
			}
			return errs
		})
		for _, diff := range []string{
			cmp.Diff(single, all), cmp.Diff(singleEvents, allEvents), cmp.Diff(singleEntries, allEntries), cmp.Diff(singleStore.count, allStore.count),
		} {
			if diff != "" {
				t.Errorf("together (-alone +together):\n%s", diff)
			}
		}
		// The third try is for what is still undecided; that of one claim is no call for many.
		allStore.wantCalls(t, "complete 8", "complete 3", "complete 2", "release 9", "release 4", "release 4")
	})
}
