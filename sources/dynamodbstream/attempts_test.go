package dynamodbstream_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// A poison change is given up at the attempt that MaxAttempts says, and the shard moves: what is behind it of its item runs,
// and nothing of it comes again.
func TestAttemptsOfAPoisonChange(t *testing.T) {
	records := noted("a0", "x1", "b2", "x3")
	undecodable := rawEvent(records[0].json(), records[1].undecodable(), records[2].json(), records[3].json())
	withoutKeys := rawEvent(records[0].json(), records[1].withoutKeys(), records[2].json(), records[3].json())
	for _, test := range []struct {
		name    string
		payload []byte
		first   []string // what runs with the first delivery,
		again   []string // with those up to the one that gives up,
		last    []string // and with that
		reason  string
	}{
		{"its handler fails", event(records...), []string{"a0", "b2", "x1"}, []string{"x1"}, []string{"x1", "x3"}, "x1 fails"},
		{"undecodable", undecodable, []string{"a0", "b2"}, nil, []string{"x3"}, "OldImage of change"},
		{"no keys", withoutKeys, []string{"a0"}, nil, []string{"b2", "x3"}, "record has no Keys"},
	} {
		for _, n := range []int{1, 2, 10} {
			for _, attempts := range []int{1, 2, 5} {
				t.Run(fmt.Sprintf("%s, concurrency %d, attempts %d", test.name, n, attempts), func(t *testing.T) {
					var dead sink
					store := idempotency.NewMemoryStore()
					w := &worker{errs: failing("x1")}
					h := newHandler(t, w.handle, concurrency(n), withStore(t, store, countAttempts), dead.giveUpAfter(attempts))
					for i := 1; i < attempts; i++ {
						wantCheckpoint(t, t.Context(), h, test.payload, sequence(1))
						if i == 1 {
							w.want(t, test.first...)
						} else {
							w.want(t, test.again...)
						}
						dead.want(t)
					}
					wantCheckpoint(t, t.Context(), h, test.payload, "")
					if attempts == 1 { // which is the first delivery too
						w.want(t, slices.Compact(slices.Sorted(slices.Values(slices.Concat(test.first, test.last))))...)
					} else {
						w.want(t, test.last...)
					}
					dead.want(t, fmt.Sprintf("%s at %d", eventID(1), attempts))
					wantError(t, dead.errs[0], test.reason)
					// The answer was lost: all of it comes again, and nothing of it runs or is given up again.
					wantCheckpoint(t, t.Context(), h, test.payload, "")
					w.want(t)
					dead.want(t)
					for i := range records {
						if entry, _ := store.Get("orders#" + keyOf(i)); entry.Status != idempotency.Completed {
							t.Errorf("entry of record %d is %v, want it completed", i, entry.Status)
						}
					}
				})
			}
		}
	}
}

// A sink that does not take the change leaves it to come back, and is asked again.
func TestAttemptsAndASinkThatFails(t *testing.T) {
	dead := sink{err: errors.New("sink is full")}
	w := &worker{errs: failing("x0")}
	h := newHandler(t, w.handle, guarded(t, countAttempts), dead.giveUpAfter(2))
	for range 3 {
		wantCheckpoint(t, t.Context(), h, event(noted("x0", "x1")...), sequence(0))
		w.want(t, "x0")
	}
	dead.want(t, eventID(0)+" at 2", eventID(0)+" at 3")
	dead.err = nil
	wantCheckpoint(t, t.Context(), h, event(noted("x0", "x1")...), "")
	w.wantOrder(t, "x0", "x1")
	dead.want(t, eventID(0)+" at 4")
}

