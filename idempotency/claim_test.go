package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// Rule 4, case 14: how long a claim is good for, and when its work's context ends.
func TestLease(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, test := range []struct {
		name            string
		context         time.Duration // until its deadline; 0: none
		invocation      time.Duration // until the invocation's deadline, where a context was cut earlier; 0: not told
		option, timeout time.Duration
		lease, deadline time.Duration // of the claim, wanted
	}{
		{"no deadline", 0, 0, 0, 0, time.Minute, 59 * s},
		{"deadline", 10 * s, 0, 0, 0, 10 * s, 9 * s},
		{"deadline later than the default", 15 * time.Minute, 0, 0, 0, 15 * time.Minute, 15*time.Minute - s},
		{"deadline soon", 2 * s, 0, 0, 0, 2 * s, 1800 * ms},
		{"deadline very soon", 30 * ms, 0, 0, 0, 30 * ms, 27 * ms},
		{"deadline all but here", 2 * ms, 0, 0, 0, 2 * ms, 1800 * time.Microsecond},
		{"context cut before the invocation's end", 9 * s, 10 * s, 0, 0, 10 * s, 9 * s},
		{"context cut long before", s, 10 * s, 0, 0, 10 * s, 9 * s},
		{"context later than the invocation", 20 * s, 10 * s, 0, 0, 10 * s, 9 * s},
		{"invocation without a context's deadline", 0, 10 * s, 0, 0, 10 * s, 9 * s},
		{"option shorter than the deadline", 10 * s, 0, 5 * s, 0, 5 * s, 4500 * ms},
		{"option longer than the deadline", 10 * s, 0, 30 * s, 0, 30 * s, 9 * s},
		{"option without deadline", 0, 0, 5 * time.Minute, 0, 5 * time.Minute, 5*time.Minute - s},
		{"shortest option", 10 * s, 0, 10 * ms, 0, 10 * ms, 9 * ms},
		{"option before timeout", 10 * s, 0, 8 * s, 2 * s, 8 * s, 7200 * ms},
		{"timeout shorter than the deadline", 60 * s, 0, 0, 10 * s, 11 * s, 10 * s},
		{"timeout longer than the deadline", 10 * s, 0, 0, 60 * s, 10 * s, 9 * s},
		{"timeout that leaves no second", 10 * s, 0, 0, 9500 * ms, 10 * s, 9 * s},
		{"timeout without deadline", 0, 0, 0, 10 * time.Minute, 10*time.Minute + s, 10 * time.Minute},
		{"negative timeout", 10 * s, 0, 0, -s, 10 * s, 9 * s},
		{"endless timeout", 10 * s, 0, 0, math.MaxInt64, 10 * s, 9 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := limits(t.Context(), test.context, test.invocation)
				defer cancel()
				store := &faultStore{}
				g := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.option })
				start := time.Now()
				c, err := g.Claim(ctx, idempotency.Request{Key: "k", Timeout: test.timeout})
				if err != nil {
					t.Fatal(err)
				}
				got := []time.Duration{store.claims[0].Lease.Sub(start), c.Deadline().Sub(start)}
				if diff := cmp.Diff([]time.Duration{test.lease, test.deadline}, got); diff != "" {
					t.Errorf("lease and deadline (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// When a claim's lease ends, by time.Now, whatever the guard's clock says.
func TestClaimEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1500 * time.Microsecond) // the lease ends with a whole millisecond
		start := time.Now()
		g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) {
			o.Lease, o.Clock = 10*time.Second, func() time.Time { return time.Now().Add(-time.Hour) }
			o.MissingKey = idempotency.MissingKeyRunsUnprotected
		})
		c, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		end := start.Add(10*time.Second - 500*time.Microsecond)
		if got := c.End(); !got.Equal(end) {
			t.Errorf("lease ends at %v, want %v", got, end)
		}

		unprotected, err := g.Claim(t.Context(), idempotency.Request{})
		wantErr(t, err)
		if !unprotected.End().IsZero() {
			t.Errorf("unprotected work has a lease until %v, want none", unprotected.End())
		}
	})
}

