package kinesis_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// sum is a state whose copies share nothing.
type sum struct{ N, Last int }

func add(_ context.Context, s sum, r *kinesis.Record[string]) (sum, error) {
	s.N++
	s.Last = int(r.Data[0])
	if r.Data == "fail" {
		return s, errors.New("told to fail")
	}
	return s, nil
}

// The state has exactly the records before the checkpoint, also where the fold that failed has left its mark on it.
func TestWindowStateBeforeTheCheckpoint(t *testing.T) {
	for _, n := range []int{0, 1} {
		payload := windowed{records: keyed("a", "b", "fail", "c"), state: `{"a":1}`}.event()
		h := newWindowHandler(t, count, (&ended[tally]{}).finish, concurrency(n), guarded(t))
		for range 2 { // and nothing is left of the first time
			wantState(t, h, payload, `{"a":2,"b":1}`, sequence(2))
		}
		first := windowed{records: keyed("fail", "a"), state: `{"a":1}`}
		wantState(t, h, first.event(), `{"a":1}`, sequence(0))
		values := newWindowHandler(t, add, (&ended[sum]{}).finish, concurrency(n), guarded(t))
		wantState(t, values, windowed{records: keyed("a", "b", "fail", "c"), state: `{"N":1}`}.event(), `{"N":3,"Last":98}`, sequence(2))
	}
}

// The checkpoint of a record of an aggregate is before all of the aggregate, which comes again as a whole: no record of it
// is in the state.
func TestWindowStateBeforeAnAggregate(t *testing.T) {
	records := []record{{Data: "a", Key: "a"}, {Data: aggregate("b", "c", "fail", "d"), Key: "p", N: 1}, {Data: "e", Key: "e", N: 2}}
	h := newWindowHandler(t, count, (&ended[tally]{}).finish)
	wantState(t, h, windowed{records: records}.event(), `{"a":1}`, sequence(1))
	values := newWindowHandler(t, add, (&ended[sum]{}).finish)
	wantState(t, values, windowed{records: records}.event(), `{"N":1,"Last":97}`, sequence(1))
	wantState(t, values, windowed{records: records[1:], state: `{"N":1,"Last":97}`}.event(), `{"N":1,"Last":97}`, sequence(1))
}

// A fold that panics or ends its goroutine has failed like any other.
func TestWindowStateAfterAPanic(t *testing.T) {
	for _, end := range []func(){func() { panic("fold panics") }, func() { panic(nil) }, runtime.Goexit} {
		h := newWindowHandler(t, func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
			s[r.Data]++
			if r.Data == "panic" {
				end()
			}
			return s, nil
		}, (&ended[tally]{}).finish)
		wantState(t, h, windowed{records: keyed("a", "a", "panic", "b")}.event(), `{"a":2}`, sequence(2))
	}
}

// A record that was dead-lettered is not in the state, and those behind it are.
func TestWindowStateWithoutDeadLetters(t *testing.T) {
	permanent := func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
		s, err := count(ctx, s, r)
		return s, batch.Permanent(err)
	}
	var taken sink
	var e ended[tally]
	h := newWindowHandler(t, permanent, e.finish, taken.option)
	wantState(t, h, windowed{records: keyed("a", "fail", "b", "fail", "fail", "c", "fail"), final: true}.event(), `{"a":1,"b":1,"c":1}`, "")
	e.want(t, tally{"a": 1, "b": 1, "c": 1})
	if len(taken.records) != 4 {
		t.Errorf("sink has %d records, want 4", len(taken.records))
	}
	wantState(t, h, windowed{records: keyed("fail")}.event(), `{}`, "")
}

