package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

var errStore = errors.New("store is down")

// Case 21: one key twice in a batch is one run and one claim, also across partition keys, and never a deadlock.
func TestIdempotencyTwins(t *testing.T) {
	byID := kinesis.KeyOf(func(c click) string { return c.ID })
	for _, n := range []int{1, 2, 10} {
		for _, lanes := range [][2]string{{"g", "g"}, {"g", "h"}, {"", ""}} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprintf("concurrency %d, partition keys %q, fails %v", n, lanes, fails), func(t *testing.T) {
					store := &faults{}
					var mu sync.Mutex
					ran := 0
					h := newHandler(t, func(_ context.Context, r *kinesis.Record[click]) error {
						mu.Lock()
						defer mu.Unlock()
						ran++
						if fails && r.Data.ID == "c1" {
							return errors.New("no")
						}
						return nil
					}, concurrency(n), withStore(t, store), byID)
					payload := event(record{Data: `{"id":"c1"}`, Key: lanes[0]}, record{Data: `{"id":"c1"}`, Key: lanes[1], N: 1},
						record{Data: `{"id":"c3"}`, Key: "other", N: 2})
					number := ""
					if fails {
						number = sequence(0)
					}
					wantCheckpoint(t, t.Context(), h, payload, number)
					if ran != 2 || store.Claims.Load() != 2 {
						t.Errorf("%d ran after %d claims, want two of each", ran, store.Claims.Load())
					}
				})
			}
		}
	}
}

// Twins across lanes in both orders, from aggregates too: no order of the lanes makes a deadlock.
func TestIdempotencyTwinsAcrossLanes(t *testing.T) {
	byData := func(o *kinesis.Options) {
		o.Key = func(v kinesis.View) (string, error) { return string(v.RawData()[1:]), nil }
	}
	for _, n := range []int{1, 2, 10} {
		w := &worker{}
		h := newHandler(t, w.handle, concurrency(n), guarded(t), byData)
		wantCheckpoint(t, t.Context(), h, event(record{Data: aggregate("a1", "b2", "a2"), Key: "p"}, record{Data: "b1", Key: "b", N: 1}), "")
		if ran := w.take(); len(ran) != 2 {
			t.Errorf("%v ran, want one of each key", ran)
		}
	}
}

// counted is data that count how often they are decoded.
type counted struct{ ID string }

var (
	decoded   atomic.Int32
	errBroken = errors.New("broken data")
)

func (c *counted) UnmarshalJSON(data []byte) error {
	decoded.Add(1)
	c.ID = string(data)
	if c.ID == `"broken"` {
		return errBroken
	}
	return nil
}

// What is replayed is not decoded, where its key can be told without. Where it cannot, it is.
func TestIdempotencyReplaysAreNotDecoded(t *testing.T) {
	const n = 20
	var records []record
	for i := range n - 2 {
		records = append(records, record{Data: strconv.Itoa(i), Key: strconv.Itoa(i), N: i})
	}
	records = append(records, record{Data: aggregate("1", "2"), Key: "p", N: n})
	payload := event(records...)
	byDecode := func(o *kinesis.Options) {
		o.Decode = func(data []byte, v any) error { return v.(*counted).UnmarshalJSON(data) }
	}
	byView := func(o *kinesis.Options) { o.Key = func(v kinesis.View) (string, error) { return v.ID(), nil } }
	byData := kinesis.KeyOf(func(c counted) string { return c.ID })
	fingerprint := func(o *kinesis.Options) { o.Fingerprint = kinesis.DataSHA256 }
	for _, test := range []struct {
		name    string
		options []func(*kinesis.Options)
		want    []int32 // how many are decoded with the first delivery and with the second
	}{
		{"place", nil, []int32{n, 0}},
		{"place, own Decode", []func(*kinesis.Options){byDecode}, []int32{n, 0}},
		{"Options.Key", []func(*kinesis.Options){byView}, []int32{n, 0}},
		{"Options.Key and a fingerprint", []func(*kinesis.Options){byView, fingerprint}, []int32{n, 0}},
		{"KeyOf", []func(*kinesis.Options){byData}, []int32{n, n}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHandler(t, func(_ context.Context, r *kinesis.Record[counted]) error {
				if r.Data.ID != string(r.RawData()) {
					t.Errorf("data are %q, want %q", r.Data.ID, r.RawData())
				}
				return nil
			}, append(test.options, guarded(t))...)
			var got []int32
			for range 2 {
				decoded.Store(0)
				wantCheckpoint(t, t.Context(), h, payload, "")
				got = append(got, decoded.Load())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records that were decoded (-want +got):\n%s", diff)
			}
		})
	}
}

