package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// crampedStore has no room for results.
type crampedStore struct{ faultStore }

func (s *crampedStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	r.Data = nil
	if err := s.faultStore.Complete(ctx, r); err != nil {
		return err
	}
	return fmt.Errorf("2 bytes, the limit is 1: %w", idempotency.ErrResultNotStored)
}

// Rule 9, case 18: work that has succeeded is never released. Its completion is tried three times where that may help,
// and what comes of that is told.
func TestCompletion(t *testing.T) {
	const (
		reason     = ` key=k error="idempotency: completion of \"k\": %v"` + "\n"
		unrecorded = `level=ERROR msg="idempotent work is done but not recorded as done"` + reason
		notStored  = `level=WARN msg="idempotent result is not stored and cannot be replayed"` + reason
	)
	unusable := fmt.Errorf("no table: %w", idempotency.ErrStoreUnusable)
	throttledThenLost := func(_ context.Context, n int, _ func() error) error {
		if n == 0 {
			return errThrottled
		}
		return idempotency.ErrClaimLost
	}
	for _, test := range []struct {
		name       string
		fault      fault
		cramped    bool
		tries      int
		unrecorded bool
		want       []error
		log        string
	}{
		{"stored", nil, false, 1, false, nil, ""},
		{"throttled once", first(1, refuse(errThrottled)), false, 2, false, nil, ""},
		{"throttled twice", first(2, refuse(errThrottled)), false, 3, false, nil, ""},
		{"reply lost once", first(1, loseReply(errThrottled)), false, 2, false, nil, ""}, // rule 3
		{"throttled for good", refuse(errThrottled), false, 3, true, []error{errThrottled},
			fmt.Sprintf(unrecorded, errThrottled)},
		{"reply lost for good", loseReply(errThrottled), false, 3, true, []error{errThrottled},
			fmt.Sprintf(unrecorded, errThrottled)},
		{"full", refuse(idempotency.ErrStoreFull), false, 3, true, []error{idempotency.ErrStoreFull},
			fmt.Sprintf(unrecorded, idempotency.ErrStoreFull)},
		{"unusable", refuse(unusable), false, 1, true, []error{idempotency.ErrStoreUnusable},
			fmt.Sprintf(unrecorded, unusable)},
		{"lost", refuse(idempotency.ErrClaimLost), false, 1, false, []error{idempotency.ErrClaimLost}, ""},
		{"throttled, then lost", throttledThenLost, false, 2, false, []error{idempotency.ErrClaimLost}, ""},
		{"too large", nil, true, 1, false, nil,
			fmt.Sprintf(notStored, "2 bytes, the limit is 1: idempotency: result is not stored")},
		{"throttled, then too large", first(1, refuse(errThrottled)), true, 2, false, nil,
			fmt.Sprintf(notStored, "2 bytes, the limit is 1: idempotency: result is not stored")},
	} {
		for _, fail := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, FailUnrecorded %t", test.name, fail), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cramped := &crampedStore{faultStore{onComplete: test.fault}}
					var store idempotency.Store = &cramped.faultStore
					if test.cramped {
						store = cramped
					}
					var log bytes.Buffer
					g := newGuard(t, store, logTo(&log), func(o *idempotency.Options) { o.FailUnrecorded = fail })
					start := time.Now()
					got, err := idempotency.Do(t.Context(), g, "k", returns(42, nil))
					if want := (idempotency.Result[int]{Value: 42, Unrecorded: test.unrecorded}); got != want {
						t.Errorf("result is %+v, want %+v", got, want)
					}
					wantLog := test.log
					switch {
					case test.unrecorded && !fail:
						wantErr(t, err)
					case test.unrecorded:
						wantErr(t, err, test.want...)
						wantLog = "" // the error tells
					default:
						wantErr(t, err, test.want...)
					}
					if diff := cmp.Diff(wantLog, log.String()); diff != "" {
						t.Errorf("log (-want +got):\n%s", diff)
					}
					want := append([]string{"claim"}, slices.Repeat([]string{"complete"}, test.tries)...)
					if diff := cmp.Diff(want, cramped.calls); diff != "" {
						t.Errorf("store calls (-want +got):\n%s", diff)
					}
					if took := time.Since(start); took > 300*time.Millisecond {
						t.Errorf("took %v, want a fraction of a second", took)
					}
				})
			})
		}
	}
}

// Case 18: work that is done, but not recorded so, is not done again while its lease holds, and is after that.
func TestUnrecordedIsHeldByItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{onComplete: refuse(errThrottled)}
		g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = 10 * time.Second })
		lease := time.Now().Add(10 * time.Second)
		got, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
		if wantErr(t, err); !got.Unrecorded {
			t.Errorf("result is %+v, want it to be Unrecorded", got)
		}
		time.Sleep(time.Until(lease.Add(idempotency.DefaultSkew)))
		_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrInProgress)
		time.Sleep(time.Millisecond)
		store.onComplete = nil
		got, err = idempotency.Do(t.Context(), g, "k", returns(2, nil))
		if want := (idempotency.Result[int]{Value: 2}); got != want || err != nil {
			t.Errorf("result is %+v, error is %v, want %+v", got, err, want)
		}
	})
}

