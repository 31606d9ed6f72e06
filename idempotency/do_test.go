package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// What each way through Do asks of the store: first run 2 writes, replay 1, conflict 1, failure 2.
func TestDoRequests(t *testing.T) {
	store := &faultStore{}
	g := newGuard(t, store)
	runs := 0
	work := func(ctx context.Context) (string, error) {
		runs++
		_, err := idempotency.Do(ctx, g, "k", forbidden[string](t)) // the key is held: refused, and no deadlock
		wantErr(t, err, idempotency.ErrInProgress)
		return "receipt", nil
	}
	for i := range 3 {
		want := idempotency.Result[string]{Value: "receipt", Replayed: i > 0}
		got, err := idempotency.Do(t.Context(), g, "k", work)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("call %d: error is %v; result (-want +got):\n%s", i, err, diff)
		}
	}
	_, err := idempotency.Do(t.Context(), g, "failing", returns("", errThrottled))
	wantErr(t, err, errThrottled)
	want := []string{"claim", "claim", "complete", "claim", "claim", "claim", "release"}
	if diff := cmp.Diff(want, store.calls); diff != "" || runs != 1 {
		t.Errorf("%d runs, want 1; store calls (-want +got):\n%s", runs, diff)
	}
}

func TestDoWithoutGuard(t *testing.T) {
	_, err := idempotency.Do(t.Context(), nil, "k", forbidden[int](t))
	if diff := cmp.Diff("idempotency: guard is nil, want one made by New", errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Rule 10: work that fails is released, and its error comes back as it is, without its value.
func TestFailureReleases(t *testing.T) {
	store := &faultStore{}
	g := newGuard(t, store)
	failure := errors.New("card declined")
	for range 2 {
		got, err := idempotency.Do(t.Context(), g, "k", returns(7, failure))
		if want := (idempotency.Result[int]{}); got != want || err != failure { // itself, not wrapped
			t.Errorf("result is %+v, error is %v, want %+v and %v itself", got, err, want, failure)
		}
	}
	if diff := cmp.Diff([]string{"claim", "release", "claim", "release"}, store.calls); diff != "" {
		t.Errorf("store calls (-want +got):\n%s", diff)
	}
	for i, r := range store.releases {
		if r.Owner != store.claims[i].Owner || r.Unstarted {
			t.Errorf("release %d is %+v, want one of the claim's owner that was started", i, r)
		}
	}
}

type namedError string

func (e namedError) Error() string { return string(e) }

// Rule 10, case 19: if the release fails too, both errors are there, the work's first.
func TestFailureNotReleased(t *testing.T) {
	for _, test := range []struct {
		name    string
		fault   fault
		tries   int
		release error // nil: released
	}{
		{"refused once", first(1, refuse(namedError("throttled"))), 2, nil},
		{"refused twice", first(2, refuse(namedError("throttled"))), 3, nil},
		{"reply lost", first(1, loseReply(namedError("timeout"))), 2, nil}, // rule 3: what is gone is released
		{"refused for good", refuse(namedError("throttled")), 3, namedError("throttled")},
		{"lost", refuse(idempotency.ErrClaimLost), 1, idempotency.ErrClaimLost},
		{"completed", refuse(idempotency.ErrAlreadyCompleted), 1, idempotency.ErrAlreadyCompleted},
		{"unusable", refuse(idempotency.ErrStoreUnusable), 1, idempotency.ErrStoreUnusable},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faultStore{onRelease: test.fault}
				_, err := idempotency.Do(t.Context(), newGuard(t, store), "k", returns(0, error(namedError("card declined"))))
				wantErr(t, err, namedError("card declined"))
				if got, _ := errors.AsType[namedError](err); got != "card declined" {
					t.Errorf("first error in the chain is %q, want the work's", string(got))
				}
				if !strings.HasPrefix(errorText(err), "card declined") {
					t.Errorf("error is %v, want the work's first", err)
				}
				if test.release != nil {
					wantErr(t, err, test.release)
				} else if errorText(err) != "card declined" {
					t.Errorf("error is %v, want the work's alone", err)
				}
				if got := len(store.releases); got != test.tries {
					t.Errorf("%d releases, want %d", got, test.tries)
				}
			})
		})
	}
}

// ended is how a function was left that left its goroutine.
type ended struct {
	returned  bool
	recovered any
	stack     string
}

func run(f func()) ended {
	result := make(chan ended)
	go func() {
		var e ended
		defer func() {
			e.recovered = recover()
			e.stack = string(debugStack())
			result <- e
		}()
		f()
		e.returned = true
	}()
	return <-result
}

func debugStack() []byte {
	buf := make([]byte, 1<<16)
	return buf[:runtime.Stack(buf, false)]
}

func panicHere(value any) { panic(value) }

