package eventbridge_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// EventBridge has no partial answer: all are finished, then one error if any failed, and the guard makes the retry cheap
// (case 12).
func TestArray(t *testing.T) {
	w := &worker{errs: failing("c")}
	h := newHandler(t, w.handle, guarded(t))
	payload := array(orders("a", "b", "c", "d")...)
	e := wantFailed(t, t.Context(), h, payload, 1, 4, "c fails")
	if e.ID != keyOf(2) {
		t.Errorf("ID of the first is %q, want %q", e.ID, keyOf(2))
	}
	w.want(t, "a", "b", "c", "d")
	wantFailed(t, t.Context(), h, payload, 1, 4, "c fails")
	w.want(t, "c")
	w.errs = nil
	wantDone(t, t.Context(), h, payload)
	w.want(t, "c")
	wantDone(t, t.Context(), h, payload)
	w.want(t)
}

// Without a guard all are finished too, and run again.
func TestArrayWithoutGuard(t *testing.T) {
	w := &worker{errs: failing("a")}
	h := newHandler(t, w.handle, concurrency(1))
	payload := array(orders("a", "b")...)
	for range 2 {
		wantFailed(t, t.Context(), h, payload, 1, 2, "a fails")
		w.wantOrder(t, "a", "b")
	}
}

// No more events run at once than Concurrency says.
func TestConcurrency(t *testing.T) {
	for _, test := range []struct{ concurrency, want int }{{0, 10}, {1, 1}, {3, 3}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			running, most := 0, 0
			w := &worker{work: func(context.Context, *eventbridge.Event[order]) error {
				mu.Lock()
				defer mu.Unlock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				return nil
			}}
			wantDone(t, t.Context(), newHandler(t, w.handle, guarded(t), concurrency(test.concurrency)), array(orders(make([]string, 60)...)...))
			if most != test.want {
				t.Errorf("%d ran at once at a concurrency of %d, want %d", most, test.concurrency, test.want)
			}
		})
	}
}

// byAmount is a lane: events of odd and of even amounts.
func byAmount(v eventbridge.View) string {
	if strings.Contains(v.JSON(), `"amount":9`) {
		return "" // free
	}
	return strconv.Itoa(int(v.ID()[len(v.ID())-1]) % 2)
}

// Events of one group, or of one lane, run in the order of the array, and a failure stops its lane only.
func TestLanes(t *testing.T) {
	grouped := func(groups string, ids ...string) []string {
		events := orders(ids...)
		for i := range events {
			events[i] = withMetadata(i, events[i], strings.TrimSpace(groups[i:i+1]))
		}
		return events
	}
	lane := func(o *eventbridge.Options) { o.Lane = byAmount }
	for _, test := range []struct {
		name   string
		events []string
		option func(*eventbridge.Options)
		failed int
		ran    []string // in order of start, with workers enough
		order  []string // of the end
	}{
		{"groups", grouped("gghh", "slow1", "bad", "a", "b"), nil, 1, []string{"a", "b", "bad", "slow1"}, []string{"a", "b", "slow1", "bad"}},
		{"behind a failure", grouped("ghgh", "bad", "a", "never", "b"), nil, 2, []string{"a", "b", "bad"}, nil},
		{"no group", grouped("    ", "slow1", "bad", "a", "b"), nil, 1, []string{"a", "b", "bad", "slow1"}, []string{"bad", "a", "b", "slow1"}},
		{"no metadata", orders("slow1", "bad", "a", "b"), nil, 1, []string{"a", "b", "bad", "slow1"}, []string{"bad", "a", "b", "slow1"}},
		{"Lane", orders("bad", "a", "never", "b"), lane, 2, []string{"a", "b", "bad"}, nil},
		{"Lane and groups", grouped("gggg", "bad", "a", "never", "b"), lane, 2, []string{"a", "b", "bad"}, nil},
		{"Lane, free", orders("0", "1", "2", "bad", "4", "never", "6", "never", "8", "free"), lane, 3,
			[]string{"0", "1", "2", "4", "6", "8", "bad", "free"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, guard func(*eventbridge.Options)) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					var ended []string
					w := &worker{errs: failing("bad")}
					w.work = func(_ context.Context, e *eventbridge.Event[order]) error {
						took := time.Duration(e.Detail.Amount+1) * time.Millisecond
						if strings.HasPrefix(e.Detail.ID, "slow") {
							took = time.Second
						}
						time.Sleep(took) // no two end at once
						mu.Lock()
						defer mu.Unlock()
						ended = append(ended, e.Detail.ID)
						return nil
					}
					h := newHandler(t, w.handle, guard, test.option)
					wantFailed(t, t.Context(), h, array(test.events...), test.failed, len(test.events), "bad fails")
					w.want(t, test.ran...)
					if diff := cmp.Diff(test.order, ended); test.order != nil && diff != "" {
						t.Errorf("order in which they ended (-want +got):\n%s", diff)
					}
				})
			})
		})
	}
}

