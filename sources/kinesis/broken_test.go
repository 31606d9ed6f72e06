package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// brokenAggregate has a record whose partition key is not in it.
var brokenAggregate = withDigest("\n\x01a\x1a\x05\b\x05\x1a\x01z")

// sink is a dead-letter sink that keeps what it is given.
type sink struct{ records, errs []string }

func (s *sink) option(o *kinesis.Options) {
	o.DeadLetter = func(_ context.Context, r *batch.Record, err error) error {
		s.records = append(s.records, r.ID)
		s.errs = append(s.errs, err.Error())
		return nil
	}
}

func countAttempts(o *idempotency.Options) { o.CountAttempts = true }

func maxAttempts(n int) func(*kinesis.Options) { return func(o *kinesis.Options) { o.MaxAttempts = n } }

// A record that nobody can read is poison like any other: it is handed to the sink with its last attempt, and the shard
// moves on.
func TestBrokenIsGivenUp(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"broken aggregate", brokenAggregate, "is a KPL aggregate that is broken"},
		{"no JSON", "{", "are not a valid kinesis_test.click"},
		{"corrupt gzip", deflate("{}")[:12], "gzip data of record"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var taken sink
			handle := func(context.Context, *kinesis.Record[click]) error { return nil }
			h := newHandler(t, handle, guarded(t, countAttempts), maxAttempts(3), gunzip(0), taken.option)
			payload := event(record{Data: "{}", Key: "b"}, record{Data: test.data, Key: "p", N: 1}, record{Data: "{}", Key: "c", N: 2})
			for range 2 {
				wantCheckpoint(t, t.Context(), h, payload, sequence(1))
			}
			if len(taken.records) != 0 {
				t.Errorf("sink has %v before the last attempt, want nothing", taken.records)
			}
			for range 2 {
				wantCheckpoint(t, t.Context(), h, payload, "")
			}
			if diff := cmp.Diff([]string{eventID(1)}, taken.records); diff != "" || !strings.Contains(taken.errs[0], test.want) {
				t.Errorf("errors %q, want %q, records in the sink (-want +got):\n%s", taken.errs, test.want, diff)
			}
		})
	}
}

// A broken aggregate may have records of any partition key. What is behind it in the batch runs after it and after what was
// in front of it, although the broken one itself is given up at once.
func TestBrokenKeepsTheOrder(t *testing.T) {
	payload := event(record{Data: "a1", Key: "a", N: 0}, record{Data: brokenAggregate, Key: "p", N: 1}, record{Data: "a2", Key: "a", N: 2})
	for _, fails := range []bool{false, true} {
		for _, n := range []int{1, 2, 10} {
			synctest.Test(t, func(t *testing.T) {
				var s spans
				w := &worker{work: func(ctx context.Context, r *kinesis.Record[string]) error {
					err := s.work(ctx, r)
					if fails && r.Data == "a1" {
						err = errors.New("no")
					}
					return err
				}}
				h := newHandler(t, w.handle, concurrency(n), guarded(t, countAttempts), maxAttempts(1), func(o *kinesis.Options) {
					o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
						if r.ID == eventID(0) {
							return errors.New("sink is full")
						}
						return nil
					}
				})
				want := []string{"begin a1", "end a1", "begin a2", "end a2"}
				number := ""
				if fails {
					want, number = want[:2], sequence(0)
				}
				wantCheckpoint(t, t.Context(), h, payload, number)
				if diff := cmp.Diff(want, s.of("a")); diff != "" {
					t.Errorf("concurrency %d, fails %v: records of a (-want +got):\n%s", n, fails, diff)
				}
			})
		}
	}
}