// What is skipped behind a failure, and what is held elsewhere, is not counted.
func TestAttemptsAreStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attempts := map[string][]int{}
		note := func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				mu.Lock()
				attempts[r.ID] = append(attempts[r.ID], r.Attempt)
				mu.Unlock()
				return next(ctx, r)
			}
		}
		w := &worker{errs: failing("x0", "y2")}
		release := make(chan struct{})
		w.work = func(_ context.Context, c *dynamodbstream.Change[order]) error {
			if c.New.Note == "z3" {
				<-release
			}
			return nil
		}
		guard := guarded(t, countAttempts)
		h := newHandler(t, w.handle, guard, func(o *dynamodbstream.Options) { o.Middleware = []batch.Middleware{note} })
		records := noted("x0", "x1", "y2", "z3")

		var first sync.WaitGroup
		first.Go(func() { wantCheckpoint(t, t.Context(), h, event(records...), sequence(0)) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantCheckpoint(t, ctx, h, event(records...), sequence(0)) // waits for z3, which is held by the first
		close(release)
		first.Wait()
		w.errs = failing("y2")
		wantCheckpoint(t, t.Context(), h, event(records...), sequence(2))
		w.errs = nil
		wantCheckpoint(t, t.Context(), h, event(records...), "")
		want := map[string][]int{eventID(0): {1, 2, 3}, eventID(1): {1}, eventID(2): {1, 2, 3, 4}, eventID(3): {1}}
		if diff := cmp.Diff(want, attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

// Permanent errors are given up at once, without a guard too. So is a change that cannot be decoded, or has no key, where nobody
// counts its attempts: it would block its shard. Without a sink it comes back.
func TestAttemptsOfPermanentErrors(t *testing.T) {
	records := noted("x0", "b1")
	for name, options := range map[string]func(*dynamodbstream.Options){
		"no guard": func(*dynamodbstream.Options) {}, "guard": guarded(t), "guard that counts": guarded(t, countAttempts),
	} {
		t.Run(name, func(t *testing.T) {
			var dead sink
			w := &worker{errs: map[string]error{"x0": batch.Permanent(errors.New("never"))}}
			h := newHandler(t, w.handle, options, dead.giveUpAfter(0), concurrency(1))
			wantCheckpoint(t, t.Context(), h, event(records...), "")
			w.want(t, "b1", "x0")
			if len(dead.taken) != 1 {
				t.Errorf("sink was given %q, want x0", dead.taken)
			}
			dead.taken = nil
			if name == "guard that counts" {
				return // TestAttemptsOfAPoisonChange has it
			}
			for i, broken := range []string{record{ID: "y", Note: "y2", N: 2}.undecodable(), record{ID: "y", Note: "y3", N: 3}.withoutKeys()} {
				payload := rawEvent(record{ID: "a", Note: "a", N: 10 + i}.json(), broken, record{ID: "y", Note: "y", N: 20 + i}.json())
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.wantOrder(t, "a", "y")
				dead.want(t, eventID(2+i)+" at 0")
				comesBack := sequence(2 + i)
				if name == "guard" {
					comesBack = "" // the guard knows that the sink has it
				}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), payload, comesBack)
				w.take()
			}
		})
	}
}

// A change whose key function fails, or has nothing to say, is a poison change like any.
func TestAttemptsOfAChangeWithoutAKey(t *testing.T) {
	records := noted("a0", "x1", "x2")
	for name, key := range map[string]func(*dynamodbstream.Options){
		"key missing": dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string {
			if note(c) == "x1" {
				return ""
			}
			return note(c)
		}),
		"key fails": func(o *dynamodbstream.Options) {
			o.Key = func(v dynamodbstream.View) (string, error) {
				if v.ID() == eventID(1) {
					return "", errors.New("no key today")
				}
				return v.ID(), nil
			}
		},
		"key function panics": dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string {
			if note(c) == "x1" {
				panic("a value")
			}
			return note(c)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var dead sink
			w := &worker{}
			h := newHandler(t, w.handle, guarded(t, countAttempts), key, dead.giveUpAfter(2))
			wantCheckpoint(t, t.Context(), h, event(records...), sequence(1))
			w.want(t, "a0")
			wantCheckpoint(t, t.Context(), h, event(records...), "")
			w.want(t, "x2")
			dead.want(t, eventID(1)+" at 2")
		})
	}
}