// A record that is claimed and cannot be decoded then fails with that error. Its claim is free again, and its attempt counted.
func TestIdempotencyOfWhatCannotBeDecoded(t *testing.T) {
	for _, own := range []bool{false, true} {
		for _, counts := range []bool{false, true} {
			t.Run(fmt.Sprintf("own Decode %v, counts %v", own, counts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &faults{}
					var failed errorHook
					ran := 0
					h := newHandler(t, func(context.Context, *kinesis.Record[counted]) error { ran++; return nil },
						withStore(t, store, func(o *idempotency.Options) { o.CountAttempts = counts }), failed.option, func(o *kinesis.Options) {
							if own {
								o.Decode = func(data []byte, v any) error { return v.(*counted).UnmarshalJSON(data) }
							}
						})
					payload := event(record{Data: `"a"`, Key: "a"}, record{Data: `"broken"`, Key: "b", N: 1}, record{Data: `"c"`, Key: "b", N: 2})
					begin := time.Now()
					for attempt := 1; attempt <= 3; attempt++ {
						failed = nil
						decoded.Store(0)
						wantCheckpoint(t, t.Context(), h, payload, sequence(1))
						err := failed.only(t)
						wantError(t, err, `kinesis: data of record "`+eventID(1)+`" are not a valid kinesis_test.counted: `)
						if !errors.Is(err, errBroken) {
							t.Errorf("error is %v, want %v in it", err, errBroken)
						}
						entry, ok := store.Get("clicks#" + keyOf(1))
						if entry.Status == idempotency.Completed || ok != counts || (counts && entry.Attempts != attempt) {
							t.Errorf("entry is %+v, there is one: %v, want one with %d attempts: %v", entry, ok, attempt, counts)
						}
						if got, want := decoded.Load(), int32(1)+map[bool]int32{true: 1}[attempt == 1]; got != want {
							t.Errorf("attempt %d: %d records were decoded, want %d", attempt, got, want)
						}
					}
					if took := time.Since(begin); took != 0 {
						t.Errorf("redeliveries took %v, want no wait for the claim", took)
					}
					if got, want := store.Releases.Load(), int32(3); ran != 1 || got != want {
						t.Errorf("%d ran, %d claims were released, want 1 and %d", ran, got, want)
					}
				})
			})
		}
	}
}

// Case 16: one key with other data is a mismatch, in the store and in the batch.
func TestIdempotencyFingerprint(t *testing.T) {
	options := []func(*kinesis.Options){
		kinesis.KeyOf(func(c click) string { return c.ID }), func(o *kinesis.Options) { o.Fingerprint = kinesis.DataSHA256 }, concurrency(1),
	}
	handle := func(context.Context, *kinesis.Record[click]) error { return nil }
	original := record{Data: `{"id":"c1","count":1}`, Key: "a", N: 0}
	same, other := original, original
	same.N, same.Key = 1, "b"
	other.N, other.Key, other.Data = 2, "c", `{"id":"c1","count":2}`
	for _, batches := range [][][]byte{{event(original), event(same, other)}, {event(original, same, other)}} {
		var failed errorHook
		h := newHandler(t, handle, append(options, guarded(t), failed.option)...)
		for i, payload := range batches {
			number := ""
			if i == len(batches)-1 {
				number = sequence(2)
			}
			wantCheckpoint(t, t.Context(), h, payload, number)
		}
		if err := failed.only(t); !errors.Is(err, idempotency.ErrFingerprintMismatch) || !batch.IsPermanent(err) {
			t.Errorf("error is %v, want a permanent %v", err, idempotency.ErrFingerprintMismatch)
		}
	}
}

