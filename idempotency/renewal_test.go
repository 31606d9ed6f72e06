package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

func claimAll(t *testing.T, ctx context.Context, g *idempotency.Guard, keys ...string) []*idempotency.Claim {
	t.Helper()
	requests := make([]idempotency.Request, len(keys))
	for i, key := range keys {
		requests[i].Key = key
	}
	claims, errs := g.ClaimAll(ctx, requests)
	wantErr(t, errors.Join(errs...))
	return claims
}

// When a claim is to be renewed before its work begins, and when nothing would be won by that.
func TestStartBy(t *testing.T) {
	for _, test := range []struct {
		name            string
		invocation      time.Duration
		option, timeout time.Duration
		want            time.Duration // 0: never
	}{
		{"no deadline", 0, 0, 0, time.Second},
		{"the invocation ends the lease", 10 * time.Second, 0, 0, 0},
		{"the invocation ends before the lease", 10 * time.Second, 30 * time.Second, 0, 0},
		{"a timeout ends the lease", time.Minute, 0, 2 * time.Second, 270 * time.Millisecond},
		{"a timeout that the invocation cuts short", 10 * time.Second, 0, 9500 * time.Millisecond, 0},
		{"an option ends the lease", time.Minute, time.Second, 0, 90 * time.Millisecond},
		{"a long lease", time.Hour, 10 * time.Minute, 0, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := limits(t.Context(), test.invocation, 0)
				defer cancel()
				g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Lease = test.option })
				begin := time.Now()
				c, err := g.Claim(ctx, idempotency.Request{Key: "k", Timeout: test.timeout})
				wantErr(t, err)
				got := time.Duration(0)
				if !c.StartBy().IsZero() {
					got = c.StartBy().Sub(begin)
				}
				if got != test.want {
					t.Errorf("work is to begin within %v, want %v", got, test.want)
				}
			})
		})
	}
}

