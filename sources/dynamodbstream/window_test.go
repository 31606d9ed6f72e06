package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

const shardID = "shardId-00000001573115804331-6cda73ee"

// counts is a state: how many changes of each operation a window has.
type counts map[dynamodbstream.Operation]int

// count folds a change into the state that it is given, in place, before it may fail, as handlers do.
func count(_ context.Context, state counts, c *dynamodbstream.Change[order]) (counts, error) {
	state[c.Operation()]++
	if strings.HasPrefix(note(c), "fails") {
		return state, errors.New(note(c))
	}
	return state, nil
}

func finishNothing(context.Context, *dynamodbstream.Window[counts]) error { return nil }

// window is what an event of a tumbling window has beside its records.
type window struct {
	State string // {}
	Final bool
	Early bool
}

// event returns the event of a window with these records, which are JSON.
func (w window) event(records ...string) []byte {
	if w.State == "" {
		w.State = "{}"
	}
	return fmt.Appendf(nil, `{"window":{"start":"2026-12-01T07:04:00Z","end":"2026-12-01T07:06:00Z"},"state":%s,"shardId":%q,`+
		`"eventSourceARN":%q,"isFinalInvokeForWindow":%v,"isWindowTerminatedEarly":%v,"Records":[%s]}`,
		w.State, shardID, ordersARN, w.Final, w.Early, strings.Join(records, ","))
}

// operations returns an insert, a modify and a remove, and one more modify.
func operations() []record {
	records := noted("a0", "b1", "c2", "d3")
	records[0].Operation, records[2].Operation = "INSERT", "REMOVE"
	return records
}

func texts(records []record) (texts []string) {
	for _, r := range records {
		texts = append(texts, r.json())
	}
	return texts
}

