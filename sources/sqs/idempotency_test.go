package sqs_test

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

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
	"github.com/oncekit/oncekit/sources/sqs"
)

var errStore = errors.New("store is down")

// withStore is an option: a guard over the store.
func withStore(t tb, store idempotency.Store, optFns ...func(*idempotency.Options)) func(*sqs.Options) {
	guard := newGuard(t, store, optFns...)
	return func(o *sqs.Options) { o.Idempotency = guard }
}

// wantEntry checks the status of a key: Absent if there is no entry.
func wantEntry(t tb, store interface {
	Get(string) (idempotency.Entry, bool)
}, key string, want idempotency.Status) {
	t.Helper()
	entry, _ := store.Get("orders#" + key)
	if entry.Status != want {
		t.Errorf("entry of %q is %v, want %v", key, entry.Status, want)
	}
}

// What succeeded does not run again, what failed does.
func TestIdempotencyRedelivery(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		for _, arn := range []string{standardARN, fifoARN} {
			messages := numbered(4)
			for i := range messages {
				messages[i].ARN, messages[i].Group = arn, fmt.Sprint(i)
			}
			w := &worker{errs: failing("m2", "m3")}
			store := idempotency.NewMemoryStore()
			h := newHandler(t, w.handle, concurrency(n), withStore(t, store))
			wantFailures(t, t.Context(), h, event(messages...), "m2", "m3")
			w.want(t, "m1", "m2", "m3", "m4")
			wantEntry(t, store, "m1", idempotency.Completed)
			wantEntry(t, store, "m2", idempotency.Absent)

			w.errs = failing("m3")
			wantFailures(t, t.Context(), h, event(messages...), "m3")
			w.want(t, "m2", "m3")
			wantFailures(t, t.Context(), h, event(messages...), "m3")
			w.want(t, "m3")
		}
	}
}

// Case 21: the same key twice in a batch is one run and one claim, also across groups, and never a deadlock.
func TestIdempotencyTwins(t *testing.T) {
	byID := sqs.KeyOf(func(o order) string { return o.ID })
	for _, n := range []int{1, 2, 10} {
		for _, groups := range [][2]string{{"g", "g"}, {"g", "h"}, {"", ""}} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprintf("concurrency %d, groups %q, fails %v", n, groups, fails), func(t *testing.T) {
					store := &faults{}
					var mu sync.Mutex
					var ran []string
					h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
						mu.Lock()
						defer mu.Unlock()
						ran = append(ran, m.ID())
						if fails && m.Body.ID == "o1" {
							return errors.New("no")
						}
						return nil
					}, concurrency(n), withStore(t, store), byID)
					payload := event(
						message{ID: "m1", Body: `{"id":"o1"}`, ARN: fifoARN, Group: groups[0]},
						message{ID: "m2", Body: `{"id":"o1"}`, ARN: fifoARN, Group: groups[1]},
						message{ID: "m3", Body: `{"id":"o3"}`, ARN: fifoARN, Group: "other"})
					if fails {
						wantFailures(t, t.Context(), h, payload, "m1", "m2")
					} else {
						wantFailures(t, t.Context(), h, payload)
					}
					if len(ran) != 2 || store.Claims.Load() != 2 {
						t.Errorf("%v ran after %d claims, want two of each", ran, store.Claims.Load())
					}
				})
			}
		}
	}
}

