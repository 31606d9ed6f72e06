package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Case 18: the work is done, but its completion is not stored. It counts as done and is said so, its claim is not
// released, and its effect is not repeated while the lease holds.
func TestStoreFailsToComplete(t *testing.T) {
	for _, n := range []int{1, 10} {
		for _, isFailed := range []bool{false, true} {
			t.Run(fmt.Sprintf("concurrency %d, fail unrecorded %v", n, isFailed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var logged logs
					store := &faults{OnComplete: func() error { return errStore }}
					w := &worker{}
					h := newHandler(t, w.handle, concurrency(n), logged.option,
						withStore(t, store, func(o *idempotency.Options) { o.FailUnrecorded = isFailed }))
					// The rest of its group does not start: a redelivery of a1 might run behind it.
					failed := []string{"a2"}
					if isFailed {
						failed = []string{"a1", "a2"}
					}
					messages := grouped("a1", "a2")
					wantFailures(t, t.Context(), h, event(messages...), failed...)
					w.want(t, "a1")
					wantEntry(t, store, "a1", idempotency.InProgress)
					if got := store.Completes.Load(); got != 3 || store.Releases.Load() != 0 {
						t.Errorf("%d completions and %d releases, want 3 and 0", got, store.Releases.Load())
					}
					line := logged.Failure(t, "a1")
					if !strings.Contains(line.Error, errStore.Error()) || strings.Contains(logged.Text(), `"unrecorded":true`) == isFailed {
						t.Errorf("line is %+v, want it with %q", line, errStore)
					}
					wantFailures(t, t.Context(), h, event(messages...), "a1", "a2")
					w.want(t) // the lease holds
				})
			})
		}
	}
}

// A completion that fails at first is tried again.
func TestStoreCompletesInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		store := &faults{OnComplete: func() error {
			if tries++; tries < 3 {
				return errStore
			}
			return nil
		}}
		w := &worker{}
		h := newHandler(t, w.handle, withStore(t, store))
		wantFailures(t, t.Context(), h, event(numbered(1)...))
		wantFailures(t, t.Context(), h, event(numbered(1)...))
		w.want(t, "m1")
		wantEntry(t, store, "m1", idempotency.Completed)
	})
}

// Case 19: the handler's error comes first, the release's is kept too.
func TestStoreFailsToRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errHandler := errors.New("handler failed")
		w := &worker{errs: map[string]error{"m1": errHandler}}
		store := &faults{OnRelease: func() error { return errStore }}
		h := newHandler(t, w.handle, withStore(t, store), func(o *sqs.Options) { o.ErrorOn = batch.ErrorOnAnyFailure })
		_, err := h.Invoke(t.Context(), event(numbered(1)...))
		if !errors.Is(err, errHandler) || !errors.Is(err, errStore) {
			t.Fatalf("error is %v, want both %v and %v", err, errHandler, errStore)
		}
		if text := err.Error(); strings.Index(text, errHandler.Error()) > strings.Index(text, errStore.Error()) {
			t.Errorf("error is %q, want the handler's first", text)
		}
	})
}

// A claim that cannot be decided is released in case it was made. The handler does not run.
func TestStoreLeavesClaimUndecided(t *testing.T) {
	for name, store := range map[string]*faults{
		"request lost": {OnClaim: func() error { return errStore }},
		"reply lost":   {OnClaimed: func() error { return errStore }},
	} {
		t.Run(name, func(t *testing.T) {
			var logged logs
			w := &worker{}
			h := newHandler(t, w.handle, withStore(t, store), logged.option)
			wantFailures(t, t.Context(), h, event(numbered(2)...), "m1", "m2")
			w.want(t)
			wantEntry(t, store, "m1", idempotency.Absent)
			if store.Releases.Load() != 2 {
				t.Errorf("%d releases, want 2", store.Releases.Load())
			}
			if text := logged.Failure(t, "m1").Error; !strings.Contains(text, `claim of "m1" is undecided: store is down`) {
				t.Errorf("error is %q, want one that says so", text)
			}
			store.OnClaim, store.OnClaimed = nil, nil
			wantFailures(t, t.Context(), h, event(numbered(2)...))
			w.want(t, "m1", "m2")
		})
	}
}

