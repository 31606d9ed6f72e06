package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Rule 14: the namespace is an argument, and has limits.
func TestNewNamespace(t *testing.T) {
	bad := func(namespace string) string {
		return fmt.Sprintf("idempotency: namespace is %q, want 1 to 255 bytes of UTF-8 without '#'", namespace)
	}
	for _, test := range []struct{ name, namespace, want string }{
		{"one byte", "a", ""},
		{"punctuation", "orders/v2.eu-west-1 prod", ""},
		{"not ASCII", "größe", ""},
		{"255 bytes", strings.Repeat("n", 255), ""},
		{"256 bytes", strings.Repeat("n", 256), bad(strings.Repeat("n", 256))},
		{"256 bytes in 128 letters", strings.Repeat("ö", 128), bad(strings.Repeat("ö", 128))},
		{"empty", "", `idempotency: namespace is "", want 1 to 255 bytes of UTF-8 without '#'`},
		{"separator", "a#b", bad("a#b")},
		{"invalid UTF-8", "a\xff", `idempotency: namespace is "a\xff", want 1 to 255 bytes of UTF-8 without '#'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := idempotency.New(test.namespace, idempotency.NewMemoryStore())
			if diff := cmp.Diff(test.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if (g == nil) != (err != nil) {
				t.Errorf("guard is %v beside error %v", g, err)
			}
		})
	}
}

type misconfigured struct{ idempotency.MemoryStore }

func (*misconfigured) Validate() error { return errors.New("table name is empty") }

type valueStore struct{ idempotency.Store } // has no Validate, and is no pointer

func TestNewStore(t *testing.T) {
	for _, test := range []struct {
		name  string
		store idempotency.Store
		want  string
	}{
		{"usable", idempotency.NewMemoryStore(), ""},
		{"no Validate", valueStore{idempotency.NewMemoryStore()}, ""},
		{"nil", nil, "idempotency: store is nil, want a Store"},
		{"typed nil", (*idempotency.MemoryStore)(nil), "idempotency: store is a nil *idempotency.MemoryStore, want a Store"},
		{"failing Validate", &misconfigured{}, "table name is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := idempotency.New("orders", test.store)
			if diff := cmp.Diff(test.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewReportsEverythingAtOnce(t *testing.T) {
	g, err := idempotency.New("a#b", nil, func(o *idempotency.Options) { o.Lease = time.Nanosecond })
	want := `idempotency: namespace is "a#b", want 1 to 255 bytes of UTF-8 without '#'
idempotency: store is nil, want a Store
idempotency: Options.Lease is 1ns, want 0 (for the default) or at least 10ms`
	if diff := cmp.Diff(want, errorText(err)); diff != "" || g != nil {
		t.Errorf("guard is %v; error (-want +got):\n%s", g, diff)
	}
}

// Rule 4: where no time is left, nothing is asked of the store.
func TestClaimWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cause := errors.New("shutting down")
		past, cancelPast := context.WithDeadline(t.Context(), start.Add(-time.Second))
		defer cancelPast()
		cancelled, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		now := idempotency.WithInvocationDeadline(t.Context(), start)
		for _, test := range []struct {
			name string
			ctx  context.Context
			want []error
		}{
			{"deadline past", past, []error{idempotency.ErrLeaseTooShort, context.DeadlineExceeded}},
			{"cancelled", cancelled, []error{idempotency.ErrLeaseTooShort, cause}},
			{"invocation ends now", now, []error{idempotency.ErrLeaseTooShort}},
			{"invocation has ended", idempotency.WithInvocationDeadline(t.Context(), start.Add(-time.Hour)),
				[]error{idempotency.ErrLeaseTooShort}},
			{"less than a millisecond", idempotency.WithInvocationDeadline(t.Context(), start.Add(999*time.Microsecond)),
				[]error{idempotency.ErrLeaseTooShort}},
		} {
			store := &faultStore{}
			_, err := idempotency.Do(test.ctx, newGuard(t, store), "k", forbidden[int](t))
			t.Log(test.name, err)
			wantErr(t, err, test.want...)
			if len(store.calls) > 0 {
				t.Errorf("%s: store calls are %q, want none", test.name, store.calls)
			}
		}
	})
}

// Rule 11, case 16: another payload under the same key is an error, completed or in progress; a fingerprint that one
// side does not have says nothing.
func TestFingerprint(t *testing.T) {
	for _, test := range []struct {
		name, stored, asked string
		mismatch            bool
	}{
		{"same", "a", "a", false},
		{"other", "a", "b", true},
		{"other by a suffix", "a", "aa", true},
		{"none stored", "", "b", false},
		{"none asked", "a", "", false},
		{"none", "", "", false},
	} {
		fingerprint := func(f string) func(*idempotency.CallOptions) {
			return func(o *idempotency.CallOptions) { o.Fingerprint = f }
		}
		t.Run(test.name, func(t *testing.T) {
			g := newGuard(t, idempotency.NewMemoryStore())
			inProgress := func(ctx context.Context) (int, error) {
				_, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t), fingerprint(test.asked))
				if test.mismatch {
					wantErr(t, err, idempotency.ErrFingerprintMismatch)
				} else {
					wantErr(t, err, idempotency.ErrInProgress)
				}
				return 7, nil
			}
			_, err := idempotency.Do(t.Context(), g, "k", inProgress, fingerprint(test.stored))
			wantErr(t, err)

			got, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t), fingerprint(test.asked))
			want := idempotency.Result[int]{Value: 7, Replayed: true}
			if test.mismatch {
				want = idempotency.Result[int]{}
				wantErr(t, err, idempotency.ErrFingerprintMismatch)
				if text := `idempotency: key was used with another payload: "k"`; errorText(err) != text {
					t.Errorf("error is %q, want %q", err, text)
				}
			} else {
				wantErr(t, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// Rule 2: every claim attempt has an owner token of its own, of 26 letters and digits, those included that are refused.
func TestOwnerIsFresh(t *testing.T) {
	store := &faultStore{onComplete: refuse(idempotency.ErrStoreUnusable), onClaim: first(3, refuse(errThrottled))}
	g := newGuard(t, store)
	for range 10 { // three undecided, one that runs, six refused
		_, _ = idempotency.Do(t.Context(), g, "k", returns(0, nil))
	}
	for range 10 {
		_, _ = idempotency.Do(t.Context(), g, "failing", returns(0, errThrottled))
	}
	seen := make(map[string]bool)
	for _, r := range store.claims {
		if len(r.Owner) != 26 || seen[r.Owner] {
			t.Errorf("owner %q is %d bytes long, seen before: %t, want 26 and not seen", r.Owner, len(r.Owner), seen[r.Owner])
		}
		seen[r.Owner] = true
	}
	if len(store.claims) != 20 {
		t.Errorf("%d claims, want 20", len(store.claims))
	}
	if got, want := store.completes[0].Owner, store.claims[3].Owner; got != want {
		t.Errorf("owner of the completion is %s, want that of the claim, %s", got, want)
	}
}

// Rule 1: of 64 callers with one key one does the work; the others are refused, or get its result.
func TestOneWinner(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	var runs, replays, refusals atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range 64 {
		wg.Go(func() {
			<-gate
			got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (int64, error) { return runs.Add(1), nil })
			switch {
			case errors.Is(err, idempotency.ErrInProgress):
				refusals.Add(1)
			case err != nil || got.Value != 1:
				t.Errorf("result is %+v, error is %v, want value 1", got, err)
			case got.Replayed:
				replays.Add(1)
			}
		})
	}
	close(gate)
	wg.Wait()
	if runs, others := runs.Load(), replays.Load()+refusals.Load(); runs != 1 || others != 63 {
		t.Errorf("%d runs, %d replays or refusals, want 1 and 63", runs, others)
	}
}

// Rule 1, 16: where they may wait, the others all get the one result.
func TestOneWinnerOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Wait = time.Minute })
		var runs, replays atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (int64, error) {
					time.Sleep(5 * time.Second)
					return runs.Add(1), nil
				})
				if err != nil || got.Value != 1 {
					t.Errorf("result is %+v, error is %v, want value 1", got, err)
				}
				if got.Replayed {
					replays.Add(1)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 1 || replays.Load() != 63 {
			t.Errorf("%d runs, %d replays, want 1 and 63", runs.Load(), replays.Load())
		}
	})
}