// A renewed claim is another one: it has all its time again, and whoever knows the old owner only can do nothing with it.
func TestRenewAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulkStore{}
		var told eventLines
		g := newGuard(t, store, told.option, func(o *idempotency.Options) { o.Lease, o.CountAttempts = 10*time.Second, true })
		claims := claimAll(t, t.Context(), g, "a", "b", "c")
		told.take()
		old := make([]idempotency.Info, 3)
		for i, c := range claims {
			old[i], _ = idempotency.FromContext(c.Context(t.Context()))
		}
		time.Sleep(9900 * time.Millisecond)
		begin := time.Now()
		wantErr(t, errors.Join(g.RenewAll(t.Context(), claims)...))
		for i, c := range claims {
			info, _ := idempotency.FromContext(c.Context(t.Context()))
			if info.Owner == old[i].Owner || info.Attempt != 1 || info.Lease.Sub(begin) != 10*time.Second || c.End().Sub(begin) != 10*time.Second || c.Deadline().Sub(begin) != 9*time.Second {
				t.Errorf("claim is %+v until %v and %v, want another owner, the first attempt, and ten seconds", info, c.Deadline(), c.End())
			}
			if got := c.StartBy().Sub(begin); got != 900*time.Millisecond {
				t.Errorf("work is to begin within %v, want 900ms", got)
			}
			wantErr(t, store.MemoryStore.Complete(t.Context(), idempotency.CompleteRequest{
				Key: "orders#" + info.Key, Owner: old[i].Owner, Now: time.Now(), Expiry: time.Now().Add(time.Hour)}), idempotency.ErrClaimLost)
			wantErr(t, c.Complete(t.Context(), nil))
		}
		store.wantCalls(t, "claim 3", "renew 3")
		want := []string{"a: renewed, attempt 1, poll 0, owner true: ", "b: renewed, attempt 1, poll 0, owner true: ", "c: renewed, attempt 1, poll 0, owner true: ",
			"a: completed, attempt 1, poll 0, owner true: ", "b: completed, attempt 1, poll 0, owner true: ", "c: completed, attempt 1, poll 0, owner true: "}
		if diff := cmp.Diff(want, told.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A claim that is not renewed may be the old one or the new one. Both are given back, all in one call, and the work does
// not begin; but one that is someone else's by now is left alone.
func TestRenewAllFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		renew   fault
		release fault
		want    error
		event   string
		calls   []string
		left    idempotency.Status
		takes   time.Duration
	}{
		{"undecided, not made", refuse(errThrottled), nil, errThrottled, "unstarted", []string{"renew 3", "release 6"}, idempotency.Absent, 0},
		{"undecided, made", loseReply(errThrottled), nil, errThrottled, "unstarted", []string{"renew 3", "release 6"}, idempotency.Absent, 0},
		{"lost", refuse(idempotency.ErrClaimLost), nil, idempotency.ErrClaimLost, "release failed", []string{"renew 3"}, idempotency.InProgress, 0},
		{"too late", delayReply(9 * time.Second), nil, idempotency.ErrLeaseTooShort, "unstarted", []string{"renew 3", "release 6"}, idempotency.Absent, 9 * time.Second},
		{"nor given back", refuse(errThrottled), refuse(errThrottled), errThrottled, "release failed", []string{"renew 3", "release 6"}, idempotency.InProgress, 0},
		// Without a deadline a call ends with the time that the work would have had, and what gives back after two seconds.
		{"hangs", hang, hang, context.DeadlineExceeded, "release failed", []string{"renew 3", "release 6"}, idempotency.InProgress, 11 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &bulkStore{onRenew: test.renew}
				store.onRelease = test.release
				var told eventLines
				g := newGuard(t, store, told.option, func(o *idempotency.Options) { o.Lease = 10 * time.Second })
				claims := claimAll(t, t.Context(), g, "a", "b", "c")
				told.take()
				store.bulk = nil
				begin := time.Now()
				errs := g.RenewAll(t.Context(), claims)
				if took := time.Since(begin); took != test.takes {
					t.Errorf("took %v, want %v", took, test.takes)
				}
				for _, err := range errs {
					wantErr(t, err, test.want)
				}
				store.wantCalls(t, test.calls...)
				if diff := cmp.Diff(map[string]idempotency.Status{"a": test.left, "b": test.left, "c": test.left}, store.entries("a", "b", "c")); diff != "" {
					t.Errorf("entries (-want +got):\n%s", diff)
				}
				lines := told.take()
				for i, line := range lines {
					if !strings.HasPrefix(line, fmt.Sprintf("%c: %s,", 'a'+i, test.event)) || !strings.HasSuffix(line, errs[i].Error()) {
						t.Errorf("event %q, want that it is %s and has the error %v", line, test.event, errs[i])
					}
				}
				if len(lines) != 3 {
					t.Errorf("%d events, want one for each", len(lines))
				}
			})
		})
	}
}

// Where no time is left to renew in, the store is only asked to take the claims back.
func TestRenewAllWithoutTime(t *testing.T) {
	store := &bulkStore{}
	ctx, cancel := context.WithCancel(t.Context())
	g := newGuard(t, store)
	claims := claimAll(t, ctx, g, "a", "b")
	cancel()
	for _, err := range g.RenewAll(ctx, claims) {
		wantErr(t, err, idempotency.ErrLeaseTooShort)
	}
	store.wantCalls(t, "claim 2", "release 4")
	if store.Len() != 0 {
		t.Errorf("%d entries are left, want none", store.Len())
	}
}

