package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// transactor is a store in memory whose transactions are lists of words.
type transactor struct {
	faultStore
	commit func(key string, try int) error // what a commit ends with in place of being applied; nil: it is applied
	late   bool                            // a commit that fails is applied all the same

	words  sync.Mutex
	begun  int
	tries  map[string]int
	stored []string
}

func newTransactor(commit func(key string, try int) error) *transactor {
	return &transactor{commit: commit, tries: map[string]int{}}
}

// ending makes every commit end with err.
func ending(err error) func(string, int) error { return func(string, int) error { return err } }

func (s *transactor) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	s.words.Lock()
	defer s.words.Unlock()
	s.begun++
	return &words{store: s, key: r.Key, owner: r.Owner}
}

type words struct {
	store      *transactor
	key, owner string

	mu     sync.Mutex
	closed bool
	list   []string
}

func (w *words) Close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return len(w.list) > 0
}

func (w *words) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if r.Key != w.key || r.Owner != w.owner {
		return fmt.Errorf("complete %q of %q, want %q of %q", r.Key, r.Owner, w.key, w.owner)
	}
	s := w.store
	s.words.Lock()
	defer s.words.Unlock()
	s.tries[w.key]++
	var err error
	if s.commit != nil {
		err = s.commit(w.key, s.tries[w.key])
	}
	if err == nil || s.late || errors.Is(err, idempotency.ErrResultNotStored) {
		if stored := s.MemoryStore.Complete(ctx, r); stored != nil {
			return stored
		}
		s.stored = append(s.stored, w.list...)
	}
	return err
}

// add lets the work that ctx belongs to collect a word.
func add(ctx context.Context, word string) error {
	t, err := idempotency.TransactionFrom(ctx)
	if err != nil {
		return err
	}
	w := t.(*words)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("closed")
	}
	w.list = append(w.list, word)
	return nil
}

// saying makes a function for Do that collects words and ends as it is told.
func saying(err error, list ...string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		for _, word := range list {
			if err := add(ctx, word); err != nil {
				return 0, err
			}
		}
		return 7, err
	}
}

// What becomes of work with a transaction, by what becomes of that.
func TestDoWithTransaction(t *testing.T) {
	errDown := errors.New("store is down")
	cancelled := fmt.Errorf("%w: a condition failed", idempotency.ErrTransactionCancelled)
	for _, test := range []struct {
		name       string
		commit     func(key string, try int) error
		late       bool
		release    fault
		want       error
		wantToo    error
		unrecorded bool
		calls      string
		tries      int
		events     string
		stored     []string
		status     idempotency.Status
	}{
		{name: "applied", calls: "claim", tries: 1, events: "claimed, completed", stored: []string{"a", "b"}, status: idempotency.Completed},
		{name: "applied without the result", commit: ending(idempotency.ErrResultNotStored), calls: "claim", tries: 1,
			events: "claimed, result not stored", stored: []string{"a", "b"}, status: idempotency.Completed},
		{name: "lost", commit: ending(idempotency.ErrClaimLost), want: idempotency.ErrClaimLost, calls: "claim", tries: 1,
			events: "claimed, lost", status: idempotency.InProgress},
		{name: "cancelled", commit: ending(cancelled), want: idempotency.ErrTransactionCancelled, calls: "claim release", tries: 1,
			events: "claimed, cancelled"},
		{name: "cancelled, release fails", commit: ending(cancelled), release: refuse(errDown),
			want: idempotency.ErrTransactionCancelled, wantToo: errDown, calls: "claim release release release", tries: 1,
			events: "claimed, cancelled", status: idempotency.InProgress},
		{name: "cancelled, but an earlier copy was applied", commit: ending(cancelled), late: true, calls: "claim release", tries: 1,
			events: "claimed, completed", stored: []string{"a", "b"}, status: idempotency.Completed},
		{name: "undecided", commit: ending(errDown), want: idempotency.ErrTransactionUndecided, wantToo: errDown, unrecorded: true,
			calls: "claim", tries: 3, events: "claimed, unrecorded", status: idempotency.InProgress},
		{name: "undecided at first", calls: "claim", tries: 2, events: "claimed, completed", stored: []string{"a", "b"}, status: idempotency.Completed,
			commit: func(_ string, try int) error {
				if try == 1 {
					return errDown
				}
				return nil
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newTransactor(test.commit)
				store.late, store.onRelease = test.late, test.release
				var r recorder
				result, err := idempotency.Do(t.Context(), newGuard(t, store, hooks(&r)), "k", saying(nil, "a", "b"))
				if !errors.Is(err, test.want) || test.wantToo != nil && !errors.Is(err, test.wantToo) {
					t.Errorf("error is %v, want %v and %v", err, test.want, test.wantToo)
				}
				if result.Unrecorded != test.unrecorded || result.Value != 7 {
					t.Errorf("result is %+v, want 7, unrecorded: %t", result, test.unrecorded)
				}
				got := []any{strings.Join(store.calls, " "), store.tries["orders#k"], r.take(), store.stored, store.begun}
				if diff := cmp.Diff([]any{test.calls, test.tries, test.events, test.stored, 1}, got); diff != "" {
					t.Errorf("calls, tries, events, stored, begun (-want +got):\n%s", diff)
				}
				claim, err := store.MemoryStore.Claim(t.Context(), claimOf("orders#k", time.Now()))
				if err != nil || claim.Entry.Status != test.status && !claim.Claimed || claim.Claimed != (test.status == idempotency.Absent) {
					t.Errorf("the entry is %+v, %v, want %v", claim, err, test.status)
				}
			})
		})
	}
}