// Rule 8: a claim that cannot be decided fails its record, and the handler does not run. Rule 9: work whose completion is
// not stored is done, but nothing of its partition key goes on.
func TestIdempotencyStoreFails(t *testing.T) {
	records := keyed("a1", "b1", "a2")
	store := &faults{OnClaim: func() error { return errStore }}
	w := &worker{}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, withStore(t, store)), event(records...), sequence(0))
	w.want(t)

	synctest.Test(t, func(t *testing.T) { // a completion is tried several times
		store := &faults{OnComplete: func() error { return errStore }}
		w := &worker{}
		h := newHandler(t, w.handle, withStore(t, store))
		wantCheckpoint(t, t.Context(), h, event(records...), sequence(2))
		w.want(t, "a1", "b1")
		// What is done and not recorded is in front of the checkpoint. It is not delivered again.
	})
}

// Case 23: a key lives 8 days by default, and as long as the guard says otherwise.
func TestIdempotencyExpiry(t *testing.T) {
	for _, test := range []struct {
		options func(*idempotency.Options)
		life    time.Duration
	}{
		{func(*idempotency.Options) {}, 8 * 24 * time.Hour},
		{func(o *idempotency.Options) { o.Expiry = 366 * 24 * time.Hour }, 366 * 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{}
			h := newHandler(t, w.handle, guarded(t, test.options))
			payload := event(keyed("a")...)
			for _, step := range []struct {
				after time.Duration
				want  []string
			}{{0, []string{"a"}}, {test.life, nil}, {time.Second, []string{"a"}}, {time.Second, nil}} {
				time.Sleep(step.after)
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.wantOrder(t, step.want...)
			}
		})
	}
}

// A record that is older than its key lives is warned about, once in the life of a handler.
func TestIdempotencyAgeWarning(t *testing.T) {
	const warning = "record is older than its idempotency key lives, so a redelivery may run again"
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		options func(*idempotency.Options)
		age     time.Duration
		want    int
	}{
		{"as old as its key", func(*idempotency.Options) {}, 8 * day, 0},
		{"older", func(*idempotency.Options) {}, 8*day + time.Millisecond, 1},
		{"older, with an expiry for it", func(o *idempotency.Options) { o.Expiry = 31 * day }, 30 * day, 0},
		{"older than the expiry", func(o *idempotency.Options) { o.Expiry = time.Hour }, time.Hour + time.Millisecond, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged logs
				h := newHandler(t, (&worker{}).handle, guarded(t, test.options), logged.option)
				records := numbered(3)
				for i := range records {
					records[i].At = time.Now().Add(-test.age)
				}
				for range 2 {
					wantCheckpoint(t, t.Context(), h, event(records...), "")
				}
				if lines := logged.About(t, warning); len(lines) != test.want || (len(lines) > 0 && lines[0].Record != eventID(0)) {
					t.Errorf("lines: %+v, want %d about %s", lines, test.want, eventID(0))
				}
			})
		})
	}
	// A record that does not say when it came is not old, and without a guard age does not matter.
	var logged logs
	old := record{Data: "a", Key: "a", At: time.Unix(1545084650, 0)}
	wantCheckpoint(t, t.Context(), newHandler(t, (&worker{}).handle, logged.option), event(old), "")
	unknown := change(old, `"approximateArrivalTimestamp":1545084650.000`, `"x":0`)
	wantCheckpoint(t, t.Context(), newHandler(t, (&worker{}).handle, guarded(t), logged.option), rawEvent(unknown), "")
	if lines := logged.About(t, warning); len(lines) != 0 {
		t.Errorf("lines: %+v, want none", lines)
	}
}
