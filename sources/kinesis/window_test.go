package kinesis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// windowed describes the event of a window. What is left out is as AWS would give it.
type windowed struct {
	records      []record
	state        string // {}
	final, early bool
	shard, arn   string
	start        string
}

func (w windowed) event() []byte {
	text := string(event(w.records...))
	members := windowMembers
	replace := func(old, value string) {
		if value != "" {
			members = strings.Replace(members, old, value, 1)
		}
	}
	replace(`"state":{}`, map[bool]string{true: `"state":` + w.state}[w.state != ""])
	replace(shardID, w.shard)
	replace(clicksARN, w.arn)
	replace("2020-12-09T07:04:00Z", w.start)
	replace(`Window":false`, map[bool]string{true: `Window":true`}[w.final])
	replace(`Early":false`, map[bool]string{true: `Early":true`}[w.early])
	return []byte(strings.TrimSuffix(text, "}") + members + "}")
}

// tally is a state whose copies share memory.
type tally map[string]int

// count is a fold that works on the state it is given. A record "fail" fails after it has left its mark.
func count(_ context.Context, s tally, r *kinesis.Record[string]) (tally, error) {
	s[r.Data]++
	if r.Data == "fail" {
		return nil, errors.New("told to fail")
	}
	return s, nil
}

// ended keeps the windows that were finished.
type ended[S any] struct {
	windows []kinesis.Window[S]
	err     error
}

func (e *ended[S]) finish(_ context.Context, w *kinesis.Window[S]) error {
	if e.err != nil {
		return e.err
	}
	e.windows = append(e.windows, *w)
	return nil
}

func (e *ended[S]) want(t *testing.T, states ...S) {
	t.Helper()
	var got []S
	for _, w := range e.windows {
		got = append(got, w.State)
	}
	e.windows = nil
	if diff := cmp.Diff(states, got); diff != "" {
		t.Errorf("states of the windows that were finished (-want +got):\n%s", diff)
	}
}

