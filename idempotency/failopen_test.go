package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

func failsOpen(o *idempotency.Options) { o.FailOpen = true }

// What lets work run unprotected where a guard fails open, and what does not. A claim that may have been made is given back.
func TestFailOpen(t *testing.T) {
	for _, test := range []struct {
		name   string
		store  *faultStore
		key    string
		before call
		want   string // the events
		err    error  // of the event
		runs   bool
		calls  string
	}{
		{"claimed", &faultStore{}, "k", nil, "claimed, completed", nil, true, "claim complete"},
		{"throttled", &faultStore{onClaim: refuse(errThrottled)}, "k", nil, "unprotected", errThrottled, true, "claim release"},
		{"reply lost", &faultStore{onClaim: loseReply(errThrottled)}, "k", nil, "unprotected", errThrottled, true, "claim release"},
		{"unusable", &faultStore{onClaim: refuse(idempotency.ErrStoreUnusable)}, "k", nil,
			"unprotected", idempotency.ErrStoreUnusable, true, "claim"},
		{"full", &faultStore{onClaim: refuse(idempotency.ErrStoreFull)}, "k", nil,
			"unprotected", idempotency.ErrStoreFull, true, "claim"},
		{"store's own errors are not the guard's", &faultStore{onClaim: refuse(fmt.Errorf("inner: %w", errors.Join(
			idempotency.ErrInProgress, idempotency.ErrFingerprintMismatch)))}, "k", nil,
			"unprotected", idempotency.ErrInProgress, true, "claim release"},
		{"neither claim nor release", &faultStore{onClaim: refuse(errThrottled), onRelease: refuse(errThrottled)}, "k", nil,
			"unprotected", errThrottled, true, "claim release"},
		{"no key", &faultStore{}, "", nil, "key missing", idempotency.ErrKeyMissing, false, ""},
		{"held elsewhere", &faultStore{}, "k", heldWith(""), "in progress", idempotency.ErrInProgress, false, "claim"},
		{"mismatch", &faultStore{}, "k", heldWith("another"), "mismatch", idempotency.ErrFingerprintMismatch, false, "claim"},
		{"done", &faultStore{}, "k", doOf(returns(1.0, nil)), "replayed", nil, false, "claim"},
		{"hangs", &faultStore{onClaim: hang}, "k", nil, "too late", idempotency.ErrLeaseTooShort, false, "claim release"},
		{"reply too late", &faultStore{onClaim: delayReply(time.Hour)}, "k", nil,
			"too late", idempotency.ErrLeaseTooShort, false, "claim release"},
		{"release uses up the time", &faultStore{
			onClaim: func(context.Context, int, func() error) error {
				time.Sleep(idempotency.DefaultLease - 2*time.Second)
				return errThrottled
			}, onRelease: hang}, "k", nil, "too late", idempotency.ErrLeaseTooShort, false, "claim release"},
	} {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a group: %t", test.name, group), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var r recorder
					store := &faultStore{onClaim: test.store.onClaim, onRelease: test.store.onRelease}
					g := newGuard(t, store, failsOpen, hooks(&r))
					if test.before != nil {
						test.before(t.Context(), g)
						store.calls = nil
						r.take()
					}
					ran := false
					request := idempotency.Request{Key: test.key, Fingerprint: "payload"}
					if group {
						claims, errs := g.ClaimAll(t.Context(), []idempotency.Request{request})
						if ran = errs[0] == nil && !claims[0].Replayed(); ran {
							c, zero := claims[0], test.err != nil
							if c.Deadline().IsZero() != zero || c.End().IsZero() != zero || c.StartBy().IsZero() != zero {
								t.Errorf("deadline %v, end %v, start by %v: want limits only for protected work", c.Deadline(), c.End(), c.StartBy())
							}
							wantErr(t, g.SettleAll(t.Context(), claims, []idempotency.Ending{idempotency.EndComplete})[0])
						}
					} else {
						_, _ = idempotency.Do(t.Context(), g, test.key, func(ctx context.Context) (float64, error) {
							_, protected := idempotency.FromContext(ctx)
							if ran = true; protected != (test.err == nil) {
								t.Errorf("FromContext finds a claim: %t, want %t", protected, test.err == nil)
							}
							return 0, nil
						}, func(o *idempotency.CallOptions) { o.Fingerprint = request.Fingerprint })
					}
					if ran != test.runs {
						t.Errorf("the work ran: %t, want %t", ran, test.runs)
					}
					e := r.events[len(r.events)-1]
					if wantErr(t, e.Err, test.err); test.runs && test.err != nil && e.Key+e.Owner != "" {
						t.Errorf("event is %+v, want neither a key nor an owner of unprotected work", e)
					}
					if diff := cmp.Diff(test.want, r.take()); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(test.calls, strings.Join(store.calls, " ")); diff != "" {
						t.Errorf("calls of the store (-want +got):\n%s", diff)
					}
					if entry, held := store.Get("orders#k"); test.want == "unprotected" && held && test.calls != "claim" {
						t.Errorf("the store holds %+v, want nothing", entry)
					}
				})
			})
		}
	}
}

// A line is logged once, and the work's own errors are its own.
func TestFailOpenLogsOnce(t *testing.T) {
	var log bytes.Buffer
	g := newGuard(t, &faultStore{onClaim: refuse(errThrottled)}, logTo(&log), failsOpen)
	declined := errors.New("card declined")
	for range 3 {
		_, err := idempotency.Do(t.Context(), g, "k", returns(1, declined))
		wantErr(t, err, declined)
		if errors.Is(err, errThrottled) {
			t.Errorf("error is %v, want nothing of the store in it", err)
		}
	}
	want := `level=WARN msg="idempotency store has failed: work runs unprotected" key=k error="idempotency: claim of \"k\" is ` +
		`undecided: throttled"` + "\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// A group's claims fail open one by one: those that the store decides are claims.
func TestFailOpenInPart(t *testing.T) {
	store := &faultStore{onClaim: first(1, refuse(errThrottled))}
	g := newGuard(t, store, failsOpen)
	claims, errs := g.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}})
	wantErr(t, errors.Join(errs...))
	wantErr(t, errors.Join(g.SettleAll(t.Context(), claims, []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete})...))
	if diff := cmp.Diff([]string{"claim", "claim", "release", "complete"}, store.calls); diff != "" {
		t.Errorf("calls of the store (-want +got):\n%s", diff)
	}
	if e, _ := store.Get("orders#b"); e.Status != idempotency.Completed {
		t.Errorf("entry of b is %v, want %v", e.Status, idempotency.Completed)
	}
}