// A claim's times have no monotonic reading, which stands still while Lambda has the process frozen: the lease does not.
func TestClaimTimesPassInTheFreezer(t *testing.T) {
	c, err := newGuard(t, idempotency.NewMemoryStore()).Claim(t.Context(), idempotency.Request{Key: "k"})
	wantErr(t, err)
	for name, at := range map[string]time.Time{"deadline": c.Deadline(), "end": c.End()} {
		if at.IsZero() || at != at.Round(0) {
			t.Errorf("%s is %v, want it without a monotonic reading", name, at)
		}
	}
}

// limits returns a context with the given limits from now, and without those that are 0.
func limits(ctx context.Context, deadline, invocation time.Duration) (context.Context, context.CancelFunc) {
	cancel := func() {}
	now := time.Now()
	if deadline != 0 {
		ctx, cancel = context.WithDeadline(ctx, now.Add(deadline))
	}
	if invocation != 0 {
		ctx = idempotency.WithInvocationDeadline(ctx, now.Add(invocation))
	}
	return ctx, cancel
}

// leaseLimits are what the lease of a claim depends on. 0 is not set.
type leaseLimits struct {
	start                                  time.Duration // of the work, after a whole second
	context, invocation                    time.Duration
	lease, expiry, skew, timeout, clockOff time.Duration
}

// Rule 4: whatever the limits are, the work's context ends before the lease does, the lease is in whole milliseconds and
// later than now, and the entry expires, in whole seconds, only after the lease and the skew.
func TestLeaseInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string, low, high time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(rt, label))
		}
		sometimes := func(label string, low, high time.Duration) time.Duration {
			if !rapid.Bool().Draw(rt, label+" is set") {
				return 0
			}
			return draw(label, low, high)
		}
		scale := rapid.SampledFrom([]time.Duration{20, time.Millisecond, time.Second, time.Hour}).Draw(rt, "scale")
		l := leaseLimits{
			start:      draw("start", 0, time.Second),
			context:    sometimes("context", 1, scale),
			invocation: sometimes("invocation", -scale/10, scale),
			lease:      sometimes("lease", 10*time.Millisecond, time.Hour),
			skew:       sometimes("skew", -time.Second, time.Minute),
			timeout:    sometimes("timeout", -1, rapid.SampledFrom([]time.Duration{scale, math.MaxInt64}).Draw(rt, "timeouts")),
			clockOff:   sometimes("clock", -time.Hour, time.Hour),
		}
		l.expiry = sometimes("expiry", max(time.Second, l.lease), 2*time.Hour)
		var err error
		synctest.Test(t, func(t *testing.T) { err = l.check(t) })
		if err != nil {
			rt.Fatalf("%+v: %v", l, err)
		}
	})
}

func (l leaseLimits) check(t *testing.T) error {
	time.Sleep(l.start)
	ctx, cancel := limits(t.Context(), l.context, l.invocation)
	defer cancel()
	store := &faultStore{}
	g := newGuard(t, store, func(o *idempotency.Options) {
		o.Lease, o.Expiry, o.Skew = l.lease, l.expiry, l.skew
		if l.clockOff != 0 {
			o.Clock = func() time.Time { return time.Now().Add(l.clockOff) }
		}
	})
	began, left := false, time.Duration(0) // of the lease, when the work's context ends
	_, err := idempotency.Do(ctx, g, "k", func(ctx context.Context) (int, error) {
		began = true
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("the work began with a context that is done: %w", err)
		}
		<-ctx.Done()
		info, _ := idempotency.FromContext(ctx)
		left = info.LeaseLeft()
		return 0, nil
	})
	switch {
	case !began && !errors.Is(err, idempotency.ErrLeaseTooShort):
		return fmt.Errorf("the work did not begin, error is %w, want %w", err, idempotency.ErrLeaseTooShort)
	case !began && l.context == 0 && l.invocation == 0:
		return fmt.Errorf("the work did not begin, which nothing forbids: %w", err)
	case began && err != nil:
		return err
	case began && left <= 0:
		return fmt.Errorf("the work's context ended %v after the lease", -left)
	}
	c, err := g.Claim(t.Context(), idempotency.Request{Key: "with timeout", Timeout: l.timeout})
	if err != nil {
		return err
	}
	if last := store.claims[len(store.claims)-1]; !c.Deadline().Add(l.clockOff).Before(last.Lease) {
		return fmt.Errorf("the work's deadline is %v after the lease", c.Deadline().Add(l.clockOff).Sub(last.Lease))
	}
	for _, r := range store.claims {
		if !r.Lease.After(r.Now) || !r.Lease.Equal(r.Lease.Truncate(time.Millisecond)) {
			return fmt.Errorf("now is %v, lease %v, want one that is later, in whole milliseconds", r.Now, r.Lease)
		}
		if end := r.Lease.Add(r.Skew); !r.Expiry.After(end) || !r.Expiry.Equal(r.Expiry.Truncate(time.Second)) {
			return fmt.Errorf("lease and skew end at %v, expiry is %v, want one that is later, in whole seconds", end, r.Expiry)
		}
	}
	return nil
}

