package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Case 7: without a guard a shard is serial, whatever the items, and nothing behind a failure starts. With one, other items
// go on, and what is finished does not run again.
func TestOrderAndRedelivery(t *testing.T) {
	changes := noted("a0", "b1", "c2", "d3", "c4", "a5", "c6", "e7", "f8", "g9")
	for _, n := range []int{0, 1} {
		t.Run(fmt.Sprint("without a guard, concurrency ", n), func(t *testing.T) {
			w := &worker{errs: failing("c2")}
			h := newHandler(t, w.handle, concurrency(n))
			for range 3 {
				wantCheckpoint(t, t.Context(), h, event(changes...), sequence(2))
				w.wantOrder(t, "a0", "b1", "c2")
			}
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(changes[2:]...), "")
			w.wantOrder(t, "c2", "d3", "c4", "a5", "c6", "e7", "f8", "g9")
		})
	}
	for _, n := range []int{1, 2, 10} {
		t.Run(fmt.Sprint("guard, concurrency ", n), func(t *testing.T) {
			w := &worker{errs: failing("c2")}
			h := newHandler(t, w.handle, concurrency(n), guarded(t))
			wantCheckpoint(t, t.Context(), h, event(changes...), sequence(2))
			w.want(t, "a0", "b1", "c2", "d3", "a5", "e7", "f8", "g9")
			wantCheckpoint(t, t.Context(), h, event(changes[2:]...), sequence(2))
			w.want(t, "c2")
			w.errs = failing("c6")
			wantCheckpoint(t, t.Context(), h, event(changes[2:]...), sequence(6))
			w.wantOrder(t, "c2", "c4", "c6")
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(changes[6:]...), "")
			w.wantOrder(t, "c6")
		})
	}
	for _, n := range []int{1, 2, 10} {
		t.Run(fmt.Sprint("guard, serial, concurrency ", n), func(t *testing.T) {
			w := &worker{errs: failing("c2")}
			h := newHandler(t, w.handle, concurrency(n), guarded(t), serial)
			wantCheckpoint(t, t.Context(), h, event(changes...), sequence(2))
			w.wantOrder(t, "a0", "b1", "c2")
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(changes...), "")
			w.wantOrder(t, "c2", "d3", "c4", "a5", "c6", "e7", "f8", "g9")
		})
	}
}

// watch notes how many changes run at once, of an item and in all.
type watch struct {
	running, most atomic.Int32
}

func (w *watch) enter() {
	n := w.running.Add(1)
	for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
	}
}

func (w *watch) leave() { w.running.Add(-1) }

// The changes of an item run one at a time and in their order, those of different items beside each other, as far as
// Concurrency lets them. By option, and without a guard, all do so one at a time.
func TestOrderConcurrency(t *testing.T) {
	const items, each = 5, 4
	for _, test := range []struct {
		name    string
		options func(t *testing.T) []func(*dynamodbstream.Options)
		most    int32
	}{
		{"guard", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t)}
		}, items},
		{"guard, concurrency 2", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t), concurrency(2)}
		}, 2},
		{"guard, serial", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t), serial}
		}, 1},
		{"guard that lets changes run unprotected", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t, unprotected), byNote()}
		}, 1},
		{"the same, and own keys, which are never missing", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t, unprotected)}
		}, items},
		{"the same, and concurrency", func(t *testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){guarded(t, unprotected), byNote(), concurrency(3)}
		}, 3},
		{"no guard", func(*testing.T) []func(*dynamodbstream.Options) { return nil }, 1},
		{"no guard, concurrency", func(*testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){concurrency(3)}
		}, 3},
		{"no guard, concurrency and serial", func(*testing.T) []func(*dynamodbstream.Options) {
			return []func(*dynamodbstream.Options){concurrency(3), serial}
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all watch
				var one [items]watch
				w := &worker{work: func(_ context.Context, c *dynamodbstream.Change[order]) error {
					item := &one[c.Keys.ID[0]-'a']
					all.enter()
					item.enter()
					defer all.leave()
					defer item.leave()
					time.Sleep(time.Duration(len(c.ID())+int(c.New.Note[1])) * time.Millisecond)
					return nil
				}}
				var notes []string
				for i := range items * each {
					notes = append(notes, string(rune('a'+i%items))+strconv.Itoa(i/items))
				}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, test.options(t)...), event(noted(notes...)...), "")
				if got := all.most.Load(); got != test.most {
					t.Errorf("%d changes ran at once, want %d", got, test.most)
				}
				byItem := map[byte][]string{}
				for _, n := range w.take() {
					byItem[n[0]] = append(byItem[n[0]], n)
				}
				for i := range one {
					ran := byItem[byte('a'+i)]
					if one[i].most.Load() != 1 || len(ran) != each || !slices.IsSorted(ran) {
						t.Errorf("of item %d %d ran at once, in the order %v, want one after the other", i, one[i].most.Load(), ran)
					}
				}
			})
		})
	}
}

