package dynamodbstream_test

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

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// worker is a handler function that notes the changes it was called with, by the notes of their items, and fails as it is
// told.
type worker struct {
	// errs are what it returns for changes.
	errs map[string]error
	// work is called for each change before it returns, if it is not nil. What it returns comes before errs.
	work func(ctx context.Context, c *dynamodbstream.Change[order]) error

	mu  sync.Mutex
	ran []string
}

// note returns that of the item, whatever was done to it.
func note(c *dynamodbstream.Change[order]) string {
	if c.New == nil {
		return c.Old.Note
	}
	return c.New.Note
}

func (w *worker) handle(ctx context.Context, c *dynamodbstream.Change[order]) error {
	n := note(c)
	w.mu.Lock()
	w.ran = append(w.ran, n)
	w.mu.Unlock()
	if w.work != nil {
		if err := w.work(ctx, c); err != nil {
			return err
		}
	}
	return w.errs[n]
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
func (w *worker) want(t testing.TB, notes ...string) {
	t.Helper()
	got := w.take()
	slices.Sort(got)
	slices.Sort(notes)
	if diff := cmp.Diff(notes, got); diff != "" {
		t.Errorf("changes that ran (-want +got):\n%s", diff)
	}
}

// wantOrder checks what ran, and in which order.
func (w *worker) wantOrder(t testing.TB, notes ...string) {
	t.Helper()
	if diff := cmp.Diff(notes, w.take()); diff != "" {
		t.Errorf("changes that ran, in their order (-want +got):\n%s", diff)
	}
}

func failing(notes ...string) map[string]error {
	errs := map[string]error{}
	for _, n := range notes {
		errs[n] = fmt.Errorf("%s fails", n)
	}
	return errs
}

func quiet(o *dynamodbstream.Options) { o.Logger = discard() }

func newHandler[T any](
	t testing.TB, fn func(context.Context, *dynamodbstream.Change[T]) error, optFns ...func(*dynamodbstream.Options),
) *dynamodbstream.Handler[T] {
	t.Helper()
	h, err := dynamodbstream.NewHandler(fn, append([]func(*dynamodbstream.Options){quiet}, optFns...)...)
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
func wantCheckpoint(t testing.TB, ctx context.Context, h invoker, payload []byte, number string) {
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
func wantInvokeError(t testing.TB, ctx context.Context, h invoker, payload []byte, parts ...string) {
	t.Helper()
	response, err := h.Invoke(ctx, payload)
	if response != nil {
		t.Errorf("answer is %q, want none", response)
	}
	wantError(t, err, parts...)
}

// wantError checks that err has these parts.
func wantError(t testing.TB, err error, parts ...string) {
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

func newGuard(t testing.TB, store idempotency.Store, optFns ...func(*idempotency.Options)) *idempotency.Guard {
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

// withStore is an option: a guard over the store.
func withStore(t testing.TB, store idempotency.Store, optFns ...func(*idempotency.Options)) func(*dynamodbstream.Options) {
	t.Helper()
	guard := newGuard(t, store, optFns...)
	return func(o *dynamodbstream.Options) { o.Idempotency = guard }
}

// guarded is an option: a guard with a memory store of its own.
func guarded(t testing.TB, optFns ...func(*idempotency.Options)) func(*dynamodbstream.Options) {
	t.Helper()
	return withStore(t, idempotency.NewMemoryStore(), optFns...)
}

// unprotected is an option of a guard.
func unprotected(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }

// countAttempts is an option of a guard.
func countAttempts(o *idempotency.Options) { o.CountAttempts = true }

// byNote is an option: the key is the note of the item.
func byNote() func(*dynamodbstream.Options) { return dynamodbstream.KeyOf(note) }

// sink is a dead-letter sink.
type sink struct {
	err   error // what it returns
	taken []string
	errs  []error // of the records it was given
}

// giveUpAfter is an option: after so many attempts, or none, the sink gets a change.
func (s *sink) giveUpAfter(attempts int) func(*dynamodbstream.Options) {
	return func(o *dynamodbstream.Options) {
		o.MaxAttempts = attempts
		o.DeadLetter = func(_ context.Context, r *batch.Record, err error) error {
			s.taken = append(s.taken, fmt.Sprintf("%s at %d", r.ID, r.Attempt))
			s.errs = append(s.errs, err)
			return s.err
		}
	}
}

func (s *sink) want(t testing.TB, taken ...string) {
	t.Helper()
	if diff := cmp.Diff(taken, s.taken); diff != "" {
		t.Errorf("changes that the sink was given (-want +got):\n%s", diff)
	}
	s.taken = nil
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func concurrency(n int) func(*dynamodbstream.Options) {
	return func(o *dynamodbstream.Options) { o.Concurrency = n }
}

func serial(o *dynamodbstream.Options) { o.Serial = true }

func errorOn(on batch.ErrorOn) func(*dynamodbstream.Options) {
	return func(o *dynamodbstream.Options) { o.ErrorOn = on }
}

// eachWay runs a test with little and much concurrency, with a guard and without.
func eachWay(t *testing.T, test func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options))) {
	t.Helper()
	for _, n := range []int{1, 2, 10} {
		for _, isGuarded := range []bool{false, true} {
			t.Run("concurrency "+strconv.Itoa(n)+", guard "+strconv.FormatBool(isGuarded), func(t *testing.T) {
				guard := func(*dynamodbstream.Options) {}
				if isGuarded {
					guard = guarded(t)
				}
				test(t, isGuarded, func(o *dynamodbstream.Options) {
					o.Concurrency = n
					guard(o)
				})
			})
		}
	}
}

// inOrder adds Serial to the options of a handler without a guard, of which otherwise any change may fail first and stop
// all others.
func inOrder(isGuarded bool, options func(*dynamodbstream.Options)) func(*dynamodbstream.Options) {
	return func(o *dynamodbstream.Options) {
		options(o)
		o.Serial = !isGuarded
	}
}
