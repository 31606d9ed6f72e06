package sqs_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// longest is the longest timeout that is asked for: 12 hours less what may have passed since the receive.
const longest = 11*time.Hour + 50*time.Minute

// changer is a Visibility that notes what it is asked for.
type changer struct {
	fail func(ctx context.Context) error // nil: succeeds

	mu      sync.Mutex
	changes []sqs.VisibilityChange
}

func (c *changer) ChangeVisibility(ctx context.Context, change sqs.VisibilityChange) error {
	c.mu.Lock()
	c.changes = append(c.changes, change)
	c.mu.Unlock()
	if c.fail != nil {
		return c.fail(ctx)
	}
	return nil
}

func (c *changer) option(o *sqs.Options) { o.Visibility = c }

// want checks what was asked for, in any order.
func (c *changer) want(t testing.TB, changes ...sqs.VisibilityChange) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.changes, func(a, b sqs.VisibilityChange) int { return cmp.Compare(a.ReceiptHandle, b.ReceiptHandle) })
	if diff := gocmp.Diff(changes, c.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// change is what is asked for a message of numbered or grouped.
func change(arn, id string, timeout time.Duration) sqs.VisibilityChange {
	return sqs.VisibilityChange{QueueARN: arn, ReceiptHandle: "handle of " + id, Timeout: timeout}
}

func retryAfter(d time.Duration) error { return batch.RetryAfter(d, errors.New("later")) }

func TestVisibilityRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want time.Duration // negative: no change
	}{
		{"a minute", retryAfter(time.Minute), time.Minute},
		{"wrapped", fmt.Errorf("order: %w", retryAfter(time.Minute)), time.Minute},
		{"joined", errors.Join(errors.New("other"), retryAfter(time.Minute)), time.Minute},
		{"the outermost of two", batch.RetryAfter(time.Second, retryAfter(time.Minute)), time.Second},
		{"of a permanent error", batch.Permanent(retryAfter(time.Minute)), time.Minute},
		{"at once", retryAfter(0), 0},
		{"negative is at once", retryAfter(-time.Minute), 0},
		{"rounded up", retryAfter(1), time.Second},
		{"a second", retryAfter(time.Second), time.Second},
		{"rounded up from a second", retryAfter(time.Second + 1), 2 * time.Second},
		{"rounded up to the longest", retryAfter(longest - 1), longest},
		{"the longest", retryAfter(longest), longest},
		{"capped", retryAfter(longest + 1), longest},
		{"12 hours, which SQS began to count at the receive", retryAfter(12 * time.Hour), longest},
		{"as long as can be", retryAfter(math.MaxInt64), longest},
		{"another error", errors.New("no"), -1},
		{"success", nil, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var c changer
				w := &worker{errs: map[string]error{"m2": test.err}}
				h := newHandler(t, w.handle, options, c.option)
				failed := []string{"m2"}
				if test.err == nil {
					failed = nil
				}
				wantFailures(t, t.Context(), h, event(numbered(3)...), failed...)
				if test.want < 0 {
					c.want(t)
				} else {
					c.want(t, change(standardARN, "m2", test.want))
				}
			})
		})
	}
}

// What is done is not asked for, whatever its error was; and neither is a message without a receipt handle.
func TestVisibilityOnlyOfFailures(t *testing.T) {
	var c changer
	w := &worker{errs: map[string]error{"m1": batch.Permanent(retryAfter(time.Minute)), "m2": retryAfter(time.Minute)}}
	h := newHandler(t, w.handle, c.option, func(o *sqs.Options) {
		o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
	})
	m2 := strings.Replace(message{ID: "m2"}.record(), `"receiptHandle"`, `"another"`, 1)
	wantFailures(t, t.Context(), h, rawEvent(message{ID: "m1"}.record(), m2), "m2")
	c.want(t)
}

// Both copies of a message that is in the batch twice come back when it says.
func TestVisibilityOfTwins(t *testing.T) {
	var c changer
	w := &worker{errs: map[string]error{"m1": retryAfter(time.Minute)}}
	wantFailures(t, t.Context(), newHandler(t, w.handle, c.option),
		event(message{ID: "m1", Handle: "h1"}, message{ID: "m1", Handle: "h2"}), "m1")
	c.want(t, sqs.VisibilityChange{QueueARN: standardARN, ReceiptHandle: "h1", Timeout: time.Minute},
		sqs.VisibilityChange{QueueARN: standardARN, ReceiptHandle: "h2", Timeout: time.Minute})
}

