package kinesis_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// worker is a handler function that notes the data it was called with, and fails as it is told.
type worker struct {
	// errs are what it returns for records, by their data.
	errs map[string]error
	// work is called for each record before it returns, if it is not nil. What it returns comes before errs.
	work func(ctx context.Context, r *kinesis.Record[string]) error

	mu  sync.Mutex
	ran []string
}

func (w *worker) handle(ctx context.Context, r *kinesis.Record[string]) error {
	w.mu.Lock()
	w.ran = append(w.ran, r.Data)
	w.mu.Unlock()
	if w.work != nil {
		if err := w.work(ctx, r); err != nil {
			return err
		}
	}
	return w.errs[r.Data]
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
func (w *worker) want(t tb, data ...string) {
	t.Helper()
	got := w.take()
	slices.Sort(got)
	slices.Sort(data)
	if diff := cmp.Diff(data, got); diff != "" {
		t.Errorf("records that ran (-want +got):\n%s", diff)
	}
}

// wantOrder checks what ran, and in which order.
func (w *worker) wantOrder(t tb, data ...string) {
	t.Helper()
	if diff := cmp.Diff(data, w.take()); diff != "" {
		t.Errorf("records that ran, in their order (-want +got):\n%s", diff)
	}
}

func failing(data ...string) map[string]error {
	errs := map[string]error{}
	for _, d := range data {
		errs[d] = fmt.Errorf("%s fails", d)
	}
	return errs
}

func newHandler[T any](
	t tb, fn func(context.Context, *kinesis.Record[T]) error, optFns ...func(*kinesis.Options),
) *kinesis.Handler[T] {
	t.Helper()
	quiet := func(o *kinesis.Options) { o.Logger = discard() }
	h, err := kinesis.NewHandler(fn, append([]func(*kinesis.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// invoker is any handler of this package.
type invoker interface {
	Invoke(context.Context, []byte) ([]byte, error)
}

// wantCheckpoint invokes h and checks that the answer names that sequence number and no other, or, if it is "", none.
func wantCheckpoint(t tb, ctx context.Context, h invoker, payload []byte, number string) {
	t.Helper()
	response, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer(number), string(response)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// wantInvokeError invokes h and checks that it returns no answer, but an error with these parts.
func wantInvokeError(t tb, ctx context.Context, h invoker, payload []byte, parts ...string) {
	t.Helper()
	response, err := h.Invoke(ctx, payload)
	if response != nil {
		t.Errorf("answer is %q, want none", response)
	}
	wantError(t, err, parts...)
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

func newGuard(t tb, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	if inBulk {
		store = storetest.Bulk(store)
	}
	quiet := func(o *idempotency.Options) { o.Logger = discard() }
	guard, err := idempotency.New("clicks", store, append([]func(*idempotency.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// withStore is an option: a guard over the store.
func withStore(t tb, store idempotency.Store, optFns ...func(*idempotency.Options)) func(*kinesis.Options) {
	guard := newGuard(t, store, optFns...)
	return func(o *kinesis.Options) { o.Idempotency = guard }
}

// guarded is an option: a guard with a memory store of its own.
func guarded(t tb, optFns ...func(*idempotency.Options)) func(*kinesis.Options) {
	return withStore(t, idempotency.NewMemoryStore(), optFns...)
}

// unprotected is an option of a guard.
func unprotected(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func concurrency(n int) func(*kinesis.Options) { return func(o *kinesis.Options) { o.Concurrency = n } }

func serial(o *kinesis.Options) { o.Serial = true }

// eachWay runs a test with little and much concurrency, with a guard and without. Without one the shard is serial, since it
// is left to chance otherwise what has begun when a failure stops the rest.
func eachWay(t *testing.T, test func(t *testing.T, guarded bool, options func(*kinesis.Options))) {
	for _, n := range []int{1, 2, 10} {
		for _, isGuarded := range []bool{false, true} {
			t.Run("concurrency "+strconv.Itoa(n)+", guard "+strconv.FormatBool(isGuarded), func(t *testing.T) {
				guard := serial
				if isGuarded {
					guard = guarded(t)
				}
				test(t, isGuarded, func(o *kinesis.Options) {
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