// The sink sees the change, or, if it could not be decoded, its JSON.
func TestAttemptsSinkSeesTheChange(t *testing.T) {
	records := noted("x0", "y1")
	var got []*dynamodbstream.Change[order]
	w := &worker{errs: failing("x0")}
	h := newHandler(t, w.handle, concurrency(1), guarded(t, countAttempts), func(o *dynamodbstream.Options) {
		o.MaxAttempts = 1
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
			got = append(got, r.Value.(*dynamodbstream.Change[order]))
			return nil
		}
	})
	undecodable := records[1].undecodable()
	wantCheckpoint(t, t.Context(), h, rawEvent(records[0].json(), undecodable), "")
	if len(got) != 2 || got[0].New.Note != "x0" || got[1].New != nil || got[1].Keys.ID != "" || got[1].JSON() != undecodable {
		t.Errorf("sink got %+v, want a decoded change, and one with its JSON", got)
	}
}

// A change of which nobody knows what it is cannot be counted. It is handed to the sink at once, whether others are counted
// or not, and the shard moves on. Without a sink it comes back, and the whole batch if it has no number to name it by.
func TestAttemptsOfANamelessChange(t *testing.T) {
	a, b := record{ID: "a", Note: "a"}, record{ID: "b", Note: "b", N: 1}
	for _, test := range []struct {
		name, record, want string
		numbered           bool // so that an answer can name it
	}{
		{"no eventID", a.change(`"eventID":"`+eventID(0)+`",`, ""), "eventID is missing", true},
		{"eventID empty", a.change(`"eventID":"`+eventID(0)+`"`, `"eventID":""`), "eventID is missing", true},
		{"no ARN", a.change(`"eventSourceARN":"`+ordersARN+`"`, `"x":0`), "eventSourceARN is missing", true},
		{"null", "null", "record is null, want an object", false},
		{"no dynamodb", `{"eventSourceARN":"` + ordersARN + `"}`, "is missing, want an object", false},
	} {
		for _, by := range []struct {
			guard []func(*idempotency.Options)
			limit int
		}{{[]func(*idempotency.Options){countAttempts}, 3}, {[]func(*idempotency.Options){countAttempts}, 0}, {nil, 0}} {
			t.Run(fmt.Sprintf("%s, counted %v, limit %d", test.name, len(by.guard) > 0, by.limit), func(t *testing.T) {
				payload := rawEvent(test.record, b.json())
				w := &worker{}
				h := newHandler(t, w.handle, concurrency(1), guarded(t, by.guard...), func(o *dynamodbstream.Options) { o.MaxAttempts = by.limit })
				if test.numbered {
					wantCheckpoint(t, t.Context(), h, payload, sequence(0))
				} else {
					wantInvokeError(t, t.Context(), h, payload, "dynamodbstream: record 0 has no sequence number", test.want)
				}
				w.take() // b, unless what is broken keeps it back
				var dead sink
				h = newHandler(t, w.handle, concurrency(1), guarded(t, by.guard...), dead.giveUpAfter(by.limit))
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.wantOrder(t, "b")
				if len(dead.errs) != 1 {
					t.Fatalf("sink was given %q, want one change", dead.taken)
				}
				wantError(t, dead.errs[0], test.want)
			})
		}
	}
}

// A guard that counts gives no change up by its number of attempts where there is no limit. One that will not get better is
// handed to the sink at once, and once.
func TestAttemptsWithoutALimit(t *testing.T) {
	records := noted("a0", "x1", "x2")
	for _, broken := range []string{records[1].undecodable(), records[1].withoutKeys()} {
		var dead sink
		w := &worker{}
		h := newHandler(t, w.handle, concurrency(1), guarded(t, countAttempts), dead.giveUpAfter(0))
		for range 2 {
			wantCheckpoint(t, t.Context(), h, rawEvent(records[0].json(), broken, records[2].json()), "")
		}
		w.wantOrder(t, "a0", "x2")
		if len(dead.taken) != 1 || !strings.HasPrefix(dead.taken[0], eventID(1)) {
			t.Errorf("sink was given %q, want %s once", dead.taken, eventID(1))
		}
	}
}