// Case 31 as far as it is the guard's: the claim of work that panics or ends its goroutine is released, after the work's
// own deferred functions have run, and the panic goes on with its value and its stack.
func TestPanicReleases(t *testing.T) {
	failure := &namedPointer{}
	for _, test := range []struct {
		name   string
		leave  func()
		want   any // recovered
		panics bool
	}{
		{"panic", func() { panicHere("boom") }, "boom", true},
		{"panic with an error", func() { panicHere(failure) }, failure, true},
		{"panic of the runtime", func() { _ = []int{}[len(failure.text)] }, nil, true},
		{"nil panic", func() { panicHere(nil) }, nil, true},
		{"Goexit", runtime.Goexit, nil, false},
		{"FailNow", func() { new(testing.T).FailNow() }, nil, false},
		{"SkipNow", func() { new(testing.T).SkipNow() }, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faultStore{}
			g := newGuard(t, store)
			e := run(func() {
				_, _ = idempotency.Do(t.Context(), g, "k", func(context.Context) (int, error) {
					defer func() {
						if len(store.releases) > 0 {
							t.Error("released before the work's deferred functions ran")
						}
					}()
					test.leave()
					return 0, nil
				})
			})
			if e.returned {
				t.Error("Do returned, want that it is left")
			}
			if test.panics != (e.recovered != nil) || test.want != nil && e.recovered != test.want {
				t.Errorf("recovered %v, want %v (any panic: %t)", e.recovered, test.want, test.panics)
			}
			if _, ok := test.want.(string); ok && !strings.Contains(e.stack, "panicHere") {
				t.Errorf("stack does not show where the panic began:\n%s", e.stack)
			}
			if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
				t.Errorf("store calls (-want +got):\n%s", diff)
			}
			if got := store.Len(); got != 0 {
				t.Errorf("the store holds %d keys, want none", got)
			}
		})
	}
}

type namedPointer struct{ text string }

func (e *namedPointer) Error() string { return e.text }

// A release that fails on the way of a panic is told by no error, so it is logged. The panic goes on.
func TestPanicNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := newGuard(t, &faultStore{onRelease: refuse(errThrottled)}, logTo(&log))
		e := run(func() {
			_, _ = idempotency.Do(t.Context(), g, "k", func(context.Context) (int, error) { panic("boom") })
		})
		if e.recovered != "boom" {
			t.Errorf("recovered %v, want boom", e.recovered)
		}
		want := `level=ERROR msg="idempotent work has failed and its claim could not be released" key=k ` +
			`error="idempotency: release of \"k\": throttled"` + "\n"
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// logTo makes a guard log to buf, without times.
func logTo(buf *bytes.Buffer) func(*idempotency.Options) {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return func(o *idempotency.Options) {
		o.Logger = slog.New(slog.NewTextHandler(buf, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	}
}

// Rule 2, case 24c: work that ends late, when its claim is no longer its own, is told so beside its value, and changes
// nothing.
func TestLateCompletion(t *testing.T) {
	type entry = idempotency.Entry
	const expiry = 2 * time.Second
	for _, test := range []struct {
		name   string
		change func(t *testing.T, g *idempotency.Guard, s *idempotency.MemoryStore)
	}{
		{"taken over and completed", func(t *testing.T, g *idempotency.Guard, _ *idempotency.MemoryStore) {
			_, err := idempotency.Do(t.Context(), g, "k", returns("other", nil))
			wantErr(t, err)
		}},
		{"taken over and in progress", func(t *testing.T, g *idempotency.Guard, _ *idempotency.MemoryStore) {
			_, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
			wantErr(t, err)
		}},
		{"released by hand", func(t *testing.T, _ *idempotency.Guard, s *idempotency.MemoryStore) {
			held, _ := s.Get("orders#k")
			wantErr(t, s.Release(t.Context(), idempotency.ReleaseRequest{Key: "orders#k", Owner: held.Owner, Now: time.Now()}))
		}},
		{"expired", func(*testing.T, *idempotency.Guard, *idempotency.MemoryStore) { time.Sleep(2 * expiry) }},
	} {
		for _, failure := range []error{nil, errThrottled} {
			t.Run(fmt.Sprintf("%s, failure %v", test.name, failure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := idempotency.NewMemoryStore()
					g := newGuard(t, store, func(o *idempotency.Options) { o.Lease, o.Expiry = time.Second, expiry })
					var before, after entry
					var held bool
					got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (string, error) {
						time.Sleep(2001 * time.Millisecond) // the lease and the skew, and the context is ignored
						test.change(t, g, store)
						before, held = store.Get("orders#k")
						return "mine", failure
					})
					after, _ = store.Get("orders#k")
					taken := held && test.name != "expired"
					if failure == nil {
						wantErr(t, err, idempotency.ErrClaimLost)
						if want := (idempotency.Result[string]{Value: "mine"}); got != want {
							t.Errorf("result is %+v, want %+v", got, want)
						}
					} else {
						wantErr(t, err, failure)
						if lost := errors.Is(err, idempotency.ErrClaimLost); lost != taken {
							t.Errorf("error is %v, lost: %t, want %t", err, lost, taken)
						}
					}
					if diff := cmp.Diff(before, after); diff != "" && (failure == nil || taken) {
						t.Errorf("entry (-before +after):\n%s", diff)
					}
				})
			})
		}
	}
}

// A completion that comes after the lease, but before anyone took the key over, is one.
func TestLateCompletionOfUnclaimedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Lease = time.Second })
		for _, want := range []idempotency.Result[int]{{Value: 1}, {Value: 1, Replayed: true}} {
			got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (int, error) {
				time.Sleep(10 * time.Second)
				return 1, nil
			})
			if got != want || err != nil {
				t.Errorf("result is %+v, error is %v, want %+v", got, err, want)
			}
		}
	})
}

// Case 23: a completion that has expired is none, although the store still has it.
func TestExpiredCompletion(t *testing.T) {
	now := memoryStart
	g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.Expiry, o.Clock = 300*time.Second, func() time.Time { return now }
	})
	runs := 0
	for _, test := range []struct {
		at   time.Duration
		want int // runs so far
	}{{0, 1}, {300 * time.Second, 1}, {301 * time.Second, 2}, {302 * time.Second, 2}} {
		now = memoryStart.Add(test.at)
		got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (int, error) { runs++; return runs, nil })
		wantErr(t, err)
		if runs != test.want || got.Value != test.want {
			t.Errorf("at %v: %d runs, result %+v, want %d and its result", test.at, runs, got, test.want)
		}
	}
}