// What is no event has no lane, and Lane need not fear it.
func TestLaneOfNoEvent(t *testing.T) {
	var asked []string
	h := newHandler(t, (&worker{}).handle, guarded(t), func(o *eventbridge.Options) {
		o.Lane = func(v eventbridge.View) string { asked = append(asked, v.ID()); return v.ID() }
	})
	wantFailed(t, t.Context(), h, array("null", `{"messageId":"1","eventSource":"aws:sqs"}`, placed(3, "o3")), 2, 3, "event is null")
	if diff := cmp.Diff([]string{uuid(3)}, asked); diff != "" {
		t.Errorf("events whose lane was asked for (-want +got):\n%s", diff)
	}
}

// An event that fails since its id or source is broken keeps its place: those behind it in its lane do not overtake it.
func TestLaneOfBadEvent(t *testing.T) {
	byAmount := func(o *eventbridge.Options) {
		o.Lane = func(v eventbridge.View) string { return string(v.RawDetail()[len(`{"id":"o1","amount":`):]) }
	}
	for name, broken := range map[string]string{
		"id": change(placed(1, "o1"), `"`+uuid(1)+`"`, "1"), "source": change(placed(1, "o1"), `"com.example.orders"`, "1"),
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, guard func(*eventbridge.Options)) {
				w := &worker{}
				h := newHandler(t, w.handle, guard, byAmount)
				behind := change(placed(2, "o2"), `"amount":2`, `"amount":1`)
				wantFailed(t, t.Context(), h, array(broken, behind, placed(3, "o3")), 2, 3, "eventbridge: "+name+" is a number")
				w.want(t, "o3")
			})
		})
	}
}

// A Lane that panics, or ends its goroutine, fails its event, and nobody knows what may run beside it: all run in the array's
// order.
func TestLanePanics(t *testing.T) {
	for _, test := range []struct {
		name  string
		end   func()
		want  string
		stack bool
	}{
		{"panic", func() { panic("no lane") }, "batch: panic: no lane", true},
		{"Goexit", runtime.Goexit, "batch: panic(nil) or runtime.Goexit", false},
	} {
		for position, before := range [][]string{nil, {"a"}, {"a", "b"}} {
			t.Run(fmt.Sprint(test.name, position), func(t *testing.T) {
				ids := []string{"a", "b", "c"}
				ids[position] = "bad"
				w, r := &worker{}, &results{}
				sunk := 0
				h := newHandler(t, w.handle, guarded(t), r.option, func(o *eventbridge.Options) {
					o.Lane = func(v eventbridge.View) string {
						if strings.Contains(v.JSON(), "bad") {
							test.end()
						}
						return v.ID()
					}
					o.DeadLetter = func(context.Context, *batch.Record, error) error { sunk++; return nil }
				})
				e := wantFailed(t, t.Context(), h, array(orders(ids...)...), 3-position, 3, test.want)
				if p, ok := errors.AsType[*batch.PanicError](e); !ok || (len(p.Stack) > 0) != test.stack {
					t.Errorf("error is %v, want a *batch.PanicError, with a stack: %t", e, test.stack)
				}
				w.wantOrder(t, before...)
				if sunk > 0 {
					t.Errorf("%d went to the sink, want none: a panic may not be the event's fault", sunk)
				}
			})
		}
	}
}

// A Lane that ends its goroutine every time still lets the invocation end.
func TestLaneAlwaysExits(t *testing.T) {
	h := newHandler(t, (&worker{}).handle, guarded(t), func(o *eventbridge.Options) {
		o.Lane = func(eventbridge.View) string { runtime.Goexit(); return "" }
	})
	wantFailed(t, t.Context(), h, array(orders("a", "b", "c")...), 3, 3, "runtime.Goexit")
}

// The same event twice in an array runs once (cases 11 and 21).
func TestTwins(t *testing.T) {
	eachWay(t, func(t *testing.T, option func(*eventbridge.Options)) {
		for _, c := range []int{1, 2} {
			w := &worker{errs: failing("bad")}
			h := newHandler(t, w.handle, option, concurrency(c))
			base := c * 10
			wantDone(t, t.Context(), h, array(placed(base, "a"), withMetadata(1, placed(base, "a"), "g"), placed(base+1, "b")))
			w.want(t, "a", "b")
			wantFailed(t, t.Context(), h, array(placed(base+2, "bad"), placed(base+2, "bad")), 2, 2, "bad fails")
			w.want(t, "bad")
		}
	})
}

// A panic, of any kind, fails its event, and the others go on.
func TestPanic(t *testing.T) {
	w := &worker{work: func(_ context.Context, e *eventbridge.Event[order]) error {
		if e.Detail.ID == "bad" {
			panic(fmt.Errorf("oh no"))
		}
		return nil
	}}
	wantFailed(t, t.Context(), newHandler(t, w.handle, guarded(t)), array(orders("a", "bad", "b")...), 1, 3, "batch: panic: oh no")
	w.want(t, "a", "b", "bad")
}