// Without a guard and with the concurrency that the user asks for, a failure stops what has not begun, other items' changes
// too: it would run again with what comes back.
func TestOrderConcurrencyWithoutGuardStops(t *testing.T) {
	for name, options := range map[string][]func(*dynamodbstream.Options){
		"no guard":             {concurrency(2)},
		"changes without keys": {concurrency(2), guarded(t, unprotected), dynamodbstream.KeyOf(func(*dynamodbstream.Change[order]) string { return "" })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{errs: failing("a0"), work: func(_ context.Context, c *dynamodbstream.Change[order]) error {
					time.Sleep(time.Second)
					if c.New.Note == "b1" {
						time.Sleep(time.Second)
					}
					return nil
				}}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options...), event(noted("a0", "b1", "c2", "d3")...), sequence(0))
				w.want(t, "a0", "b1")
			})
		})
	}
}

// The keys of an item are its partition key and its sort key, in whatever order they are written, and numbers are equal
// if their values are.
func TestOrderOfCompositeKeys(t *testing.T) {
	keys := func(i int, keys, note string) string {
		return record{ID: "x", Note: note, N: i}.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":`+keys)
	}
	payload := rawEvent(
		keys(0, `{"pk":{"S":"p"},"sk":{"N":"10"}}`, "first"),
		keys(1, `{"sk":{"N":"1E1"},"pk":{"S":"p"}}`, "same item"),
		keys(2, `{"pk":{"S":"p"},"sk":{"N":"11"}}`, "other sort key"),
		keys(3, `{"pk":{"S":"q"},"sk":{"N":"10"}}`, "other partition key"),
		keys(4, `{"pk":{"B":"cA=="},"sk":{"N":"10"}}`, "other type"),
		keys(5, ` { "pk" : {"S":"\u0070"} , "sk":{"N":"10.0"} } `, "same item again"))
	w := &worker{errs: failing("first")}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, guarded(t)), payload, sequence(0))
	w.want(t, "first", "other sort key", "other partition key", "other type")
}