// A store that panics may have written before. What was asked for is given back, and the hooks are told once of each.
func TestGroupStorePanics(t *testing.T) {
	for _, test := range []struct {
		call  string
		made  bool // what it was asked for
		do    func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim)
		event string
		left  idempotency.Status
	}{
		{"claim", false, nil, "claim failed", idempotency.Absent},
		{"renew", true, func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim) { g.RenewAll(ctx, claims) }, "unstarted", idempotency.Absent},
		{"complete", true, func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim) {
			g.SettleAll(ctx, claims, slices.Repeat([]idempotency.Ending{idempotency.EndComplete}, 3))
		}, "unrecorded", idempotency.InProgress},
		{"release", true, func(ctx context.Context, g *idempotency.Guard, claims []*idempotency.Claim) {
			g.SettleAll(ctx, claims, slices.Repeat([]idempotency.Ending{idempotency.EndRelease}, 3))
		}, "release failed", idempotency.InProgress},
	} {
		t.Run(test.call, func(t *testing.T) {
			store := &bulkStore{}
			var told eventLines
			g := newGuard(t, store, told.option)
			var claims []*idempotency.Claim
			if test.made {
				claims = claimAll(t, t.Context(), g, "a", "b", "c")
				told.take()
			}
			store.onCall = func(what string) {
				if what == test.call {
					panic("boom")
				}
			}
			func() {
				defer func() {
					if value := recover(); value != "boom" {
						t.Errorf("panicked with %v, want boom", value)
					}
				}()
				if test.do == nil {
					_, _ = g.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}, {Key: "c"}})
				} else {
					test.do(t.Context(), g, claims)
				}
			}()
			lines := told.take()
			for i, key := range []string{"a", "b", "c"} {
				if len(lines) != 3 || !strings.HasPrefix(lines[i], key+": "+test.event+",") {
					t.Fatalf("events are %q, want that each of three is %s", lines, test.event)
				}
			}
			want := map[string]idempotency.Status{"a": test.left, "b": test.left, "c": test.left}
			if diff := cmp.Diff(want, store.entries("a", "b", "c")); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// A store that does not answer each request has answered none: nothing is taken for claimed, or for done.
func TestGroupStoreAnswersTooFew(t *testing.T) {
	for _, n := range []int{0, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			cut := func(got int) int { return min(n, got) }
			if n == 4 {
				cut = func(got int) int { return got + 1 }
			}
			store := &bulkStore{}
			g := newGuard(t, store)
			want := fmt.Sprintf("store gave %d answers to 3 requests, want one for each", n)
			check := func(what string, errs []error) {
				t.Helper()
				for i, err := range errs {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: error of %d is %v, want %q in it", what, i, err, want)
					}
				}
			}
			store.cut = cut
			_, errs := g.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}, {Key: "c"}})
			check("claim", errs)
			if store.Len() != 0 {
				t.Errorf("%d entries are left, want that the claims are given back", store.Len())
			}
			endings := []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete, idempotency.EndComplete}
			store.cut = nil
			claims := claimAll(t, t.Context(), g, "d", "e", "f")
			store.cut = cut
			check("complete", g.SettleAll(t.Context(), claims, endings))
			store.cut = nil
			claims = claimAll(t, t.Context(), g, "g", "h", "i")
			store.cut = cut
			check("renew", g.RenewAll(t.Context(), claims))
		})
	}
}

// Hooks that take as long as the leases leave no time for the work: the claims are released in one call.
func TestClaimAllSlowHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulkStore{}
		var told eventLines
		slow := idempotency.HookFunc(func(_ context.Context, e idempotency.Event) {
			if e.Kind == idempotency.EventClaimed {
				time.Sleep(4 * time.Second)
			}
		})
		g := newGuard(t, store, func(o *idempotency.Options) { o.Lease, o.Hooks = 10*time.Second, []idempotency.Hook{&told, slow} })
		claims, errs := g.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}, {Key: "c"}})
		for i, err := range errs {
			wantErr(t, err, idempotency.ErrLeaseTooShort)
			if claims[i] != nil {
				t.Errorf("claim %d is returned beside an error", i)
			}
		}
		store.wantCalls(t, "claim 3", "release 3")
		if got := told.take(); len(got) != 6 || !strings.HasPrefix(got[5], "c: unstarted,") {
			t.Errorf("events are %q, want that three are claimed and unstarted", got)
		}
	})
}

// Undecided claims are given back in one call, which takes two seconds at most: a store that hangs holds nothing up.
func TestClaimAllHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulkStore{}
		store.onClaim, store.onRelease = hang, hang
		g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = 10 * time.Second })
		begin := time.Now()
		_, errs := g.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}, {Key: "c"}})
		for _, err := range errs {
			wantErr(t, err, context.DeadlineExceeded)
		}
		if took := time.Since(begin); took != 11*time.Second {
			t.Errorf("took %v, want nine seconds for the claims and two to give them back", took)
		}
		store.wantCalls(t, "claim 3", "release 3")
	})
}