// Rule 4, case 14: guarded work in guarded work holds its key until the invocation ends, although its context was cut
// before that, and until the cut of the work around it where there is no invocation.
func TestNestedLease(t *testing.T) {
	for _, test := range []struct {
		name                string
		context, invocation time.Duration
		want                time.Duration
	}{
		{"deadline", 10 * time.Second, 0, 10 * time.Second},
		{"told of the invocation", 9 * time.Second, 10 * time.Second, 10 * time.Second},
		{"none", 0, 0, 59 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := limits(t.Context(), test.context, test.invocation)
				defer cancel()
				start := time.Now()
				g := newGuard(t, idempotency.NewMemoryStore())
				nested := func(ctx context.Context) (int, error) {
					info, _ := idempotency.FromContext(ctx)
					if got := info.Lease.Sub(start); got != test.want {
						t.Errorf("lease of the innermost work is %v, want %v", got, test.want)
					}
					<-ctx.Done()
					if !time.Now().Before(info.Lease) {
						t.Errorf("the context ended at %v, the lease at %v", time.Now(), info.Lease)
					}
					return 0, nil
				}
				_, err := idempotency.Do(ctx, g, "1", func(ctx context.Context) (int, error) {
					_, err := idempotency.Do(ctx, g, "2", func(ctx context.Context) (int, error) {
						ctx, cancel := context.WithTimeout(ctx, 2*time.Hour)
						defer cancel()
						_, err := idempotency.Do(ctx, g, "3", nested)
						return 0, err
					})
					return 0, err
				})
				wantErr(t, err)
			})
		})
	}
}

// The cause of the work's context says why it ended.
func TestWorkIsCutBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, idempotency.NewMemoryStore())
		_, err := idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			wantErr(t, ctx.Err(), context.DeadlineExceeded)
			return 0, context.Cause(ctx)
		})
		wantErr(t, err, idempotency.ErrLeaseEnding)
	})
}

