package dynamodbstream_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// The end of a window is guarded by stream, shard and window: it is finished once, however often its last event comes. Its
// changes are folded each time.
func TestWindowFinishIsGuarded(t *testing.T) {
	store := idempotency.NewMemoryStore()
	var f finished
	h := newWindowHandler(t, count, f.finish, withStore(t, store))
	last := window{Final: true}.event(texts(operations())...)
	const state = `{"INSERT":1,"MODIFY":2,"REMOVE":1}`
	for range 3 { // whose answers were lost
		wantState(t, t.Context(), h, last, state, "")
	}
	want := counts{"INSERT": 1, "MODIFY": 2, "REMOVE": 1}
	f.want(t, want)
	const key = "orders#window#arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000#" +
		"shardId-00000001573115804331-6cda73ee%232026-12-01T07:04:00Z%232026-12-01T07:06:00Z"
	if entry, _ := store.Get(key); entry.Status != idempotency.Completed || store.Len() != 1 {
		t.Errorf("entry is %v, of %d in the store, want the one of the window, completed", entry.Status, store.Len())
	}
	for _, other := range []struct{ old, new string }{
		{shardID, shardID + "0"}, {"07:06:00Z", "07:05:00Z"}, {"07:04:00Z", "07:03:00Z"},
		{`"eventSourceARN":"` + ordersARN + `","is`, `"eventSourceARN":"` + otherARN + `","is`},
	} {
		wantState(t, t.Context(), h, []byte(strings.ReplaceAll(string(last), other.old, other.new)), state, "")
		f.want(t, want)
	}
	plain := newWindowHandler(t, count, f.finish)
	for range 2 {
		wantState(t, t.Context(), plain, last, state, "")
	}
	f.want(t, want, want)
}

// Two invocations that finish a window at once finish it once: the second waits for the first.
func TestWindowFinishedElsewhere(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var finishes atomic.Int32
			h := newWindowHandler(t, count, func(context.Context, *dynamodbstream.Window[counts]) error {
				first := finishes.Add(1) == 1
				time.Sleep(5 * time.Second)
				if first && fails {
					return errors.New("no")
				}
				return nil
			}, guarded(t))
			last := window{Final: true}.event(texts(noted("a0"))...)
			var first sync.WaitGroup
			first.Go(func() {
				if fails {
					wantInvokeError(t, t.Context(), h, last, "window could not be finished")
				} else {
					wantState(t, t.Context(), h, last, `{"MODIFY":1}`, "")
				}
			})
			time.Sleep(time.Second)
			wantState(t, t.Context(), h, last, `{"MODIFY":1}`, "")
			first.Wait()
			want := int32(1)
			if fails {
				want = 2
			}
			if got := finishes.Load(); got != want {
				t.Errorf("window was finished %d times, want %d", got, want)
			}
		})
	}
}

// The key of a window's end lives as long as those of changes.
func TestWindowKeyExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f finished
		h := newWindowHandler(t, count, f.finish, guarded(t))
		last := window{Final: true, State: `{"MODIFY":1}`}.event()
		for _, step := range []struct {
			after time.Duration
			want  []counts
		}{{0, []counts{{"MODIFY": 1}}}, {25 * time.Hour, nil}, {time.Second, []counts{{"MODIFY": 1}}}} {
			time.Sleep(step.after)
			wantState(t, t.Context(), h, last, `{"MODIFY":1}`, "")
			f.want(t, step.want...)
		}
	})
}

// If a window cannot be finished, all of the event comes back, with the state as it was.
func TestWindowFinishFails(t *testing.T) {
	for name, options := range map[string][]func(*dynamodbstream.Options){"guard": {guarded(t)}, "no guard": nil} {
		t.Run(name, func(t *testing.T) {
			f := finished{err: errors.New("table is gone")}
			var logged logs
			h := newWindowHandler(t, count, f.finish, append(options, logged.option)...)
			last := window{Final: true}.event(texts(operations())...)
			want := counts{"INSERT": 1, "MODIFY": 2, "REMOVE": 1}
			wantInvokeError(t, t.Context(), h, last, "dynamodbstream: window could not be finished, so the whole batch has to come back", "table is gone")
			f.want(t, want)
			if lines := logged.About(t, "record failed"); len(lines) != 1 || !strings.Contains(lines[0].Record, shardID) {
				t.Errorf("lines are %+v, want one that names the shard", lines)
			}
			f.err = nil
			wantState(t, t.Context(), h, last, `{"INSERT":1,"MODIFY":2,"REMOVE":1}`, "")
			f.want(t, want)
		})
	}
	h := newWindowHandler(t, count, func(context.Context, *dynamodbstream.Window[counts]) error { panic("a value") })
	wantInvokeError(t, t.Context(), h, window{Final: true}.event(), "window could not be finished", "a value")
}

// A window ends without records too, and without Records at all.
func TestWindowWithoutRecords(t *testing.T) {
	last := string(window{Final: true, State: `{"INSERT":2}`}.event())
	for _, payload := range []string{last, strings.Replace(last, `,"Records":[]`, "", 1), strings.Replace(last, "[]", "null", 1)} {
		var f finished
		wantState(t, t.Context(), newWindowHandler(t, count, f.finish), []byte(payload), `{"INSERT":2}`, "")
		f.want(t, counts{"INSERT": 2})
	}
	var f finished
	wantState(t, t.Context(), newWindowHandler(t, count, f.finish), window{Final: true}.event(), `{}`, "")
	f.want(t, counts{})
}

// A window that Lambda ends early ends more than once, with other states. Each end is finished once.
func TestWindowTerminatedEarly(t *testing.T) {
	var f finished
	h := newWindowHandler(t, count, f.finish, guarded(t))
	records := texts(operations())
	first := window{Final: true, Early: true}.event(records[:2]...)
	second := window{Final: true, Early: true}.event(records[2:]...)
	last := window{Final: true, State: `{"MODIFY":7}`}.event()
	for range 2 {
		wantState(t, t.Context(), h, first, `{"INSERT":1,"MODIFY":1}`, "")
		wantState(t, t.Context(), h, second, `{"MODIFY":1,"REMOVE":1}`, "")
		wantState(t, t.Context(), h, last, `{"MODIFY":7}`, "")
	}
	if len(f.windows) != 3 || !f.windows[0].TerminatedEarly || f.windows[2].TerminatedEarly {
		t.Errorf("windows finished: %+v, want three, of which the first two early", f.windows)
	}
	f.want(t, counts{"INSERT": 1, "MODIFY": 1}, counts{"MODIFY": 1, "REMOVE": 1}, counts{"MODIFY": 7})
}