// Case 30: a store that cannot work is said once, not once a record. Nothing runs, all is reported.
func TestStoreIsUnusable(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		var logged logs
		store := &faults{OnClaim: func() error { return fmt.Errorf("%w: no table", idempotency.ErrStoreUnusable) }}
		w := &worker{}
		h := newHandler(t, w.handle, concurrency(n), withStore(t, store), logged.option)
		var ids []string
		for _, m := range numbered(100) {
			ids = append(ids, m.ID)
		}
		wantFailures(t, t.Context(), h, event(numbered(100)...), ids...)
		w.want(t)
		loud := slices.DeleteFunc(logged.Lines(t), func(n sourcetest.Line) bool { return n.Level == "DEBUG" || n.Msg == "batch finished" })
		if len(loud) != 1 || !strings.Contains(loud[0].Error, "idempotency: store is unusable: no table") {
			t.Errorf("lines: %+v, want one that says it", loud)
		}
		most := n // one a worker
		if inBulk {
			most = max(n, storetest.Bulk(store).BulkSizes().Settle) // one call: no more before any has run
		}
		if got := store.Claims.Load(); got > int32(most) {
			t.Errorf("%d claims were tried, want at most %d", got, most)
		}
	}
}

// A store without room refuses new claims. What it knows is still replayed.
func TestStoreIsFull(t *testing.T) {
	store := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = 2 })
	w := &worker{}
	h := newHandler(t, w.handle, concurrency(1), withStore(t, store))
	wantFailures(t, t.Context(), h, event(numbered(3)...), "m3")
	wantFailures(t, t.Context(), h, event(numbered(3)...), "m3")
	w.want(t, "m1", "m2")
}

// A store that panics fails the record whose turn it was.
func TestStorePanics(t *testing.T) {
	for name, store := range map[string]*faults{
		"claim":    {OnClaim: func() error { panic("no store") }},
		"complete": {OnComplete: func() error { panic("no store") }},
	} {
		t.Run(name, func(t *testing.T) {
			var logged logs
			h := newHandler(t, (&worker{}).handle, withStore(t, store), logged.option)
			wantFailures(t, t.Context(), h, event(numbered(1)...), "m1")
			if line := logged.Failure(t, "m1"); !strings.Contains(line.Error, "no store") || line.Stack == "" {
				t.Errorf("line is %+v, want the panic and its stack", line)
			}
		})
	}
}

// Rule 17: a message that is dead-lettered under its own identity is done. Under a business key the redrive from the
// sink, which has another identity, must be able to run.
func TestStoreOfADeadLetteredMessage(t *testing.T) {
	business := sqs.KeyOf(func(o order) string { return o.ID })
	for _, test := range []struct {
		name     string
		options  []func(*sqs.Options)
		key      string
		want     idempotency.Status
		sink     error
		reported []string
	}{
		{"own key", nil, "m1", idempotency.Completed, nil, nil},
		{"business key", []func(*sqs.Options){business}, "o1", idempotency.Absent, nil, nil},
		{"own key, sink fails", nil, "m1", idempotency.Absent, errors.New("sink is full"), []string{"m1"}},
		{"business key, sink fails", []func(*sqs.Options){business}, "o1", idempotency.Absent, errors.New("sink is full"), []string{"m1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := idempotency.NewMemoryStore()
			sinks, runs := 0, 0
			options := append(test.options, withStore(t, store), func(o *sqs.Options) {
				o.DeadLetter = func(_ context.Context, r *batch.Record, err error) error {
					sinks++
					wantEntry(t, store, test.key, idempotency.InProgress) // the sink runs inside of the claim
					if r.Key != test.key || r.Value.(*sqs.Message[order]).ID() != "m1" || !batch.IsPermanent(err) {
						t.Errorf("sink got %+v and %v, want m1 under %q and its permanent error", r, err, test.key)
					}
					return test.sink
				}
			})
			h := newHandler(t, func(context.Context, *sqs.Message[order]) error {
				runs++
				return batch.Permanent(errors.New("poison"))
			}, options...)
			payload := event(message{ID: "m1", Body: `{"id":"o1"}`})
			wantFailures(t, t.Context(), h, payload, test.reported...)
			wantEntry(t, store, test.key, test.want)
			wantFailures(t, t.Context(), h, payload, test.reported...)
			want := 2
			if test.want == idempotency.Completed {
				want = 1
			}
			if runs != want || sinks != want {
				t.Errorf("%d runs and %d calls of the sink, want %d", runs, sinks, want)
			}
		})
	}
}