func newWindowHandler[T, S any](
	t tb, fold func(context.Context, S, *kinesis.Record[T]) (S, error), finish func(context.Context, *kinesis.Window[S]) error,
	optFns ...func(*kinesis.Options),
) *kinesis.WindowHandler[T, S] {
	t.Helper()
	quiet := func(o *kinesis.Options) { o.Logger = discard() }
	h, err := kinesis.NewWindowHandler(fold, finish, append([]func(*kinesis.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// wantState invokes h and checks the whole answer.
func wantState(t tb, h invoker, payload []byte, state, number string) {
	t.Helper()
	response, err := h.Invoke(context.Background(), payload)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"state":`+state+`,`+answer(number)[1:], string(response)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// A window over several invocations: the state goes on from one to the next, and its end gets all of it.
func TestWindow(t *testing.T) {
	for _, options := range [][]func(*kinesis.Options){{}, {guarded(t)}, {concurrency(1)}} {
		var e ended[tally]
		h := newWindowHandler(t, count, e.finish, options...)
		wantState(t, h, windowed{}.event(), `{}`, "")
		wantState(t, h, windowed{records: keyed("a", "b", "a")}.event(), `{"a":2,"b":1}`, "")
		wantState(t, h, windowed{records: keyed("c"), state: `{"a":2,"b":1}`}.event(), `{"a":2,"b":1,"c":1}`, "")
		e.want(t)
		wantState(t, h, windowed{records: keyed("a"), state: `{"a":2,"b":1,"c":1}`, final: true}.event(), `{"a":3,"b":1,"c":1}`, "")
		start := time.Date(2020, 12, 9, 7, 4, 0, 0, time.UTC)
		want := []kinesis.Window[tally]{{
			State: tally{"a": 3, "b": 1, "c": 1}, Start: start, End: start.Add(2 * time.Minute), ShardID: shardID, StreamARN: clicksARN,
		}}
		if diff := cmp.Diff(want, e.windows); diff != "" {
			t.Errorf("windows (-want +got):\n%s", diff)
		}
		var decoded map[string]any
		if err := json.Unmarshal([]byte(e.windows[0].JSON()), &decoded); err != nil || decoded["ShardID"] != shardID {
			t.Errorf("JSON is %s, error is %v", e.windows[0].JSON(), err)
		}
	}
}

// Folding is serial and in order, whatever the partition keys are.
func TestWindowOrder(t *testing.T) {
	type list struct{ All []string }
	h := newWindowHandler(t, func(_ context.Context, s list, r *kinesis.Record[string]) (list, error) {
		s.All = append(s.All, r.Data)
		return s, nil
	}, (&ended[list]{}).finish, guarded(t))
	wantState(t, h, windowed{records: append(keyed("a", "b", "c", "a2"), record{Data: aggregate("z", "y"), Key: "p", N: 4})}.event(),
		`{"All":["a","b","c","a2","z","y"]}`, "")
}

// A window may end without records.
func TestWindowEndsEmpty(t *testing.T) {
	final := windowed{state: `{"a":1}`, final: true}
	for _, payload := range [][]byte{
		final.event(), []byte(strings.Replace(string(final.event()), `"Records":[],`, "", 1)),
		[]byte(strings.Replace(string(final.event()), `"Records":[]`, `"Records":null`, 1)),
	} {
		for _, options := range [][]func(*kinesis.Options){{}, {guarded(t)}} {
			var e ended[tally]
			wantState(t, newWindowHandler(t, count, e.finish, options...), payload, `{"a":1}`, "")
			e.want(t, tally{"a": 1})
		}
	}
}

// The end of a window is guarded: a second delivery of it does not call finish. Another window, shard or stream does, and a
// consumer with enhanced fan-out reads the same stream.
func TestWindowEndIsGuarded(t *testing.T) {
	var e ended[tally]
	h := newWindowHandler(t, count, e.finish, guarded(t))
	final := windowed{records: keyed("a"), final: true}
	wantState(t, h, final.event(), `{"a":1}`, "")
	e.want(t, tally{"a": 1})
	wantState(t, h, final.event(), `{"a":1}`, "")
	final.records = nil // the checkpoint has moved, and the answer was lost
	wantState(t, h, final.event(), `{}`, "")
	e.want(t)
	for _, other := range []windowed{
		{final: true, shard: otherShard}, {final: true, arn: clicksARN + "2"}, {final: true, start: "2020-12-09T07:05:00Z"},
	} {
		wantState(t, h, other.event(), `{}`, "")
		e.want(t, tally{})
	}
	// The same times, written otherwise.
	wantState(t, h, windowed{final: true, start: "2020-12-09T08:04:00+01:00"}.event(), `{}`, "")
	e.want(t)
	wantState(t, h, windowed{final: true, arn: consumerARN}.event(), `{}`, "")
	e.want(t)
	other := windowed{final: true, arn: consumerARN, start: "2021-12-09T07:05:00Z"}
	wantState(t, newWindowHandler(t, count, e.finish), other.event(), `{}`, "")
	if e.windows[0].StreamARN != clicksARN {
		t.Errorf("stream's ARN is %q, want that without the consumer", e.windows[0].StreamARN)
	}
}

// The key of a window's end lives as long as those of records. An end that is in progress elsewhere is waited for.
func TestWindowEndIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ended[tally]
		release := make(chan struct{})
		h := newWindowHandler(t, count, func(ctx context.Context, w *kinesis.Window[tally]) error {
			<-release
			return e.finish(ctx, w)
		}, guarded(t))
		final := windowed{state: `{"a":1}`, final: true}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { wantState(t, h, final.event(), `{"a":1}`, "") })
		}
		time.Sleep(10 * time.Second)
		close(release)
		both.Wait()
		e.want(t, tally{"a": 1})
		time.Sleep(7 * 24 * time.Hour)
		wantState(t, h, final.event(), `{"a":1}`, "")
		e.want(t)
	})
}

// Two early ends of one window are two, and a retry of one is none.
func TestWindowTerminatedEarly(t *testing.T) {
	var e ended[tally]
	h := newWindowHandler(t, count, e.finish, guarded(t))
	first := windowed{records: []record{{Data: "a", Key: "a", N: 1}}, state: `{"x":1}`, final: true, early: true}
	second := windowed{records: []record{{Data: "b", Key: "b", N: 2}}, final: true, early: true}
	last := windowed{records: []record{{Data: "c", Key: "c", N: 3}}, final: true}
	for _, step := range []struct {
		w     windowed
		state string
		want  []tally
	}{
		{first, `{"a":1,"x":1}`, []tally{{"a": 1, "x": 1}}}, {first, `{"a":1,"x":1}`, nil}, {second, `{"b":1}`, []tally{{"b": 1}}},
		{second, `{"b":1}`, nil}, {last, `{"c":1}`, []tally{{"c": 1}}}, {last, `{"c":1}`, nil}, {first, `{"a":1,"x":1}`, nil},
	} {
		wantState(t, h, step.w.event(), step.state, "")
		for i := range e.windows {
			if e.windows[i].TerminatedEarly != step.w.early {
				t.Errorf("window says that it was terminated early: %v, want %v", e.windows[i].TerminatedEarly, step.w.early)
			}
		}
		e.want(t, step.want...)
	}
	for _, state := range []string{`{"x":1}`, `{"y":1}`} { // without records
		w := windowed{state: state, final: true, early: true}
		for range 2 {
			wantState(t, h, w.event(), state, "")
		}
	}
	e.want(t, tally{"x": 1}, tally{"y": 1})
}

// A window whose end fails comes back as a whole. It is not ended while records of it failed.
func TestWindowEndFails(t *testing.T) {
	for _, options := range [][]func(*kinesis.Options){{}, {guarded(t)}} {
		e := ended[tally]{err: errors.New("table is gone")}
		h := newWindowHandler(t, count, e.finish, options...)
		final := windowed{records: keyed("a"), final: true}
		wantInvokeError(t, t.Context(), h, final.event(),
			"kinesis: window could not be finished, so the whole batch has to come back: ", "table is gone")
		if _, err := h.Invoke(t.Context(), final.event()); !errors.Is(err, e.err) {
			t.Errorf("error is %v, want %v in it", err, e.err)
		}
		e.err = nil
		wantState(t, h, windowed{records: keyed("a", "fail"), final: true}.event(), `{"a":1}`, sequence(1))
		e.want(t)
		wantState(t, h, final.event(), `{"a":1}`, "")
		e.want(t, tally{"a": 1})
	}
}

// The end of a window that cannot be claimed, or that is given up, is like that of a record.
func TestWindowEndIsARecord(t *testing.T) {
	var e ended[tally]
	store := &faults{OnClaim: func() error { return errStore }}
	h := newWindowHandler(t, count, e.finish, withStore(t, store))
	wantInvokeError(t, t.Context(), h, windowed{final: true}.event(), errStore.Error())
	e.want(t)

	var taken []any
	h = newWindowHandler(t, count, func(context.Context, *kinesis.Window[tally]) error { return batch.Permanent(errors.New("too large")) },
		guarded(t), func(o *kinesis.Options) {
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error { taken = append(taken, r.Value); return nil }
		})
	wantState(t, h, windowed{state: `{"x":5}`, final: true}.event(), `{"x":5}`, "")
	if len(taken) != 1 {
		t.Fatalf("sink has %v, want a window", taken)
	}
	if w, ok := taken[0].(*kinesis.Window[tally]); !ok || w.State["x"] != 5 {
		t.Errorf("sink has %+v, want the window", taken[0])
	}
}

// What is no event of a window is an error that says what is missing. A state that is not there is not taken for an empty one.
func TestWindowBadEvent(t *testing.T) {
	good := string(windowed{records: keyed("a")}.event())
	for _, test := range []struct{ name, payload, want string }{
		{"no window", string(event(keyed("a")...)), "kinesis: event has no window, want that of a mapping with TumblingWindowInSeconds"},
		{"no records and no window", `{}`, "kinesis: event has no Records, but is an empty object"},
		{"state missing", strings.Replace(good, `"state":{},`, "", 1), "kinesis: event has a window's state that is missing, want an object"},
		{"state null", strings.Replace(good, `"state":{}`, `"state":null`, 1), "state that is null, want an object"},
		{"state an array", strings.Replace(good, `"state":{}`, `"state":[]`, 1), "state that is an array, want an object"},
		{"state a string", strings.Replace(good, `"state":{}`, `"state":"{}"`, 1), "state that is a string, want an object"},
		{"state a number", strings.Replace(good, `"state":{}`, `"state":5`, 1), "state that is a number, want an object"},
		{"state of another type", strings.Replace(good, `"state":{}`, `"state":{"a":"x"}`, 1), "kinesis: window's state is not a valid kinesis_test.tally"},
		{"no start", strings.Replace(good, `"start"`, `"begin"`, 1), "kinesis: event has a window whose start is missing, want a time"},
		{"end a number", strings.Replace(good, `"2020-12-09T07:06:00Z"`, "1607497560", 1), "a window whose end is a number, want a time"},
		{"end no time", strings.Replace(good, `2020-12-09T07:06:00Z`, "soon", 1), `a window whose end is "soon", want a time such as 2020-12-09T07:04:00Z`},
		{"window null", strings.Replace(good, `"window":{`, `"window":null,"x":{`, 1), "window whose start is missing"},
		{"no shardId", strings.Replace(good, `"shardId":"`, `"x":"`, 1), "kinesis: event of a window has a shardId that is missing, want text"},
		{"no ARN", strings.Replace(good, `"shardId-000000000006","eventSourceARN"`, `"s","x"`, 1), "eventSourceARN that is missing, want text"},
		{"final missing", strings.Replace(good, `"isFinal`, `"isLast`, 1), "isFinalInvokeForWindow that is missing, want a boolean"},
		{"final a string", strings.Replace(good, `Window":false`, `Window":"true"`, 1), "isFinalInvokeForWindow that is a string, want a boolean"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.payload == good {
				t.Fatal("payload was not changed")
			}
			ran := false
			h := newWindowHandler(t, func(_ context.Context, s tally, _ *kinesis.Record[string]) (tally, error) { ran = true; return s, nil },
				func(context.Context, *kinesis.Window[tally]) error { ran = true; return nil })
			wantInvokeError(t, t.Context(), h, []byte(test.payload), test.want)
			if ran {
				t.Error("a function ran")
			}
		})
	}
}

// An error's text begins with the package's name, once.
func TestWindowErrorsArePrefixedOnce(t *testing.T) {
	h := newWindowHandler(t, count, (&ended[tally]{}).finish)
	mixed := keyed("a", "fail")
	mixed[0].Shard = otherShard
	nameless := strings.Replace(string(windowed{records: keyed("fail")}.event()), `"sequenceNumber"`, `"x"`, 1)
	for _, payload := range [][]byte{windowed{records: mixed}.event(), []byte(nameless)} {
		_, err := h.Invoke(t.Context(), payload)
		wantError(t, err, "kinesis: ", "told to fail")
		if n := strings.Count(fmt.Sprint(err), "kinesis: "); n != 1 {
			t.Errorf("error is %q, want the package's name once", err)
		}
	}
}

func TestWindowOptionErrors(t *testing.T) {
	finish := (&ended[tally]{}).finish
	for _, test := range []struct {
		option func(*kinesis.Options)
		want   []string
	}{
		{func(o *kinesis.Options) {
			guarded(t)(o)
			o.Key = func(kinesis.View) (string, error) { return "", nil }
			o.Fingerprint = kinesis.DataSHA256
		}, []string{"kinesis: Options.Key is set, want none in a handler of windows", "kinesis: Options.Fingerprint is set, want none"}},
		{func(o *kinesis.Options) { guarded(t)(o); kinesis.KeyOf(func(string) string { return "" })(o) }, []string{"kinesis: KeyOf is set, want none"}},
		{func(o *kinesis.Options) { o.Concurrency, o.MaxInflated = -1, -1 }, []string{"Options.Concurrency is -1", "Options.MaxInflated is -1"}},
		{func(o *kinesis.Options) { o.Concurrency = 2; kinesis.KeyOf(func(int) string { return "" })(o) },
			[]string{"kinesis: Options.Concurrency is 2, want 0 or 1 in a handler of windows", "kinesis: KeyOf is set, want none"}},
	} {
		_, err := kinesis.NewWindowHandler(count, finish, test.option)
		wantError(t, err, test.want...)
	}
	_, err := kinesis.NewWindowHandler[string, tally](nil, finish)
	wantError(t, err, "kinesis: fold or finish is nil, want two functions")
	_, err = kinesis.NewWindowHandler(count, nil)
	wantError(t, err, "kinesis: fold or finish is nil, want two functions")
}

// A type that names its own key can be folded: its method does nothing here.
func TestWindowOfKeyedData(t *testing.T) {
	h := newWindowHandler(t, func(_ context.Context, s tally, r *kinesis.Record[valueKeyed]) (tally, error) {
		s[r.Data.K]++
		return s, nil
	},
		(&ended[tally]{}).finish, guarded(t, func(o *idempotency.Options) { o.Expiry = time.Hour }))
	same := record{Data: `{"k":"x"}`, Key: "a"}
	again := same
	again.N = 1
	wantState(t, h, windowed{records: []record{same, again}}.event(), `{"x":2}`, "")
}
