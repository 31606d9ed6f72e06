package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// Rule 8, case 24b: a reply that comes when the time is over starts nothing, and the claim is given back as one that
// was never begun.
func TestClaimReplyTooLate(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  time.Duration // of the context
		lease  time.Duration
		delay  time.Duration
		starts bool
	}{
		{"in time for the deadline", 10 * time.Second, 0, 9*time.Second - time.Millisecond, true},
		{"before the deadline, but too late to begin", 10 * time.Second, 0, 9 * time.Second, false},
		{"after the deadline", 10 * time.Second, 0, 11 * time.Second, false},
		{"in time for the lease", 0, 2 * time.Second, 1799 * time.Millisecond, true},
		{"before the lease's end, but too late to begin", 0, 2 * time.Second, 1800 * time.Millisecond, false},
		{"after the lease", 0, 2 * time.Second, 3 * time.Second, false},
		{"after the default lease", 0, 0, idempotency.DefaultLease, false},
		{"after a deadline before the lease", time.Second, time.Minute, 1001 * time.Millisecond, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), func() {}
				if test.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.limit)
				}
				defer cancel()
				store := &faultStore{onClaim: delayReply(test.delay)}
				g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.lease; o.CountAttempts = true })
				if test.starts {
					_, err := idempotency.Do(ctx, g, "k", returns(1, nil))
					wantErr(t, err)
					return
				}
				_, err := idempotency.Do(ctx, g, "k", forbidden[int](t))
				wantErr(t, err, idempotency.ErrLeaseTooShort)
				if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
					t.Fatalf("store calls (-want +got):\n%s", diff)
				}
				if r := store.releases[0]; r.Owner != store.claims[0].Owner || !r.Unstarted || !r.CountAttempts {
					t.Errorf("release is %+v, want one of the claim's owner that is Unstarted and CountAttempts", r)
				}
				store.onClaim = nil
				_, err = idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
					if info, _ := idempotency.FromContext(ctx); info.Attempt != 1 {
						t.Errorf("attempt after one that was never begun is %d, want 1", info.Attempt)
					}
					return 1, nil
				})
				wantErr(t, err)
			})
		})
	}
}

// Rule 8: a context that is cancelled while the claim is under way starts nothing either, and the claim is released
// although its context is gone.
func TestClaimCancelledMeanwhile(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	store := &faultStore{onClaim: func(_ context.Context, _ int, send func() error) error {
		defer cancel(cause)
		return send()
	}}
	_, err := idempotency.Do(ctx, newGuard(t, store), "k", forbidden[int](t))
	wantErr(t, err, idempotency.ErrLeaseTooShort, cause)
	if got := store.Len(); got != 0 {
		t.Errorf("the store holds %d keys, want the claim to be released", got)
	}
}

// If the late claim cannot be given back, both are said.
func TestClaimReplyTooLateNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{onClaim: delayReply(2 * time.Minute), onRelease: refuse(errThrottled)}
		_, err := idempotency.Do(t.Context(), newGuard(t, store), "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrLeaseTooShort, errThrottled)
		if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	})
}

// A late claim that someone else has taken over by now is given back in effect: it is too late, and nothing of its own
// is lost.
func TestClaimReplyTooLateTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultStore{onClaim: first(1, delayReply(2*time.Minute))}
		g := newGuard(t, store)
		time.AfterFunc(90*time.Second, func() {
			_, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
			wantErr(t, err)
		})
		_, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrLeaseTooShort)
		if errors.Is(err, idempotency.ErrClaimLost) {
			t.Errorf("error is %v, want no %q", err, idempotency.ErrClaimLost)
		}
		if diff := cmp.Diff([]string{"claim", "claim", "release"}, store.calls); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
		if entry, _ := store.Get("orders#k"); entry.Owner != store.claims[1].Owner {
			t.Errorf("owner of the key is %s, want the second, %s", entry.Owner, store.claims[1].Owner)
		}
	})
}