// Case 16: the same key with another payload is a mismatch, whether the first is done, in progress, or in this batch.
func TestIdempotencyFingerprint(t *testing.T) {
	byID := sqs.KeyOf(func(o order) string { return o.ID })
	fingerprint := func(o *sqs.Options) { o.Fingerprint = sqs.BodySHA256 }
	original := message{ID: "m1", Body: `{"id":"o1","amount":1}`}
	same := message{ID: "m2", Body: original.Body}
	other := message{ID: "m3", Body: `{"id":"o1","amount":2}`}
	const mismatch = "idempotency: key was used with another payload"

	t.Run("stored", func(t *testing.T) {
		var logged logs
		ran := 0
		h := newHandler(t, func(context.Context, *sqs.Message[order]) error { ran++; return nil },
			guarded(t), byID, fingerprint, logged.option, concurrency(1))
		wantFailures(t, t.Context(), h, event(original))
		wantFailures(t, t.Context(), h, event(same, other), "m3")
		if ran != 1 {
			t.Errorf("%d messages ran, want 1", ran)
		}
		if n := logged.Failure(t, "m3"); !strings.Contains(n.Error, mismatch) || n.Outcome != "failed" {
			t.Errorf("line is %+v, want a failure with %q", n, mismatch)
		}
	})
	t.Run("in progress", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var logged logs
			release := make(chan struct{})
			h := newHandler(t, func(context.Context, *sqs.Message[order]) error { <-release; return nil },
				guarded(t), byID, fingerprint, logged.option)
			var first sync.WaitGroup
			first.Go(func() { wantFailures(t, t.Context(), h, event(original)) })
			synctest.Wait()
			wantFailures(t, t.Context(), h, event(same), "m2")
			wantFailures(t, t.Context(), h, event(other), "m3")
			close(release)
			first.Wait()
			if got := logged.Failure(t, "m2"); got.Outcome != "in progress" {
				t.Errorf("line is %+v, want it in progress", got)
			}
			if got := logged.Failure(t, "m3"); !strings.Contains(got.Error, mismatch) || got.Outcome != "failed" {
				t.Errorf("line is %+v, want a failure with %q", got, mismatch)
			}
		})
	})
	for _, n := range []int{1, 10} {
		t.Run(fmt.Sprint("in the same batch, concurrency ", n), func(t *testing.T) {
			var sunk atomic.Int32 // several workers may hand over at once
			ran := make(chan string, 9)
			h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error { ran <- m.ID(); return nil },
				guarded(t), byID, fingerprint, concurrency(n), func(o *sqs.Options) {
					o.DeadLetter = func(context.Context, *batch.Record, error) error {
						sunk.Add(1)
						return errors.New("sink is full")
					}
				})
			response, err := h.Invoke(t.Context(), event(original, same, other))
			if err != nil {
				t.Fatal(err)
			}
			// With more workers either payload may come first; the other one fails then, and is no replay.
			got, first := strings.Join(answer(t, response), " "), <-ran
			switch {
			case got == "m3" && first != "m3" && len(ran) == 0:
			case got == "m1 m2" && first == "m3" && len(ran) == 0 && n > 1:
			default:
				t.Errorf("%q failed, %q and %d more ran, want one payload to run once and the other to fail", got, first, len(ran))
			}
			if sunk.Load() == 0 {
				t.Error("the mismatch was not handed to the dead-letter sink, want it to be: it will not become a match")
			}
		})
	}
}

// A message that another invocation works on is reported at once, and runs or is replayed when it comes again.
func TestIdempotencyInProgressElsewhere(t *testing.T) {
	for _, n := range []int{1, 10} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("concurrency %d, fails %v", n, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var logged logs
					release := make(chan struct{})
					w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
						if m.ReceiveCount() == 1 && m.ID() == "m1" {
							<-release
							if fails {
								return errors.New("no")
							}
						}
						return nil
					}}
					h := newHandler(t, w.handle, concurrency(n), guarded(t), logged.option)
					var first sync.WaitGroup
					first.Go(func() {
						if fails {
							wantFailures(t, t.Context(), h, event(message{ID: "m1"}), "m1")
						} else {
							wantFailures(t, t.Context(), h, event(message{ID: "m1"}))
						}
					})
					synctest.Wait()
					begin := time.Now()
					wantFailures(t, t.Context(), h, event(message{ID: "m1", Receives: 2}, message{ID: "m2"}), "m1")
					if took := time.Since(begin); took != 0 {
						t.Errorf("the answer took %v, want none: the queue waits for nothing", took)
					}
					if got := logged.Failure(t, "m1"); got.Level != "WARN" || got.Outcome != "in progress" || got.Attempt != 2 {
						t.Errorf("line is %+v, want a warning that m1 is in progress", got)
					}
					close(release)
					first.Wait()
					w.want(t, "m1", "m2")
					wantFailures(t, t.Context(), h, event(message{ID: "m1", Receives: 3}))
					if fails {
						w.want(t, "m1")
					} else {
						w.want(t)
					}
				})
			})
		}
	}
}