func newWindowHandler[T, S any](
	t testing.TB, fold func(context.Context, S, *dynamodbstream.Change[T]) (S, error),
	finish func(context.Context, *dynamodbstream.Window[S]) error, optFns ...func(*dynamodbstream.Options),
) *dynamodbstream.WindowHandler[T, S] {
	t.Helper()
	h, err := dynamodbstream.NewWindowHandler(fold, finish, append([]func(*dynamodbstream.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// wantState invokes h and checks the state of its answer, and the one sequence number that it names, if any.
func wantState(t testing.TB, ctx context.Context, h invoker, payload []byte, state, number string) {
	t.Helper()
	response, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"state":` + state + `,` + strings.TrimPrefix(answer(number), "{")
	if diff := cmp.Diff(want, string(response)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// finished notes the windows that are finished.
type finished struct {
	windows []dynamodbstream.Window[counts]
	err     error
}

func (f *finished) finish(_ context.Context, w *dynamodbstream.Window[counts]) error {
	f.windows = append(f.windows, *w)
	return f.err
}

// want checks which windows were finished, by their states.
func (f *finished) want(t testing.TB, states ...counts) {
	t.Helper()
	var got []counts
	for _, w := range f.windows {
		got = append(got, w.State)
	}
	if diff := cmp.Diff(states, got); diff != "" {
		t.Errorf("windows finished (-want +got):\n%s", diff)
	}
	f.windows = nil
}

// Changes are folded into the state, from one invocation to the next, and the state is finished with the last.
func TestWindow(t *testing.T) {
	for name, options := range map[string][]func(*dynamodbstream.Options){
		"guard": {guarded(t)}, "no guard": nil, "concurrency 1": {guarded(t), concurrency(1)},
	} {
		t.Run(name, func(t *testing.T) {
			var f finished
			h := newWindowHandler(t, count, f.finish, options...)
			records := texts(operations())
			wantState(t, t.Context(), h, window{}.event(records[:2]...), `{"INSERT":1,"MODIFY":1}`, "")
			wantState(t, t.Context(), h, window{State: `{"INSERT":1,"MODIFY":1}`}.event(), `{"INSERT":1,"MODIFY":1}`, "")
			f.want(t)
			want := counts{"INSERT": 1, "MODIFY": 2, "REMOVE": 1}
			wantState(t, t.Context(), h, window{State: `{"INSERT":1,"MODIFY":1}`, Final: true}.event(records[2:]...),
				`{"INSERT":1,"MODIFY":2,"REMOVE":1}`, "")
			if len(f.windows) != 1 {
				t.Fatalf("windows finished: %+v, want one", f.windows)
			}
			wantWindow := dynamodbstream.Window[counts]{
				State: want, Start: time.Date(2026, 12, 1, 7, 4, 0, 0, time.UTC), End: time.Date(2026, 12, 1, 7, 6, 0, 0, time.UTC),
				ShardID: shardID, StreamARN: ordersARN,
			}
			if diff := cmp.Diff(wantWindow, f.windows[0]); diff != "" {
				t.Errorf("window (-want +got):\n%s", diff)
			}
		})
	}
}

// Folding is serial and in the order of the shard, whatever the items.
func TestWindowOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type list struct{ Notes []string }
		fold := func(_ context.Context, s list, c *dynamodbstream.Change[order]) (list, error) {
			notes := s.Notes
			time.Sleep(time.Duration('9'-c.New.Note[1]) * time.Millisecond)
			return list{append(notes, c.New.Note)}, nil
		}
		h := newWindowHandler(t, fold, func(context.Context, *dynamodbstream.Window[list]) error { return nil }, guarded(t))
		wantState(t, t.Context(), h, window{State: `{"Notes":["z"]}`}.event(texts(numbered(5))...), `{"Notes":["z","r0","r1","r2","r3","r4"]}`, "")
	})
}

// A failure in the middle stops the folding. The state has what is before it, and not the mark that the failed fold left.
// The retry begins with that state, so that each change is in it once. Nothing is finished before all is in the state.
func TestWindowFailure(t *testing.T) {
	records := operations()
	records[2] = record{ID: "a", Note: "fails", N: 2}
	for broken, third := range map[string]string{
		"the fold fails": records[2].json(), "undecodable": records[2].undecodable(), "no keys": records[2].withoutKeys(),
	} {
		t.Run(broken, func(t *testing.T) {
			for _, options := range []func(*dynamodbstream.Options){nil, guarded(t)} {
				var f finished
				h := newWindowHandler(t, count, f.finish, options)
				payload := texts(records)
				payload[2] = third
				for range 2 {
					wantState(t, t.Context(), h, window{State: `{"MODIFY":5}`, Final: true}.event(payload...), `{"INSERT":1,"MODIFY":6}`, sequence(2))
				}
				f.want(t)
				payload[2] = record{ID: "a", Note: "a2", N: 2}.json()
				wantState(t, t.Context(), h, window{State: `{"INSERT":1,"MODIFY":6}`, Final: true}.event(payload[2:]...), `{"INSERT":1,"MODIFY":8}`, "")
				f.want(t, counts{"INSERT": 1, "MODIFY": 8})
			}
		})
	}
}

// A change that is given up for good, or cannot be decoded and has a sink, is done, and not part of the state.
func TestWindowDeadLetter(t *testing.T) {
	fold := func(ctx context.Context, state counts, c *dynamodbstream.Change[order]) (counts, error) {
		state, err := count(ctx, state, c)
		if err != nil {
			err = batch.Permanent(err)
		}
		return state, err
	}
	for _, at := range []int{0, 1, 3} { // the first, one in the middle, the last
		var f finished
		var dead sink
		h := newWindowHandler(t, fold, f.finish, dead.giveUpAfter(0))
		records := noted("a0", "b1", "c2", "d3")
		broken := texts(records)
		broken[at] = records[at].undecodable()
		records[at].Note = "fails"
		for _, payload := range [][]string{texts(records), broken} {
			wantState(t, t.Context(), h, window{Final: true}.event(payload...), `{"MODIFY":3}`, "")
			dead.want(t, eventID(at)+" at 0")
			f.want(t, counts{"MODIFY": 3})
		}
	}
}

// The state has exactly the changes before the one that the answer names, also if middleware fails one after it was folded.
func TestWindowMiddlewareFails(t *testing.T) {
	middleware := func(o *dynamodbstream.Options) {
		o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				if err := next(ctx, r); err != nil {
					return err
				}
				if r.ID == eventID(2) {
					return errors.New("told late")
				}
				return nil
			}
		}}
	}
	h := newWindowHandler(t, count, finishNothing, middleware)
	wantState(t, t.Context(), h, window{}.event(texts(noted("a0", "b1", "c2", "d3"))...), `{"MODIFY":2}`, sequence(2))

	type total struct{ N int } // of which nothing is shared
	fold := func(_ context.Context, s total, _ *dynamodbstream.Change[order]) (total, error) {
		return total{s.N + 1}, nil
	}
	plain := newWindowHandler(t, fold, func(context.Context, *dynamodbstream.Window[total]) error { return nil }, middleware)
	wantState(t, t.Context(), plain, window{}.event(texts(noted("a0", "b1", "c2", "d3"))...), `{"N":2}`, sequence(2))
}

// A fold that ignores its cancelled context is left behind. What it does later is not in the state.
func TestWindowAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f finished
		fold := func(ctx context.Context, state counts, c *dynamodbstream.Change[order]) (counts, error) {
			state[c.Operation()]++
			if c.ID() == eventID(2) {
				time.Sleep(time.Minute)
				state[c.Operation()]++
			}
			return state, nil
		}
		h := newWindowHandler(t, fold, f.finish)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		wantState(t, ctx, h, window{Final: true}.event(texts(noted("a0", "b1", "c2", "d3"))...), `{"MODIFY":2}`, sequence(2))
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the answer took %v, want less than the invocation may", took)
		}
		f.want(t)
		time.Sleep(2 * time.Minute)
		f.want(t)
	})
}

// A change whose turn to be folded comes when the answer has gone, since middleware held it up, is not folded any more: the
// state is on its way.
func TestWindowFoldsNothingBehindTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var folds atomic.Int32
		h := newWindowHandler(t, func(ctx context.Context, state counts, c *dynamodbstream.Change[order]) (counts, error) {
			folds.Add(1)
			return count(ctx, state, c)
		}, finishNothing, func(o *dynamodbstream.Options) {
			o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
				return func(ctx context.Context, r *batch.Record) error {
					if r.ID == eventID(2) {
						time.Sleep(time.Minute)
					}
					return next(ctx, r)
				}
			}}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantState(t, ctx, h, window{}.event(texts(noted("a0", "b1", "c2", "d3"))...), `{"MODIFY":2}`, sequence(2))
		time.Sleep(2 * time.Minute)
		if got := folds.Load(); got != 2 {
			t.Errorf("%d changes were folded, want 2", got)
		}
	})
}

// A panic in a fold is that change's failure.
func TestWindowPanic(t *testing.T) {
	fold := func(ctx context.Context, state counts, c *dynamodbstream.Change[order]) (counts, error) {
		state, _ = count(ctx, state, c)
		if c.ID() == eventID(1) {
			panic("a value")
		}
		return state, nil
	}
	wantState(t, t.Context(), newWindowHandler(t, fold, finishNothing), window{}.event(texts(noted("a0", "b1", "c2"))...), `{"MODIFY":1}`, sequence(1))
}

// A change that is twice in an event is folded once.
func TestWindowSameRecordTwice(t *testing.T) {
	records := texts(noted("a0", "b1"))
	h := newWindowHandler(t, count, finishNothing)
	wantState(t, t.Context(), h, window{}.event(records[0], records[1], records[0]), `{"MODIFY":2}`, "")
}

// What takes part in the end of a window sees the window.
func TestWindowInMiddleware(t *testing.T) {
	var values []string
	middleware := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			values = append(values, fmt.Sprintf("%T", r.Value))
			if w, ok := r.Value.(*dynamodbstream.Window[counts]); ok {
				const want = `{"State":{"MODIFY":1},"Start":"2026-12-01T07:04:00Z","End":"2026-12-01T07:06:00Z","ShardID":"` + shardID +
					`","StreamARN":"` + ordersARN + `","TerminatedEarly":false}`
				if diff := cmp.Diff(want, w.JSON()); diff != "" {
					t.Errorf("JSON of the window (-want +got):\n%s", diff)
				}
			}
			return next(ctx, r)
		}
	}
	h := newWindowHandler(t, count, finishNothing, func(o *dynamodbstream.Options) { o.Middleware = []batch.Middleware{middleware} })
	wantState(t, t.Context(), h, window{Final: true}.event(texts(noted("a0"))...), `{"MODIFY":1}`, "")
	if len(values) != 2 || !strings.HasPrefix(values[0], "*dynamodbstream.Change[") || !strings.HasPrefix(values[1], "*dynamodbstream.Window[") {
		t.Errorf("values are of %q, want a change and a window", values)
	}
}