// Rule 8: a claim that may have been made or not starts nothing, and is given back once, whatever comes of that.
func TestClaimUndecided(t *testing.T) {
	for _, test := range []struct {
		name           string
		claim, release fault
		want           error
		held           int // keys that stay in the store
		unreleased     bool
	}{
		{"throttled", refuse(errThrottled), nil, errThrottled, 0, false},
		{"reply lost", loseReply(errThrottled), nil, errThrottled, 0, false},
		{"no answer", hang, nil, context.DeadlineExceeded, 0, false},
		{"reply lost and release refused", loseReply(errThrottled), refuse(errors.New("down")), errThrottled, 1, false},
		{"reply lost and release unanswered", loseReply(errThrottled), hang, errThrottled, 1, false},
		{"full", refuse(idempotency.ErrStoreFull), nil, idempotency.ErrStoreFull, 0, true},
		{"unusable", refuse(fmt.Errorf("no table: %w", idempotency.ErrStoreUnusable)), nil,
			idempotency.ErrStoreUnusable, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				store := &faultStore{onClaim: test.claim, onRelease: test.release}
				_, err := idempotency.Do(ctx, newGuard(t, store), "k", forbidden[int](t))
				wantErr(t, err, test.want)
				if !strings.Contains(errorText(err), `claim of "k"`) {
					t.Errorf("error is %v, want it to name the key", err)
				}
				want := []string{"claim", "release"}
				if test.unreleased {
					want = want[:1]
				}
				if diff := cmp.Diff(want, store.calls); diff != "" {
					t.Fatalf("store calls (-want +got):\n%s", diff)
				}
				if len(want) > 1 && (store.releases[0].Owner != store.claims[0].Owner || !store.releases[0].Unstarted) {
					t.Errorf("release is %+v, want one of owner %s that is Unstarted", store.releases[0], store.claims[0].Owner)
				}
				if got := store.Len(); got != test.held {
					t.Errorf("the store holds %d keys, want %d", got, test.held)
				}
			})
		})
	}
}

// brokenStore refuses a claim and shows nothing that stands in its way.
type brokenStore struct{ idempotency.Store }

func (brokenStore) Claim(context.Context, idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return idempotency.ClaimResult{}, nil
}

// Rule 8: an answer that makes no sense permits nothing.
func TestClaimRefusedByNothing(t *testing.T) {
	_, err := idempotency.Do(t.Context(), newGuard(t, brokenStore{}), "k", forbidden[int](t))
	want := `idempotency: claim of "k" was refused by an entry that is ABSENT, want INPROGRESS or COMPLETED`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Rule 8: a store that does not answer is waited for no longer than the work could last, if the context does not say.
func TestClaimUnanswered(t *testing.T) {
	for _, test := range []struct {
		name       string
		lease      time.Duration // option
		invocation time.Duration
		timeout    time.Duration
		want       time.Duration
	}{
		{"default lease", 0, 0, 0, 59 * time.Second},
		{"lease", 5 * time.Second, 0, 0, 4500 * time.Millisecond},
		{"invocation", 0, 20 * time.Second, 0, 19 * time.Second},
		{"timeout", 0, 0, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := limits(t.Context(), 0, test.invocation)
				defer stop()
				store := &faultStore{onClaim: hang}
				g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.lease })
				start := time.Now()
				c, err := g.Claim(ctx, idempotency.Request{Key: "k", Timeout: test.timeout})
				if took := time.Since(start); c != nil || took != test.want {
					t.Errorf("claim is %v after %v, want none after %v", c, took, test.want)
				}
				wantErr(t, err, idempotency.ErrLeaseTooShort, context.DeadlineExceeded)
				if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Rule 8: a store that panics, or ends the goroutine, may have written before. The claim is given back once on the way.
func TestClaimPanics(t *testing.T) {
	for name, violence := range map[string]func(){"panic": func() { panicHere("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			store := &faultStore{onClaim: first(1, func(_ context.Context, _ int, send func() error) error {
				err := send()
				violence()
				return err
			})}
			g := newGuard(t, store)
			e := run(func() { _, _ = idempotency.Do(t.Context(), g, "k", forbidden[int](t)) })
			if e.returned || (e.recovered == "boom") != (name == "panic") {
				t.Errorf("returned: %t, recovered %v, want what the store did", e.returned, e.recovered)
			}
			if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
				t.Fatalf("store calls (-want +got):\n%s", diff)
			}
			if r := store.releases[0]; r.Owner != store.claims[0].Owner || !r.Unstarted || store.Len() != 0 {
				t.Errorf("release is %+v, and %d keys are held, want one of the claim, and none", r, store.Len())
			}
			_, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
			wantErr(t, err)
		})
	}
}

// A claim that is not begun is given back within two seconds, or its lease ends it: a store that hangs holds nobody up
// until the end of the invocation.
func TestClaimGivenBackInVain(t *testing.T) {
	for _, test := range []struct {
		name  string
		claim fault
		want  []error
	}{
		{"undecided", refuse(errThrottled), []error{errThrottled}},
		{"too late", delayReply(10 * time.Minute), []error{idempotency.ErrLeaseTooShort, context.DeadlineExceeded}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				store := &faultStore{onClaim: test.claim, onRelease: func(ctx context.Context, n int, send func() error) error {
					start := time.Now()
					err := hang(ctx, n, send)
					if took := time.Since(start); took != 2*time.Second {
						t.Errorf("gave up after %v, want 2s", took)
					}
					return err
				}}
				g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = time.Minute })
				_, err := idempotency.Do(ctx, g, "k", forbidden[int](t))
				wantErr(t, err, test.want...)
				if diff := cmp.Diff([]string{"claim", "release"}, store.calls); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}