// A record without its item's key may be of any item. What is before it runs, and nothing behind it does.
func TestOrderBehindABrokenRecord(t *testing.T) {
	broken := record{ID: "x", Note: "x1", N: 1}
	for name, test := range map[string]struct{ record, want string }{
		"no Keys":            {broken.withoutKeys(), "has no Keys"},
		"Keys null":          {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":null`), "has no Keys"},
		"Keys empty":         {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":{}`), "Keys: it has no attributes"},
		"Keys an array":      {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":[]`), "Keys: it is an array"},
		"Keys broken":        {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":{"id":{"S":7}}`), `Keys: attribute "id" S is a number`},
		"Keys of no key":     {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":{"id":{"BOOL":true}}`), "is of type BOOL, want S, N or B"},
		"Keys of bad number": {broken.change(`"Keys":{"id":{"S":"x"}}`, `"Keys":{"id":{"N":"x"}}`), "that is no number"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
				var logged logs
				records := noted("a0", "x1", "b2", "a3")
				payload := rawEvent(records[0].json(), test.record, records[2].json(), records[3].json())
				w := &worker{}
				h := newHandler(t, w.handle, inOrder(isGuarded, options), logged.option)
				wantCheckpoint(t, t.Context(), h, payload, sequence(1))
				w.want(t, "a0")
				line := logged.Failure(t, eventID(1))
				if !strings.Contains(line.Error, test.want) || line.Outcome != "failed" {
					t.Errorf("line is %+v, want a failure with %q", line, test.want)
				}
				for _, i := range []int{2, 3} {
					if line := logged.Failure(t, eventID(i)); line.Outcome != "skipped" {
						t.Errorf("line of record %d is %+v, want it skipped", i, line)
					}
				}
			})
		})
	}
}

// When a record without its item's key is given up, what is behind it goes on, but not before the changes of its own item
// that were before the broken one, and not if these failed.
func TestOrderBehindABrokenRecordThatIsGivenUp(t *testing.T) {
	records := noted("a0", "x1", "a2", "b3")
	payload := rawEvent(records[0].json(), records[1].withoutKeys(), records[2].json(), records[3].json())
	for _, n := range []int{1, 2, 10} {
		t.Run(fmt.Sprint("fails, concurrency ", n), func(t *testing.T) {
			w := &worker{errs: failing("a0")}
			h := newHandler(t, w.handle, concurrency(n), guarded(t, countAttempts), func(o *dynamodbstream.Options) {
				o.MaxAttempts = 1
				o.DeadLetter = func(_ context.Context, r *batch.Record, err error) error {
					if r.ID == eventID(0) {
						return errors.New("sink refuses it")
					}
					return nil
				}
			})
			for range 2 { // a redelivery too, in which the broken one is done
				wantCheckpoint(t, t.Context(), h, payload, sequence(0))
				if ran := w.take(); !slices.Contains(ran, "a0") || slices.Contains(ran, "a2") {
					t.Errorf("%v ran, want a0, and not a2, which is behind it", ran)
				}
			}
		})
		t.Run(fmt.Sprint("is slow, concurrency ", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dead sink
				var running watch
				w := &worker{work: func(context.Context, *dynamodbstream.Change[order]) error {
					running.enter()
					defer running.leave()
					time.Sleep(time.Second)
					return nil
				}}
				h := newHandler(t, w.handle, concurrency(n), guarded(t, countAttempts), dead.giveUpAfter(1))
				wantCheckpoint(t, t.Context(), h, payload, "")
				dead.want(t, eventID(1)+" at 1")
				w.wantOrder(t, "a0", "a2", "b3")
				if most := running.most.Load(); most != 1 {
					t.Errorf("%d ran at once, want a0 to end before a2 begins", most)
				}
			})
		})
	}
}

// An image that cannot be decoded is known to be of its item, so only that item's changes wait for it.
func TestOrderBehindAnUndecodableChange(t *testing.T) {
	records := noted("a0", "x1", "b2", "x3", "a4")
	payload := rawEvent(records[0].json(), records[1].undecodable(), records[2].json(), records[3].json(), records[4].json())
	for _, n := range []int{1, 2, 10} {
		for range 2 { // a redelivery too
			var logged logs
			w := &worker{}
			h := newHandler(t, w.handle, concurrency(n), guarded(t), logged.option)
			wantCheckpoint(t, t.Context(), h, payload, sequence(1))
			w.want(t, "a0", "a4", "b2")
			if got := logged.Failure(t, eventID(1)).Error; !strings.Contains(got, `OldImage of change "`+eventID(1)+`"`) {
				t.Errorf("error is %q, want one that says which image of which change is wrong", got)
			}
			if diff := cmp.Diff("skipped", logged.Failure(t, eventID(3)).Outcome); diff != "" {
				t.Errorf("outcome of the change behind it (-want +got):\n%s", diff)
			}
		}
	}
	w := &worker{}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle), payload, sequence(1))
	w.wantOrder(t, "a0")
}