// A fold that does not do again what it has done leaves the state as it was received, and the answer names the first record.
func TestWindowStateOfAFoldThatChanges(t *testing.T) {
	calls := 0
	fold := func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
		if calls++; calls > 3 && r.Data == "b" {
			return nil, errors.New("not again")
		}
		return count(ctx, s, r)
	}
	h := newWindowHandler(t, fold, (&ended[tally]{}).finish)
	wantState(t, h, windowed{records: keyed("a", "b", "fail"), state: `{"x":1}`}.event(), `{"x":1}`, sequence(0))

	// Where only what was given up stands in the way, the answer says that too. Nothing is finished.
	var taken sink
	var e ended[tally]
	permanent := func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
		s, err := fold(ctx, s, r)
		return s, batch.Permanent(err)
	}
	calls = 0
	h = newWindowHandler(t, permanent, e.finish, func(o *kinesis.Options) { taken.option(o) })
	payload := windowed{records: keyed("a", "b", "fail"), state: `{"x":1}`, final: true}.event()
	wantState(t, h, payload, `{"x":1}`, sequence(0))
	e.want(t)

	// A mapping without ReportBatchItemFailures would move past the record: it needs the error that was asked for.
	calls = 0
	h = newWindowHandler(t, permanent, e.finish, taken.option, func(o *kinesis.Options) { o.ErrorOn = batch.ErrorOnAnyFailure })
	wantInvokeError(t, t.Context(), h, payload, "kinesis: ")
}