// Case 18: where only the reply was lost, the work is done for good, whatever the first caller was told.
func TestUnrecordedButStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, &faultStore{onComplete: loseReply(errThrottled)})
		_, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
		wantErr(t, err)
		got, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		if want := (idempotency.Result[int]{Value: 1, Replayed: true}); got != want || err != nil {
			t.Errorf("result is %+v, error is %v, want %+v", got, err, want)
		}
	})
}

type valueKey struct{}

// Rule 7: completion and release outlive the cancellation of their work, keep the values of its context, and are
// bounded: by the invocation's deadline, by two seconds for those that are late, by five where there is no deadline.
func TestSettlingSurvivesCancellation(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name                string
		context, invocation time.Duration // until their deadlines, 0: none
		work                time.Duration
		cancel              bool // of the context, while the work runs
		left                time.Duration
	}{
		{"no deadline", 0, 0, s, false, 5 * s},
		{"no deadline, cancelled", 0, 0, s, true, 5 * s},
		{"deadline", 10 * s, 0, 3 * s, false, 7 * s},
		{"deadline, cancelled", 10 * s, 0, 3 * s, true, 7 * s},
		{"late", 10 * s, 0, 9 * s, false, 2 * s},
		{"after the deadline", 10 * s, 0, time.Hour, false, 2 * s},
		{"cut before the invocation's deadline", 4 * s, 10 * s, 5 * s, false, 5 * s},
		{"after the invocation's deadline", 4 * s, 10 * s, 15 * s, true, 2 * s},
	} {
		for call, failure := range map[string]error{"complete": nil, "release": errThrottled} {
			t.Run(test.name+", "+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, stop := limits(context.WithValue(t.Context(), valueKey{}, "trace"), test.context, test.invocation)
					defer stop()
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					store := &faultStore{onComplete: hang, onRelease: hang}
					g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = 2 * time.Hour; o.Expiry = 2 * time.Hour })
					end := time.Now().Add(test.work)
					got, err := idempotency.Do(ctx, g, "k", func(context.Context) (int, error) {
						if test.cancel {
							cancel()
						}
						time.Sleep(test.work)
						return 1, failure
					})
					if failure == nil && (err != nil || !got.Unrecorded) {
						t.Errorf("result is %+v, error is %v, want an unrecorded one", got, err)
					} else if failure != nil {
						wantErr(t, err, failure, context.DeadlineExceeded)
					}
					if diff := cmp.Diff([]string{"claim", call}, store.calls); diff != "" {
						t.Fatalf("store calls (-want +got):\n%s", diff)
					}
					if left := time.Since(end); left != test.left {
						t.Errorf("the call could take %v, want %v", left, test.left)
					}
					if got := store.contexts[1].Value(valueKey{}); got != "trace" {
						t.Errorf("value of the context is %v, want trace", got)
					}
				})
			})
		}
	}
}

// Rule 7: a retried completion does not outlive its bound.
func TestRetriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{onComplete: refuse(errThrottled), onRelease: refuse(errThrottled)}
		c, err := newGuard(t, store).Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond) // the second try is at 100, the third at 300
		defer cancel()
		start := time.Now()
		wantErr(t, c.Complete(ctx, nil), errThrottled)
		if took := time.Since(start); len(store.completes) != 2 || took != 150*time.Millisecond {
			t.Errorf("%d tries in %v, want 2 in 150ms", len(store.completes), took)
		}
		wantErr(t, c.Release(ctx), errThrottled)
		if len(store.releases) != 1 {
			t.Errorf("%d releases with a context that is done, want 1", len(store.releases))
		}
	})
}

// A completion that is tried again asks for the same: the entry's life began when the work ended.
func TestRetriedCompletionIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second - time.Millisecond) // the tries fall into different seconds
		store := &faultStore{onComplete: first(2, refuse(errThrottled))}
		_, err := idempotency.Do(t.Context(), newGuard(t, store), "k", returns("v", nil))
		wantErr(t, err)
		for _, r := range store.completes[1:] {
			if diff := cmp.Diff(store.completes[0], r); diff != "" {
				t.Errorf("completion (-first +later):\n%s", diff)
			}
		}
	})
}

// panickingHandler is a log handler that panics with each line.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("no room on the disk") }

// A logger that panics loses its line, and nothing of what it was to tell.
func TestPanickingLogger(t *testing.T) {
	logger := func(o *idempotency.Options) {
		o.Logger = slog.New(panickingHandler{slog.NewTextHandler(io.Discard, nil)})
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, &faultStore{onComplete: refuse(errThrottled)}, logger)
		got, err := idempotency.Do(t.Context(), g, "unrecorded", returns(1, nil))
		if want := (idempotency.Result[int]{Value: 1, Unrecorded: true}); got != want || err != nil {
			t.Errorf("unrecorded: result is %+v, error is %v, want %+v", got, err, want)
		}

		g = newGuard(t, idempotency.NewMemoryStore(), logger)
		inf, err := idempotency.Do(t.Context(), g, "not stored", returns(math.Inf(1), nil))
		if want := (idempotency.Result[float64]{Value: math.Inf(1)}); inf != want || err != nil {
			t.Errorf("not stored: result is %+v, error is %v, want %+v", inf, err, want)
		}

		g = newGuard(t, &faultStore{onRelease: refuse(errThrottled)}, logger)
		e := run(func() {
			_, _ = idempotency.Do(t.Context(), g, "not released", func(context.Context) (int, error) { panic("boom") })
		})
		if e.recovered != "boom" {
			t.Errorf("not released: recovered %v, want boom", e.recovered)
		}
	})
}