// A FIFO group comes back when the last of its messages is visible, so all that are reported get the same timeout.
func TestVisibilityOfAGroup(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var c changer
		w := &worker{errs: map[string]error{"a2": retryAfter(time.Minute), "b1": errors.New("no"), "c1": retryAfter(time.Second)}}
		h := newHandler(t, w.handle, options, c.option)
		wantFailures(t, t.Context(), h, event(grouped("a1", "b1", "a2", "c1", "b2", "a3", "c2", "a4")...),
			"b1", "a2", "c1", "b2", "a3", "c2", "a4")
		c.want(t, change(fifoARN, "a2", time.Minute), change(fifoARN, "a3", time.Minute), change(fifoARN, "a4", time.Minute),
			change(fifoARN, "c1", time.Second), change(fifoARN, "c2", time.Second))
	})
}

// On a standard queue a group is a tenant, whose other messages have nothing to do with it.
func TestVisibilityOfATenant(t *testing.T) {
	var c changer
	messages := grouped("a1", "a2")
	messages[0].ARN, messages[1].ARN = standardARN, standardARN
	w := &worker{errs: map[string]error{"a1": retryAfter(time.Minute), "a2": errors.New("no")}}
	wantFailures(t, t.Context(), newHandler(t, w.handle, c.option), event(messages...), "a1", "a2")
	c.want(t, change(standardARN, "a1", time.Minute))
}

// A message that is in progress elsewhere comes back a little after its holder's lease.
func TestVisibilityInProgressElsewhere(t *testing.T) {
	for _, left := range []time.Duration{0, 50 * time.Millisecond, 3 * time.Second, 10 * time.Minute, 14 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		for _, arn := range []string{standardARN, fifoARN} {
			t.Run(fmt.Sprint(left, " ", arn), func(t *testing.T) {
				seen := map[time.Duration]bool{}
				for range 40 {
					held := &idempotency.InProgressError{Key: "m1", Free: time.Now().Add(left)}
					var c changer
					w := &worker{}
					h := newHandler(t, w.handle, c.option, func(o *sqs.Options) {
						o.Idempotency = newGuard(t, &faults{OnClaim: func() error { return held }})
					})
					wantFailures(t, t.Context(), h, event(message{ID: "m1", Group: "g", ARN: arn}), "m1")
					if len(c.changes) != 1 {
						t.Fatalf("changes: %v, want 1", c.changes)
					}
					got := c.changes[0].Timeout
					seen[got] = true
					least := min(left, longest) // with a second to spare
					most := min(least+time.Second+min(least/10, 10*time.Second)+2*time.Second, longest)
					if got < least || got > most || got%time.Second != 0 {
						t.Fatalf("timeout is %v, want whole seconds from %v to %v", got, least, most)
					}
				}
				if left == 10*time.Minute && len(seen) < 4 {
					t.Errorf("timeouts are %v, want them spread", seen)
				}
			})
		}
	}
}

// The whole of it: another invocation holds m1, whose group comes back when that one's lease is over.
func TestVisibilityOfAHeldGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c changer
		guard := guarded(t)
		release := make(chan struct{})
		w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
			if m.ID() == "a1" {
				<-release
			}
			return nil
		}}
		h := newHandler(t, w.handle, guard, c.option)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var first sync.WaitGroup
		first.Go(func() { wantFailures(t, ctx, h, event(grouped("a1")...)) })
		synctest.Wait()
		wantFailures(t, ctx, h, event(grouped("a1", "b1", "a2")...), "a1", "a2")
		close(release)
		first.Wait()
		w.want(t, "a1", "b1")
		if len(c.changes) != 2 || c.changes[0].Timeout != c.changes[1].Timeout {
			t.Fatalf("changes: %v, want the same for a1 and a2", c.changes)
		}
		// A minute of lease, a second of skew, one to be sure, and up to 7 of jitter.
		if got := c.changes[0].Timeout; got < 62*time.Second || got > 70*time.Second {
			t.Errorf("timeout is %v, want 62s to 70s", got)
		}
	})
}

// What a handler says by RetryAfter goes before what a claim of its own says that was in its way.
func TestVisibilityRetryAfterOfAHeldClaim(t *testing.T) {
	var c changer
	held := &idempotency.InProgressError{Key: "inner", Free: time.Now().Add(time.Hour)}
	w := &worker{errs: map[string]error{"m1": batch.RetryAfter(time.Minute, held)}}
	wantFailures(t, t.Context(), newHandler(t, w.handle, c.option), event(numbered(1)...), "m1")
	c.want(t, change(standardARN, "m1", time.Minute))
}

