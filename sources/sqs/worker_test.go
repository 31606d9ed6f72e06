package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// worker is a handler function that notes which messages it was called with, and fails as it is told.
type worker struct {
	// errs are what it returns for messages, by their IDs.
	errs map[string]error
	// work is called for each message before it returns, if it is not nil. What it returns comes before errs.
	work func(ctx context.Context, m *sqs.Message[string]) error

	mu  sync.Mutex
	ran []string
}

func (w *worker) handle(ctx context.Context, m *sqs.Message[string]) error {
	w.mu.Lock()
	w.ran = append(w.ran, m.ID())
	w.mu.Unlock()
	if w.work != nil {
		if err := w.work(ctx, m); err != nil {
			return err
		}
	}
	return w.errs[m.ID()]
}

// take returns which messages ran since it was called last, in the order in which they began.
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
		t.Errorf("messages that ran (-want +got):\n%s", diff)
	}
}

// wantOrder checks what ran, and in which order.
func (w *worker) wantOrder(t tb, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, w.take()); diff != "" {
		t.Errorf("messages that ran, in their order (-want +got):\n%s", diff)
	}
}

func failing(ids ...string) map[string]error {
	errs := map[string]error{}
	for _, id := range ids {
		errs[id] = fmt.Errorf("%s fails", id)
	}
	return errs
}

func newHandler[T any](t tb, fn func(context.Context, *sqs.Message[T]) error, optFns ...func(*sqs.Options)) *sqs.Handler[T] {
	t.Helper()
	quiet := func(o *sqs.Options) { o.Logger = discard() }
	h, err := sqs.NewHandler(fn, append([]func(*sqs.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// invoker is any sqs.Handler.
type invoker interface {
	Invoke(context.Context, []byte) ([]byte, error)
}

// wantFailures invokes h and checks which messages are reported, and in which order.
func wantFailures(t tb, ctx context.Context, h invoker, payload []byte, ids ...string) {
	t.Helper()
	response, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]string{}, ids...), answer(t, response)); diff != "" {
		t.Errorf("messages reported as failed (-want +got):\n%s", diff)
	}
}

func newGuard(t tb, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	if inBulk {
		store = storetest.Bulk(store)
	}
	quiet := func(o *idempotency.Options) { o.Logger = discard() }
	guard, err := idempotency.New("orders", store, append([]func(*idempotency.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// guarded is an option: a guard with a memory store of its own.
func guarded(t tb, optFns ...func(*idempotency.Options)) func(*sqs.Options) {
	guard := newGuard(t, idempotency.NewMemoryStore(), optFns...)
	return func(o *sqs.Options) { o.Idempotency = guard }
}

func concurrency(n int) func(*sqs.Options) { return func(o *sqs.Options) { o.Concurrency = n } }

// eachWay runs a test with little and much concurrency, with a guard and without.
func eachWay(t *testing.T, test func(t *testing.T, options func(*sqs.Options))) {
	for _, n := range []int{1, 2, 10} {
		for _, isGuarded := range []bool{false, true} {
			t.Run("concurrency "+strconv.Itoa(n)+", guard "+strconv.FormatBool(isGuarded), func(t *testing.T) {
				guard := func(*sqs.Options) {}
				if isGuarded {
					guard = guarded(t)
				}
				test(t, func(o *sqs.Options) {
					o.Concurrency = n
					guard(o)
				})
			})
		}
	}
}

// tb is what the helpers need of a *testing.T or a *rapid.T, which is no testing.TB.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