// A fold that is abandoned is not in the state, and changes nothing when it finishes later, even right after the batch
// has ended.
func TestWindowStateOfAStraggler(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release, finished := make(chan struct{}), make(chan struct{})
			fold := func(_ context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
				if r.Data == "slow" {
					s["mark"]++
					<-release
					defer close(finished)
				}
				s[r.Data]++
				return s, nil
			}
			options := func(o *kinesis.Options) {
				o.Logger = discard()
				if !late {
					o.Hooks = []batch.Hook{batchEnd(func() { close(release); <-finished; synctest.Wait() })}
				}
			}
			h := newWindowHandler(t, fold, (&ended[tally]{}).finish, options)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			response, err := h.Invoke(ctx, windowed{records: keyed("a", "slow", "b")}.event())
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"state":{"a":1},` + answer(sequence(1))[1:]; string(response) != want {
				t.Errorf("late %v: answer is %s, want %s", late, response, want)
			}
			if late {
				close(release)
				<-finished
				synctest.Wait()
			}
		})
	}
}

// batchEnd is a hook.
type batchEnd func()

func (f batchEnd) OnBatchFinished(context.Context, *batch.Report) { f() }

// A state that shares nothing is safe from a straggler as well.
func TestWindowStateOfAStragglerWithValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		finished := make(chan struct{})
		h := newWindowHandler(t, func(ctx context.Context, s sum, r *kinesis.Record[string]) (sum, error) {
			if r.Data == "slow" {
				<-release
				defer close(finished)
			}
			return add(ctx, s, r)
		}, (&ended[sum]{}).finish, func(o *kinesis.Options) {
			o.Hooks = []batch.Hook{batchEnd(func() { close(release); <-finished; synctest.Wait() })}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		response, err := h.Invoke(ctx, windowed{records: keyed("a", "slow")}.event())
		if want := `{"state":{"N":1,"Last":97},` + answer(sequence(1))[1:]; err != nil || string(response) != want {
			t.Errorf("answer is %s, error is %v, want %s", response, err, want)
		}
	})
}

// What middleware makes of a fold decides: a record that it fails is not in the state, and one that it tries again is in it
// once.
func TestWindowStateWithMiddleware(t *testing.T) {
	after := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			err := next(ctx, r)
			if r.ID == eventID(1) {
				return errors.New("audit fails")
			}
			return err
		}
	}
	twice := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			if err := next(ctx, r); err != nil {
				return next(ctx, r)
			}
			return nil
		}
	}
	with := func(m batch.Middleware) func(*kinesis.Options) {
		return func(o *kinesis.Options) { o.Middleware = []batch.Middleware{m} }
	}
	payload := windowed{records: keyed("a", "b", "c")}.event()
	wantState(t, newWindowHandler(t, count, (&ended[tally]{}).finish, with(after)), payload, `{"a":1}`, sequence(1))
	wantState(t, newWindowHandler(t, add, (&ended[sum]{}).finish, with(after)), payload, `{"N":1,"Last":97}`, sequence(1))
	failed := false
	once := func(_ context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
		s[r.Data]++
		if r.Data == "b" && !failed {
			failed = true
			return nil, errors.New("once")
		}
		return s, nil
	}
	wantState(t, newWindowHandler(t, once, (&ended[tally]{}).finish, with(twice)), payload, `{"a":1,"b":1,"c":1}`, "")
}

// A record whose fold succeeds and that middleware then gives up is in the sink, and so not in the state.
func TestWindowStateWithoutWhatMiddlewareGivesUp(t *testing.T) {
	refuse := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			if err := next(ctx, r); err != nil || r.ID != eventID(1) {
				return err
			}
			return batch.Permanent(errors.New("audit refuses"))
		}
	}
	var taken sink
	with := func(o *kinesis.Options) { o.Middleware = []batch.Middleware{refuse} }
	for range 2 {
		var e ended[tally]
		h := newWindowHandler(t, count, e.finish, taken.option, with)
		wantState(t, h, windowed{records: keyed("a", "b", "c"), state: `{"b":1}`, final: true}.event(), `{"a":1,"b":1,"c":1}`, "")
		e.want(t, tally{"a": 1, "b": 1, "c": 1})
	}
	values := newWindowHandler(t, add, (&ended[sum]{}).finish, taken.option, with)
	wantState(t, values, windowed{records: keyed("a", "b", "c")}.event(), `{"N":2,"Last":99}`, "")
	if diff := cmp.Diff([]string{eventID(1), eventID(1), eventID(1)}, taken.records); diff != "" {
		t.Errorf("records in the sink (-want +got):\n%s", diff)
	}
}

// Middleware that calls its handler more often than once folds its record once: one after the other, beside each other, or
// after it has lost patience.
func TestWindowStateWithMiddlewareThatRepeats(t *testing.T) {
	sequentially := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error { return errors.Join(next(ctx, r), next(ctx, r)) }
	}
	together := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			var both sync.WaitGroup
			var errs [2]error
			for i := range errs {
				both.Go(func() { errs[i] = next(ctx, r) })
			}
			both.Wait()
			return errors.Join(errs[:]...)
		}
	}
	impatiently := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			done := make(chan error, 2)
			for range 2 {
				go func() { done <- next(ctx, r) }()
				select {
				case err := <-done:
					return err
				case <-time.After(5 * time.Millisecond):
				}
			}
			return <-done
		}
	}
	for name, middleware := range map[string]batch.Middleware{
		"sequentially": sequentially, "together": together, "impatiently": impatiently,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				with := func(o *kinesis.Options) { o.Middleware = []batch.Middleware{middleware} }
				slow := func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
					time.Sleep(20 * time.Millisecond)
					return count(ctx, s, r)
				}
				payload := windowed{records: keyed("a", "b", "c"), state: `{"a":1}`}.event()
				wantState(t, newWindowHandler(t, slow, (&ended[tally]{}).finish, with), payload, `{"a":2,"b":1,"c":1}`, "")
				slowly := func(ctx context.Context, s sum, r *kinesis.Record[string]) (sum, error) {
					time.Sleep(20 * time.Millisecond)
					return add(ctx, s, r)
				}
				payload = windowed{records: keyed("a", "b", "c")}.event()
				wantState(t, newWindowHandler(t, slowly, (&ended[sum]{}).finish, with), payload, `{"N":3,"Last":99}`, "")
			})
		})
	}
}

// That the state cannot be made again is not the fault of the record that waits for it, whatever the error says: that
// record comes back, and is not given up.
func TestWindowStateThatCannotBeMadeAgainGivesUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name          string
		again         func(calls int) bool // whether the fold of a refuses
		state, number string
	}{
		{"once", func(calls int) bool { return calls == 2 }, `{"a":1}`, sequence(2)},
		{"for good", func(calls int) bool { return calls > 1 }, `{}`, sequence(0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			fold := func(_ context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
				s[r.Data]++
				if r.Data == "a" {
					calls++
				}
				if r.Data == "b" || (r.Data == "a" && test.again(calls)) {
					return nil, batch.Permanent(errors.New(r.Data + " refused"))
				}
				return s, nil
			}
			var taken sink
			h := newWindowHandler(t, fold, (&ended[tally]{}).finish, taken.option)
			wantState(t, h, windowed{records: keyed("a", "b", "c", "d")}.event(), test.state, test.number)
			if diff := cmp.Diff([]string{eventID(1)}, taken.records); diff != "" {
				t.Errorf("records in the sink (-want +got):\n%s", diff)
			}
		})
	}
}

// A batch that takes longer than an invocation may is counted to its end, a part with each, though the fold that the
// deadline cuts off spoils the state, and to fold all of it again takes as long as it did. No record is discarded.
func TestWindowStateOfASlowFold(t *testing.T) {
	for _, more := range []time.Duration{0, 30 * time.Millisecond, 99 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var e ended[tally]
			h := newWindowHandler(t, func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
				select {
				case <-time.After(100 * time.Millisecond):
					s[r.Data]++
					return s, nil
				case <-ctx.Done():
					return s, ctx.Err()
				}
			}, e.finish)
			s, err := kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
				o.FunctionTimeout, o.TumblingWindow, o.MaximumRetryAttempts = 10*time.Second+more, 15*time.Minute, 3
			})
			if err != nil {
				t.Fatal(err)
			}
			want := tally{}
			for i := range 100 {
				data := "r" + strconv.Itoa(i)
				want[data] = 1
				if _, _, err := s.Put(kinesistest.Record{PartitionKey: "a", Data: []byte(data)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Drain(t.Context(), h); err != nil {
				t.Error(err)
			}
			e.want(t, want)
			if stats := s.Stats(); stats.Done != 100 || stats.Discarded != 0 || stats.Timeouts != 0 {
				t.Errorf("function timeout 10s and %v: %v, want all 100 done in time", more, stats)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A state that keeps a record's data, and works on them later, is made again from the data as they were delivered.
func TestWindowStateThatKeepsData(t *testing.T) {
	type total struct{ Count int }
	h := newWindowHandler(t, func(_ context.Context, s map[string]*total, r *kinesis.Record[total]) (map[string]*total, error) {
		if s[r.PartitionKey()] == nil {
			s[r.PartitionKey()] = &r.Data
		} else {
			s[r.PartitionKey()].Count += r.Data.Count
		}
		if r.Data.Count == 100 {
			return nil, errors.New("too many")
		}
		return s, nil
	}, (&ended[map[string]*total]{}).finish)
	var records []record
	for i, text := range []string{"1", "2", "100"} {
		records = append(records, record{Data: `{"Count":` + text + `}`, Key: "k", N: i})
	}
	wantState(t, h, windowed{records: records}.event(), `{"k":{"Count":3}}`, sequence(2))
}

// What a state may be in JSON.
func TestWindowStateJSON(t *testing.T) {
	big := func(n int) windowed { return windowed{records: []record{{Data: strings.Repeat("x", n), Key: "k"}}} }
	set := func(_ context.Context, _ map[string]string, r *kinesis.Record[string]) (map[string]string, error) {
		return map[string]string{"s": r.Data}, nil
	}
	h := newWindowHandler(t, set, (&ended[map[string]string]{}).finish)
	const limit, around = 1 << 20, len(`{"s":""}`)
	wantState(t, h, big(limit-around).event(), `{"s":"`+strings.Repeat("x", limit-around)+`"}`, "")
	wantInvokeError(t, t.Context(), h, big(limit-around+1).event(),
		"kinesis: window's state has 1048577 bytes in JSON, want at most 1048576", "use a shorter window")

	null := newWindowHandler(t, func(context.Context, map[string]int, *kinesis.Record[string]) (map[string]int, error) {
		return nil, nil
	},
		(&ended[map[string]int]{}).finish)
	wantState(t, null, windowed{records: keyed("a"), state: `{"x":1}`}.event(), `{}`, "")
	wantState(t, null, windowed{}.event(), `{}`, "")

	// What is over need not be carried on.
	var e ended[map[string]string]
	final := big(limit)
	final.final = true
	wantState(t, newWindowHandler(t, set, e.finish), final.event(), `{}`, "")
	if len(e.windows) != 1 || len(e.windows[0].State["s"]) != limit {
		t.Errorf("%d windows were finished, want one with all of its state", len(e.windows))
	}

	type precise struct{ N int64 }
	long := newWindowHandler(t, func(_ context.Context, s precise, _ *kinesis.Record[string]) (precise, error) { s.N++; return s, nil },
		(&ended[precise]{}).finish)
	wantState(t, long, windowed{records: keyed("a"), state: `{"N":9007199254740992}`}.event(), `{"N":9007199254740993}`, "")

	broken := newWindowHandler(t, func(context.Context, any, *kinesis.Record[string]) (any, error) {
		return map[string]any{"f": func() {}}, nil
	}, (&ended[any]{}).finish)
	wantInvokeError(t, t.Context(), broken, windowed{records: keyed("a")}.event(), "kinesis: window's state cannot be encoded: ")
	if text := (&kinesis.Window[func()]{}).JSON(); text != "" {
		t.Errorf("JSON of such a window is %q, want none", text)
	}
}

// A type whose JSON is no object is no state, and is refused before there is a window.
func TestWindowStateType(t *testing.T) {
	number := func(_ context.Context, n int, _ *kinesis.Record[string]) (int, error) { return n + 1, nil }
	_, err := kinesis.NewWindowHandler(number, (&ended[int]{}).finish)
	wantError(t, err, "kinesis: window's state")
	list := func(_ context.Context, s []string, _ *kinesis.Record[string]) ([]string, error) { return s, nil }
	_, err = kinesis.NewWindowHandler(list, (&ended[[]string]{}).finish)
	wantError(t, err, "kinesis: window's state")
	type unencodable struct{ F func() }
	function := func(_ context.Context, s unencodable, _ *kinesis.Record[string]) (unencodable, error) { return s, nil }
	_, err = kinesis.NewWindowHandler(function, (&ended[unencodable]{}).finish)
	wantError(t, err, "kinesis: window's state cannot be encoded: ")
	anything := func(_ context.Context, s any, _ *kinesis.Record[string]) (any, error) { return s, nil }
	if _, err = kinesis.NewWindowHandler(anything, (&ended[any]{}).finish); err != nil {
		t.Error(err)
	}
}

// Records that cannot be read, and twins, count like everywhere: the first stops the window, the second are one record.
func TestWindowStateOfBadRecords(t *testing.T) {
	h := newWindowHandler(t, count, (&ended[tally]{}).finish, keepAggregates)
	payload := string(windowed{records: keyed("a", "b", "c")}.event())
	wantState(t, h, []byte(strings.Replace(payload, `"data":"Yg=="`, `"data":7`, 1)), `{"a":1}`, sequence(1))
	wantInvokeError(t, t.Context(), h, []byte(strings.Replace(payload, `"kinesis":{"app`, `"x":{"app`, 1)), "record 0 has no sequence number")
	same := record{Data: "a", Key: "a"}
	wantState(t, h, windowed{records: []record{same, same}}.event(), `{"a":1}`, "")
}

// Where the first record has no sequence number and the state could not be made again, the error says so in plain text.
func TestWindowStateOfANamelessRecord(t *testing.T) {
	calls := 0
	h := newWindowHandler(t, func(ctx context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
		if calls++; calls > 2 {
			return nil, errors.New("not again")
		}
		return count(ctx, s, r)
	}, (&ended[tally]{}).finish)
	payload := strings.Replace(string(windowed{records: keyed("a", "fail")}.event()), `"sequenceNumber":"`+sequence(0)+`"`, `"x":0`, 1)
	_, err := h.Invoke(t.Context(), []byte(payload))
	wantError(t, err, "kinesis: record 0 has no sequence number")
	if err != nil && strings.Contains(err.Error(), "%!") {
		t.Errorf("error is %q, want one without a mistake in it", err)
	}
}