// A record of which it is not even known where it belongs is no reason to lose another: its failure stops what is behind it.
func TestBrokenByDecode(t *testing.T) {
	var taken sink
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), taken.option, func(o *kinesis.Options) {
		o.Decode = func(data []byte, v any) error {
			if string(data) == "b" {
				return batch.Permanent(errors.New("unknown version"))
			}
			*v.(*string) = string(data)
			return nil
		}
	})
	wantCheckpoint(t, t.Context(), h, event(keyed("a", "b", "c")...), "")
	w.want(t, "a", "c")
	if diff := cmp.Diff([]string{eventID(1)}, taken.records); diff != "" {
		t.Errorf("records in the sink (-want +got):\n%s", diff)
	}
}

// A record of which nobody knows what it is cannot be counted. It is handed to the sink at once, whether others are counted
// or not, and the shard moves on. Without a sink it fails, and the whole invocation if it has no number to name it by.
func TestBrokenAndNameless(t *testing.T) {
	a := record{Data: "a", Key: "a"}
	for _, test := range []struct {
		name, record, want string
		numbered           bool // so that an answer can name it
	}{
		{"null", "null", "kinesis: record is null, want an object", false},
		{"no ARN", change(a, `"eventSourceARN":"`+clicksARN+`",`, ""), "eventSourceARN is missing", true},
		{"another eventID", change(a, shardID+":"+sequence(0), "x"), `eventID is "x"`, true},
		{"no eventID", change(a, `"eventID":"`+eventID(0)+`",`, ""), `eventID is ""`, true},
		{"no kinesis", `{"eventID":"` + eventID(0) + `","eventSourceARN":"` + clicksARN + `"}`, "has kinesis that is missing", false},
		{"null instead of kinesis", `{"kinesis":null}`, "has kinesis that is null", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			payload := rawEvent(test.record, change(record{Data: "b", Key: "b", N: 1}))
			for _, by := range []struct {
				guard []func(*idempotency.Options)
				limit int
			}{{[]func(*idempotency.Options){countAttempts}, 3}, {[]func(*idempotency.Options){countAttempts}, 0}, {nil, 0}} {
				w := &worker{}
				h := newHandler(t, w.handle, concurrency(1), guarded(t, by.guard...), maxAttempts(by.limit))
				if test.numbered {
					wantCheckpoint(t, t.Context(), h, payload, sequence(0))
				} else {
					wantInvokeError(t, t.Context(), h, payload, "kinesis: record 0 has no sequence number", test.want)
				}
				w.take() // b, unless what is broken keeps it back
				var taken sink
				h = newHandler(t, w.handle, concurrency(1), guarded(t, by.guard...), maxAttempts(by.limit), taken.option)
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.wantOrder(t, "b")
				if len(taken.errs) != 1 || !strings.Contains(taken.errs[0], test.want) {
					t.Errorf("limit %d: errors in the sink are %q, want one with %q", by.limit, taken.errs, test.want)
				}
			}
		})
	}
}

// A guard that counts gives no record up by its number of attempts where there is no limit. One that will not get better
// is handed to the sink at once.
func TestBrokenWithoutALimit(t *testing.T) {
	for name, options := range map[string]func(*kinesis.Options){
		"place": func(*kinesis.Options) {}, "KeyOf": kinesis.KeyOf(func(c click) string { return c.ID }),
	} {
		for _, data := range []string{"{", brokenAggregate} {
			t.Run(fmt.Sprintf("%s, %.1q", name, data), func(t *testing.T) {
				var taken sink
				ran := 0
				h := newHandler(t, func(context.Context, *kinesis.Record[click]) error { ran++; return nil },
					concurrency(1), guarded(t, countAttempts), options, taken.option)
				payload := event(record{Data: `{"id":"a"}`, Key: "a"}, record{Data: data, Key: "p", N: 1}, record{Data: `{"id":"c"}`, Key: "p", N: 2})
				for range 2 {
					wantCheckpoint(t, t.Context(), h, payload, "")
				}
				if diff := cmp.Diff([]string{eventID(1)}, taken.records); ran != 2 || diff != "" {
					t.Errorf("%d ran, want 2, records in the sink (-want +got):\n%s", ran, diff)
				}
			})
		}
	}
}