// Whatever goes wrong with a change, the answer stays the same and is on time.
func TestVisibilityFailures(t *testing.T) {
	errRefused := errors.New("access denied")
	for _, test := range []struct {
		name     string
		fail     func(context.Context) error
		deadline time.Duration // 0: none
		most     time.Duration
		want     string // in the one line that is logged
	}{
		{"errors", func(context.Context) error { return errRefused }, time.Minute, 0, "access denied"},
		{"panics", func(context.Context) error { panic("no changer") }, time.Minute, 0, "no changer"},
		{"panics with nil", func(context.Context) error { panic(nil) }, time.Minute, 0, "panic"},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, time.Minute, 0, "Goexit"},
		{"hangs until its context ends", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Minute,
			5 * time.Second, "deadline exceeded"},
		{"hangs near the deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Second,
			time.Second - 1, "deadline exceeded"},
		{"hangs without a deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0,
			5 * time.Second, "deadline exceeded"},
		{"ignores its context", func(context.Context) error { time.Sleep(time.Hour); return nil }, time.Minute,
			5 * time.Second, "deadline exceeded"},
		{"ignores its context near the deadline", func(context.Context) error { time.Sleep(time.Hour); return nil }, time.Second,
			time.Second - 1, "deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					limited, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = limited
				}
				var logged logs
				c := changer{fail: test.fail}
				w := &worker{errs: map[string]error{}}
				var failed []string
				for _, m := range numbered(25) {
					w.errs[m.ID] = retryAfter(time.Minute)
					failed = append(failed, m.ID)
				}
				begin := time.Now()
				wantFailures(t, ctx, newHandler(t, w.handle, c.option, logged.option), event(numbered(26)...), failed...)
				if took := time.Since(begin); took > test.most {
					t.Errorf("the answer took %v, want at most %v", took, test.most)
				}
				lines := logged.About(t, "visibility of failed messages was not changed")
				if len(lines) != 1 || !strings.Contains(lines[0].Error, test.want) || lines[0].Level != "WARN" {
					t.Errorf("lines: %+v, want one warning with %q", lines, test.want)
				}
				time.Sleep(3 * time.Hour) // until the stragglers are gone
				// Once the time is up, no more are asked for.
				c.mu.Lock()
				defer c.mu.Unlock()
				if hangs := test.most > 0; hangs && len(c.changes) != 10 || !hangs && len(c.changes) != 25 {
					t.Errorf("%d changes were asked for, want 10 if they hang, or else all 25", len(c.changes))
				}
			})
		})
	}
}

// After the deadline of the invocation there is nothing to change any more.
func TestVisibilityAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c changer
		w := &worker{work: func(context.Context, *sqs.Message[string]) error {
			time.Sleep(time.Second)
			return retryAfter(time.Minute)
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second-1)
		defer cancel()
		h := newHandler(t, w.handle, c.option, func(o *sqs.Options) { o.Reserve = -1 })
		wantFailures(t, ctx, h, event(numbered(1)...), "m1")
		synctest.Wait()
		c.want(t)
	})
}

// VisibilityFunc is a Visibility.
func TestVisibilityFunc(t *testing.T) {
	var got sqs.VisibilityChange
	w := &worker{errs: map[string]error{"m1": retryAfter(time.Minute)}}
	h := newHandler(t, w.handle, func(o *sqs.Options) {
		o.Visibility = sqs.VisibilityFunc(func(ctx context.Context, c sqs.VisibilityChange) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			got = c
			return nil
		})
	})
	wantFailures(t, t.Context(), h, event(numbered(1)...), "m1")
	if diff := gocmp.Diff(change(standardARN, "m1", time.Minute), got); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

// An invocation that is cancelled still has its changes made.
func TestVisibilityAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := changer{fail: func(ctx context.Context) error { return ctx.Err() }}
	var logged logs
	w := &worker{work: func(context.Context, *sqs.Message[string]) error {
		cancel()
		return retryAfter(time.Minute)
	}}
	wantFailures(t, ctx, newHandler(t, w.handle, c.option, logged.option), event(numbered(1)...), "m1")
	c.want(t, change(standardARN, "m1", time.Minute))
	if lines := logged.About(t, "visibility of failed messages was not changed"); len(lines) != 0 {
		t.Errorf("lines: %+v, want none", lines)
	}
}