// Rule 4, 5, case 13: both limits, one unit before and one after, with and without skew.
func TestTakeover(t *testing.T) {
	now := memoryStart
	clock := func(o *idempotency.Options) { o.Clock = func() time.Time { return now } }
	type entry = idempotency.Entry
	lease := func(d time.Duration) entry {
		return entry{Status: idempotency.InProgress, Owner: "other", Lease: now.Add(d), Expiry: now.Add(time.Hour)}
	}
	noLease := func(d time.Duration) entry { return entry{Status: idempotency.InProgress, Expiry: now.Add(d)} }
	completed := func(d time.Duration) entry {
		return entry{Status: idempotency.Completed, Expiry: now.Add(d), Data: []byte("5")}
	}
	const ms, s = time.Millisecond, time.Second
	for _, test := range []struct {
		name  string
		entry entry
		skew  time.Duration
		want  string        // what becomes of the call
		left  time.Duration // if held
	}{
		{"lease ended long ago", lease(-30 * s), 0, "runs", 0},
		{"lease ends later", lease(30 * s), 0, "held", 31*s + ms},
		{"lease and skew end now", lease(-s), 0, "held", ms},
		{"lease and skew ended just now", lease(-s - ms), 0, "runs", 0},
		{"no skew, lease ends now", lease(0), -1, "held", ms},
		{"no skew, lease ended just now", lease(-ms), -1, "runs", 0},
		{"longer skew, ends now", lease(-5 * s), 5 * s, "held", ms},
		{"longer skew, ended just now", lease(-5*s - ms), 5 * s, "runs", 0},
		{"live lease, expiry past", entry{Status: idempotency.InProgress, Lease: now.Add(s), Expiry: now.Add(-s)}, 0,
			"held", 2*s + ms},
		{"no lease, expires now", noLease(0), 0, "held", s},
		{"no lease, expired a second ago", noLease(-s), 0, "runs", 0},
		{"no lease, expires later", noLease(time.Hour), 0, "held", time.Hour + s},
		{"completed, expires now", completed(0), 0, "replayed", 0},
		{"completed, expired a second ago", completed(-s), 0, "runs", 0},
		{"completed, expires later", completed(time.Hour), 0, "replayed", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := idempotency.NewMemoryStore()
				store.Plant("orders#k", test.entry)
				g := newGuard(t, store, clock, func(o *idempotency.Options) { o.Skew = test.skew })
				got, err := idempotency.Do(t.Context(), g, "k", returns(7, nil))
				outcome := "runs"
				if held, ok := errors.AsType[*idempotency.InProgressError](err); ok {
					outcome = "held"
					if left := time.Until(held.Free); left != test.left {
						t.Errorf("free in %v, want %v", left, test.left)
					}
				} else if err != nil {
					t.Fatal(err)
				} else if got.Replayed {
					outcome = "replayed"
				}
				if outcome != test.want {
					t.Errorf("the call %s with %+v, %v, want that it %s", outcome, got, err, test.want)
				}
			})
		})
	}
}

// Rule 16 for Do: who is refused is told the key, and until when it is held.
func TestInProgressError(t *testing.T) {
	store := idempotency.NewMemoryStore()
	store.Plant("orders#k", idempotency.Entry{Status: idempotency.InProgress,
		Lease: memoryStart.Add(1500 * time.Millisecond), Expiry: memoryStart.Add(time.Hour)})
	g := newGuard(t, store, func(o *idempotency.Options) { o.Clock = func() time.Time { return memoryStart } })
	_, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
	wantErr(t, err, idempotency.ErrInProgress)
	want := `idempotency: key is in progress elsewhere: "k" is held until 2027-01-15T08:00:01.5Z`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if held, ok := errors.AsType[*idempotency.InProgressError](fmt.Errorf("wrapped: %w", err)); !ok || held.Key != "k" {
		t.Errorf("InProgressError in the chain is %+v, want one of key k", held)
	}
}

// How long a key lives: the guard says, or else the request, or else it is an hour. Expiries are in whole seconds,
// rounded up.
func TestExpiry(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name            string
		option, request time.Duration
		claim, complete time.Duration // wanted, from a clock that stands half a second after the full one
	}{
		{"neither", 0, 0, time.Hour + 500*time.Millisecond, time.Hour + 500*time.Millisecond},
		{"request", 0, 300 * s, 300*s + 500*time.Millisecond, 300*s + 500*time.Millisecond},
		{"option before request", 600 * s, 300 * s, 600*s + 500*time.Millisecond, 600*s + 500*time.Millisecond},
		{"shorter than the lease", 0, 10 * s, 61*s + 500*time.Millisecond, 10*s + 500*time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faultStore{}
			now := memoryStart.Add(500 * time.Millisecond)
			g := newGuard(t, store, func(o *idempotency.Options) {
				o.Expiry, o.Clock = test.option, func() time.Time { return now }
			})
			c, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Expiry: test.request})
			wantErr(t, err)
			wantErr(t, c.Complete(t.Context(), nil))
			got := []time.Duration{store.claims[0].Expiry.Sub(now), store.completes[0].Expiry.Sub(now)}
			if diff := cmp.Diff([]time.Duration{test.claim, test.complete}, got); diff != "" {
				t.Errorf("expiries of claim and completion (-want +got):\n%s", diff)
			}
		})
	}
}