// A claim whose reply comes too late starts nothing: it is released, and the message is skipped.
func TestStoreRepliesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faults{OnClaimed: func() error { time.Sleep(9500 * time.Millisecond); return nil }} // into the reserve
		w := &worker{}
		h := newHandler(t, w.handle, withStore(t, store))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantFailures(t, ctx, h, event(numbered(1)...), "m1")
		w.want(t)
		synctest.Wait()
		wantEntry(t, store, "m1", idempotency.Absent)
	})
}

// A completion that is on its way when the answer goes out arrives: it is not the batch's to cancel. If it did not, the
// message would run again although its handler succeeded in time.
func TestStoreCompletesAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowCompletion{MemoryStore: idempotency.NewMemoryStore(), delay: time.Second}
		w := &worker{work: func(context.Context, *sqs.Message[string]) error {
			time.Sleep(54500 * time.Millisecond) // half a second before the answer
			return nil
		}}
		h := newHandler(t, w.handle, withStore(t, store), func(o *sqs.Options) { o.Reserve = 10 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantFailures(t, ctx, h, event(numbered(1)...), "m1")
		time.Sleep(2 * time.Second)
		wantEntry(t, store, "m1", idempotency.Completed)
	})
}

// slowCompletion takes a while for completions, as a store behind a network does, and gives up when the context ends.
type slowCompletion struct {
	*idempotency.MemoryStore
	delay time.Duration
}

func (s *slowCompletion) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	select {
	case <-time.After(s.delay):
		return s.MemoryStore.Complete(ctx, r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Two invocations of one process that get the same messages at once run each of them once.
func TestStoreIsSharedByInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{work: func(context.Context, *sqs.Message[string]) error { time.Sleep(time.Second); return nil }}
		store := idempotency.NewMemoryStore()
		var handlers [2]*sqs.Handler[string]
		for i := range handlers {
			handlers[i] = newHandler(t, w.handle, withStore(t, store), concurrency(3))
		}
		payload := event(numbered(20)...)
		reported := make([][]string, 4)
		var invocations sync.WaitGroup
		for i := range reported {
			invocations.Go(func() {
				response, err := handlers[i%2].Invoke(t.Context(), payload)
				if err != nil {
					t.Error(err)
					return
				}
				reported[i] = answer(t, response)
			})
		}
		invocations.Wait()
		ran := w.take()
		slices.Sort(ran)
		if len(slices.Compact(ran)) != 20 || len(ran) != 20 {
			t.Errorf("%d runs of %d messages, want 20 of 20", len(ran), len(slices.Compact(ran)))
		}
		for i, ids := range reported {
			for _, id := range ids {
				if !slices.ContainsFunc(reported, func(others []string) bool { return !slices.Contains(others, id) }) {
					t.Errorf("invocation %d and all others report %s, which succeeded in one of them", i, id)
				}
			}
		}
	})
}