// Work that does not ask, or collects nothing, or fails, is completed and released as work without a transaction is.
func TestDoWithoutCollecting(t *testing.T) {
	errWork := errors.New("no")
	for _, test := range []struct {
		name  string
		work  func(context.Context) (int, error)
		begun int
		calls string
	}{
		{"not asked", returns(7, nil), 0, "claim complete"},
		{"nothing collected", func(ctx context.Context) (int, error) {
			_, err := idempotency.TransactionFrom(ctx)
			return 7, err
		}, 1, "claim complete"},
		{"failed", saying(errWork, "a"), 1, "claim release"},
		{"panicked", func(ctx context.Context) (int, error) {
			_ = add(ctx, "a")
			panic("work")
		}, 1, "claim release"},
	} {
		store := newTransactor(nil)
		run(func() { _, _ = idempotency.Do(t.Context(), newGuard(t, store), "k", test.work) })
		got := []any{store.begun, strings.Join(store.calls, " "), len(store.stored), len(store.tries)}
		if diff := cmp.Diff([]any{test.begun, test.calls, 0, 0}, got); diff != "" {
			t.Errorf("%s: begun, calls, stored, tries (-want +got):\n%s", test.name, diff)
		}
	}
}

// SettleAll commits what has a transaction to commit one by one, and settles the others as ever.
func TestSettleAllWithTransactions(t *testing.T) {
	store := newTransactor(func(key string, _ int) error {
		switch key {
		case "orders#cancelled":
			return idempotency.ErrTransactionCancelled
		case "orders#panics":
			panic("store")
		}
		return nil
	})
	var r recorder
	guard := newGuard(t, store, hooks(&r))
	keys := []string{"plain", "applied", "cancelled", "panics", "failed", "given up", "unstarted"}
	endings := []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete, idempotency.EndComplete, idempotency.EndComplete,
		idempotency.EndRelease, idempotency.EndGivenUp, idempotency.EndUnstarted}
	requests := make([]idempotency.Request, len(keys))
	for i, key := range keys {
		requests[i].Key = key
	}
	claims, errs := guard.ClaimAll(t.Context(), requests)
	for i, c := range claims {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if i > 0 {
			if err := add(c.Context(t.Context()), keys[i]); err != nil {
				t.Error(err)
			}
		}
	}
	r.take()
	errs = guard.SettleAll(t.Context(), claims, endings)
	for i, want := range []error{2: idempotency.ErrTransactionCancelled, 3: idempotency.ErrTransactionUndecided, 6: nil} {
		if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
			t.Errorf("%s: error is %v, want %v", keys[i], errs[i], want)
		}
	}
	if diff := cmp.Diff([]string{"applied"}, store.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("completed, completed, cancelled, unrecorded, released, given up, unstarted", r.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(store.completes) != 2 || len(store.releases) != 3 {
		t.Errorf("%d completions, %d releases, want 2 (plain, given up) and 3 (cancelled, failed, unstarted)", len(store.completes), len(store.releases))
	}
}

// A part of the work that fails takes what was collected with it. It can be tried again, and what follows a failure in
// which nothing is to be collected, as in a dead-letter sink, cannot collect.
func TestClaimRun(t *testing.T) {
	store := newTransactor(nil)
	c, err := newGuard(t, store).Claim(t.Context(), idempotency.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := c.Context(t.Context())
	attempt := func(err error, list ...string) func() error {
		return func() error {
			_, err := saying(err, list...)(ctx)
			return err
		}
	}
	errWork := errors.New("no")
	if err := c.Run(attempt(errWork, "first")); !errors.Is(err, errWork) {
		t.Errorf("error is %v, want the work's", err)
	}
	if err := add(ctx, "between"); err == nil {
		t.Error("collected after a failure")
	}
	if e := run(func() { _ = c.Run(func() error { _ = add(ctx, "second"); panic("work") }) }); e.recovered != "work" {
		t.Errorf("recovered %v, want the work's panic", e.recovered)
	}
	if err := c.Run(attempt(nil, "third")); err != nil {
		t.Error(err)
	}
	if err := add(ctx, "after"); err != nil {
		t.Errorf("after success: %v", err)
	}
	if err := c.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"third", "after"}, store.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if err := add(ctx, "late"); err == nil || !strings.Contains(err.Error(), `the work of "k" has ended`) {
		t.Errorf("error is %v, want that the work has ended", err)
	}
}

// What a run that succeeded has collected is not lost silently with that of one that fails, before or beside it.
func TestClaimRunMixed(t *testing.T) {
	errWork := errors.New("no")
	for _, beside := range []bool{false, true} {
		store := newTransactor(nil)
		c, err := newGuard(t, store).Claim(t.Context(), idempotency.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		ctx := c.Context(t.Context())
		fails := func() error { return c.Run(func() error { return errors.Join(errWork, add(ctx, "b")) }) }
		err = c.Run(func() error {
			err := add(ctx, "a")
			if beside && !errors.Is(fails(), errWork) {
				t.Error("the work has not failed")
			}
			return err
		})
		if err != nil || !beside && !errors.Is(fails(), errWork) {
			t.Error(err)
		}
		if err := c.Complete(t.Context(), nil); !errors.Is(err, idempotency.ErrTransactionCancelled) {
			t.Errorf("beside %t: error is %v, want %v", beside, err, idempotency.ErrTransactionCancelled)
		}
		if got := strings.Join(store.calls, " "); got != "claim release" || len(store.stored) > 0 {
			t.Errorf("beside %t: calls are %q, stored %q, want the claim released", beside, got, store.stored)
		}
	}
}

// Work that is given up has failed, so that nothing it has collected is stored, whether its key is done or free.
func TestGiveUpWithTransaction(t *testing.T) {
	for _, done := range []bool{true, false} {
		store := newTransactor(nil)
		c, err := newGuard(t, store).Claim(t.Context(), idempotency.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if err := add(c.Context(t.Context()), "a"); err != nil {
			t.Error(err)
		}
		if err := c.GiveUp(t.Context(), done); err != nil {
			t.Error(err)
		}
		if len(store.stored) > 0 || len(store.tries) > 0 {
			t.Errorf("done %t: stored %q in %d transactions, want nothing", done, store.stored, len(store.tries))
		}
	}
}
