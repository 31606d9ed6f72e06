package eventbridge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// tb is what *testing.T, *testing.B and *rapid.T have in common.
type tb interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// worker is a handler function that notes the orders it was called with, and fails as it is told.
type worker struct {
	// errs are what it returns for orders, by their ids.
	errs map[string]error
	// work is called for each event before it returns, if it is not nil. What it returns comes before errs.
	work func(ctx context.Context, e *eventbridge.Event[order]) error

	mu  sync.Mutex
	ran []string
}

func (w *worker) handle(ctx context.Context, e *eventbridge.Event[order]) error {
	w.mu.Lock()
	w.ran = append(w.ran, e.Detail.ID)
	w.mu.Unlock()
	if w.work != nil {
		if err := w.work(ctx, e); err != nil {
			return err
		}
	}
	return w.errs[e.Detail.ID]
}

// take returns what ran since it was called last, in the order in which it began.
func (w *worker) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ran := w.ran
	w.ran = nil
	return ran
}

// want checks what ran, in any order.
func (w *worker) want(t tb, ids ...string) {
	t.Helper()
	got := w.take()
	slices.Sort(got)
	slices.Sort(ids)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("orders that ran (-want +got):\n%s", diff)
	}
}

// wantOrder checks what ran, and in which order.
func (w *worker) wantOrder(t tb, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, w.take()); diff != "" {
		t.Errorf("orders that ran, in their order (-want +got):\n%s", diff)
	}
}

func failing(ids ...string) map[string]error {
	errs := map[string]error{}
	for _, id := range ids {
		errs[id] = fmt.Errorf("%s fails", id)
	}
	return errs
}

var discard = slog.New(slog.DiscardHandler)

func newHandler[T any](
	t tb, fn func(context.Context, *eventbridge.Event[T]) error, optFns ...func(*eventbridge.Options),
) *eventbridge.Handler[T] {
	t.Helper()
	quiet := func(o *eventbridge.Options) { o.Logger = discard }
	h, err := eventbridge.NewHandler(fn, append([]func(*eventbridge.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newGuard(t tb, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	if inBulk {
		store = storetest.Bulk(store)
	}
	quiet := func(o *idempotency.Options) { o.Logger = discard }
	guard, err := idempotency.New("invoices", store, append([]func(*idempotency.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// guarded is the option of a guard whose store is new.
func guarded(t tb, optFns ...func(*idempotency.Options)) func(*eventbridge.Options) {
	t.Helper()
	guard := newGuard(t, idempotency.NewMemoryStore(), optFns...)
	return func(o *eventbridge.Options) { o.Idempotency = guard }
}

func concurrency(n int) func(*eventbridge.Options) {
	return func(o *eventbridge.Options) { o.Concurrency = n }
}

func countAttempts(o *idempotency.Options) { o.CountAttempts = true }

// byOrder is the option of a business key.
func byOrder() func(*eventbridge.Options) {
	return eventbridge.KeyOf(func(o order) string { return o.ID })
}

// results is a hook that keeps what became of the records, and their keys.
type results struct {
	mu       sync.Mutex
	outcomes map[string]batch.Outcome // by Record.ID
	keys     []string
	errs     []error // of those that are not done and were not skipped
}

func (r *results) OnRecordFinished(_ context.Context, result *batch.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcomes == nil {
		r.outcomes = map[string]batch.Outcome{}
	}
	r.outcomes[result.Record.ID] = result.Outcome
	r.keys = append(r.keys, result.Record.Key)
	if !result.Outcome.Done() && result.Outcome != batch.Skipped {
		r.errs = append(r.errs, result.Err)
	}
}

func (r *results) option(o *eventbridge.Options) { o.Hooks = append(o.Hooks, r) }

// invoker is any handler of this package.
type invoker interface {
	Invoke(context.Context, []byte) ([]byte, error)
}

// wantDone invokes h and checks that all is done.
func wantDone(t tb, ctx context.Context, h invoker, payload []byte) {
	t.Helper()
	answer, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Errorf("error is %v, want none", err)
	} else if string(answer) != "null" {
		t.Errorf("answer is %q, want null", answer)
	}
}

// wantFailed invokes h and checks that so many of its events failed, and that the error of the first has these parts.
func wantFailed(t tb, ctx context.Context, h invoker, payload []byte, failed, events int, parts ...string) *batch.FailedError {
	t.Helper()
	answer, err := h.Invoke(ctx, payload)
	if answer != nil {
		t.Errorf("answer is %q, want none", answer)
	}
	var e *batch.FailedError
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *batch.FailedError", err, err)
	}
	if e.Failed != failed || e.Records != events {
		t.Errorf("%d of %d events failed, want %d of %d", e.Failed, e.Records, failed, events)
	}
	wantError(t, e.First, parts...)
	return e
}

// wantError checks that err has these parts.
func wantError(t tb, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error is %q, want %q in it", err, part)
		}
	}
}

// within returns a context as Lambda gives one to a function with this timeout.
func within(t *testing.T, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// eachWay runs f with a guard and without one.
func eachWay(t *testing.T, f func(t *testing.T, option func(*eventbridge.Options))) {
	t.Run("guarded", func(t *testing.T) { f(t, guarded(t)) })
	t.Run("bare", func(t *testing.T) { f(t, func(*eventbridge.Options) {}) })
}