// Attempts count handlers' starts. A failing record is given up with the one that MaxAttempts says, and the shard moves.
func TestAttempts(t *testing.T) {
	for _, n := range []int{1, 10} {
		var taken sink
		var attempts []int
		w := &worker{errs: failing("a1")}
		w.work = func(ctx context.Context, r *kinesis.Record[string]) error {
			if info, _ := idempotency.FromContext(ctx); r.Data == "a1" {
				attempts = append(attempts, info.Attempt)
			}
			return nil
		}
		store := idempotency.NewMemoryStore()
		h := newHandler(t, w.handle, concurrency(n), withStore(t, store, countAttempts), maxAttempts(3), taken.option)
		payload := event(keyed("a1", "b1", "a2")...)
		for range 2 {
			wantCheckpoint(t, t.Context(), h, payload, sequence(0))
		}
		w.want(t, "a1", "a1", "b1")
		// Skipped records were not started, and count nothing.
		if entry, _ := store.Get("clicks#" + keyOf(2)); entry.Attempts != 0 {
			t.Errorf("a skipped record has %d attempts, want 0", entry.Attempts)
		}
		wantCheckpoint(t, t.Context(), h, payload, "")
		w.wantOrder(t, "a1", "a2")
		if diff := cmp.Diff([]int{1, 2, 3}, attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{eventID(0)}, taken.records); diff != "" || taken.errs[0] != "a1 fails" {
			t.Errorf("errors %q, records in the sink (-want +got):\n%s", taken.errs, diff)
		}
		wantCheckpoint(t, t.Context(), h, payload, "") // the answer was lost
		w.wantOrder(t)
	}
}

// A record that waits for another's claim in vain, and one whose claim comes too late to start, were not attempted.
func TestAttemptsOfTheUnstarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken sink
		store := &faults{}
		guard := newGuard(t, store, countAttempts, func(o *idempotency.Options) { o.Lease = time.Minute })
		claim := hold(t, guard, keyOf(0)) // the first attempt
		w := &worker{errs: failing("a1")}
		h := newHandler(t, w.handle, maxAttempts(3), taken.option, func(o *kinesis.Options) { o.Idempotency = guard })
		within := func(d time.Duration, number string, ran ...string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			wantCheckpoint(t, ctx, h, event(keyed("a1")...), number)
			w.wantOrder(t, ran...)
		}
		for range 4 {
			within(5*time.Second, sequence(0)) // in progress elsewhere
		}
		if err := claim.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.OnClaimed = func() error { time.Sleep(4500 * time.Millisecond); return nil }
		for range 4 {
			within(5*time.Second, sequence(0)) // too late to start
		}
		store.OnClaimed = nil
		within(5*time.Second, sequence(0), "a1")
		within(5*time.Second, "", "a1")
		if len(taken.records) != 1 {
			t.Errorf("sink has %q, want the record once, with its third attempt", taken.records)
		}
	})
}

// A sink that does not take the record leaves it failed, and it comes again.
func TestAttemptsWithAFullSink(t *testing.T) {
	w := &worker{errs: failing("a1")}
	full := true
	h := newHandler(t, w.handle, guarded(t, countAttempts), maxAttempts(1), func(o *kinesis.Options) {
		o.DeadLetter = func(context.Context, *batch.Record, error) error {
			if full {
				return errors.New("sink is full")
			}
			return nil
		}
	})
	payload := event(keyed("a1", "a2")...)
	wantCheckpoint(t, t.Context(), h, payload, sequence(0))
	full = false
	wantCheckpoint(t, t.Context(), h, payload, "")
	w.wantOrder(t, "a1", "a1", "a2")
}

// MaxAttempts without anyone who counts is an option that would do nothing.
func TestAttemptsOptionErrors(t *testing.T) {
	for _, options := range [][]func(*kinesis.Options){{maxAttempts(3)}, {maxAttempts(3), guarded(t)}} {
		_, err := kinesis.NewHandler((&worker{}).handle, options...)
		wantError(t, err, "kinesis: Options.MaxAttempts is 3, but nobody counts attempts")
	}
}