// Case 14: without a deadline the default lease holds the key, and when it is over the work is taken over.
func TestIdempotencyTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged logs
		begin := time.Now()
		w := &worker{}
		w.work = func(ctx context.Context, m *sqs.Message[string]) error {
			if time.Now().Equal(begin) {
				time.Sleep(3 * time.Minute) // although its context ends
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("context's error after its lease is %v", ctx.Err())
				}
			}
			return nil
		}
		store := &faults{}
		h := newHandler(t, w.handle, withStore(t, store), logged.option)
		var first sync.WaitGroup
		first.Go(func() { wantFailures(t, t.Context(), h, event(message{ID: "m1"}), "m1") })
		for range 61 { // the lease, and a second of skew
			time.Sleep(time.Second)
			wantFailures(t, t.Context(), h, event(message{ID: "m1"}), "m1")
		}
		time.Sleep(2 * time.Millisecond)
		wantFailures(t, t.Context(), h, event(message{ID: "m1"}))
		w.want(t, "m1", "m1")
		first.Wait()
		lines := logged.About(t, "record failed")
		if len(lines) != 1 || !strings.Contains(lines[0].Error, idempotency.ErrClaimLost.Error()) {
			t.Errorf("failures: %+v, want one with %q", lines, idempotency.ErrClaimLost)
		}
		wantEntry(t, store, "m1", idempotency.Completed)
	})
}

// Case 23: a key lives 15 days by default and counts as absent afterwards, whether or not its entry was deleted.
func TestIdempotencyExpiry(t *testing.T) {
	for _, test := range []struct {
		options func(*idempotency.Options)
		life    time.Duration
	}{
		{func(*idempotency.Options) {}, 15 * 24 * time.Hour},
		{func(o *idempotency.Options) { o.Expiry = 300 * time.Second }, 300 * time.Second},
		{func(o *idempotency.Options) { o.Expiry = 60 * 24 * time.Hour }, 60 * 24 * time.Hour},
	} {
		t.Run(test.life.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				h := newHandler(t, w.handle, guarded(t, test.options))
				for _, step := range []struct {
					after time.Duration
					want  []string
				}{{0, []string{"m1"}}, {test.life, nil}, {time.Second, []string{"m1"}}, {time.Second, nil}} {
					time.Sleep(step.after)
					wantFailures(t, t.Context(), h, event(message{ID: "m1", Sent: time.Now()}))
					w.wantOrder(t, step.want...)
				}
			})
		})
	}
}

// A message that is older than its key lives is warned about, once in the life of a handler.
func TestIdempotencyAgeWarning(t *testing.T) {
	const warning = "record is older than its idempotency key lives, so a redelivery may run again"
	hour := func(o *idempotency.Options) { o.Expiry = time.Hour }
	for _, test := range []struct {
		name    string
		options func(*idempotency.Options)
		age     time.Duration
		want    int
	}{
		{"as old as SQS lets a message be", func(*idempotency.Options) {}, 14 * 24 * time.Hour, 0},
		{"of a sample event, years old", func(*idempotency.Options) {}, 5 * 365 * 24 * time.Hour, 0},
		{"young by option", hour, time.Hour, 0},
		{"older by option", hour, time.Hour + time.Millisecond, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged logs
				h := newHandler(t, (&worker{}).handle, guarded(t, test.options), logged.option)
				messages := numbered(20)
				for i := range messages {
					messages[i].Sent = time.Now().Add(-test.age)
				}
				messages[0].Sent = time.Now()
				wantFailures(t, t.Context(), h, event(messages...))
				wantFailures(t, t.Context(), h, event(messages...))
				if lines := logged.About(t, warning); len(lines) != test.want {
					t.Errorf("lines: %+v, want %d", lines, test.want)
				}
			})
		})
	}
	// A message that does not say when it was sent is not old, and without a guard age does not matter.
	var logged logs
	h := newHandler(t, (&worker{}).handle, guarded(t), logged.option)
	wantFailures(t, t.Context(), h, rawEvent(`{"messageId":"m1","body":""}`))
	wantFailures(t, t.Context(), newHandler(t, (&worker{}).handle, logged.option), event(message{ID: "m2"}))
	if diff := cmp.Diff([]sourcetest.Line(nil), logged.About(t, warning)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
