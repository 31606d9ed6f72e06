package dynamodbstream_test

import (
	"context"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// An answer with an error carries no state: by option, or since a change cannot be named, or since the event mixes streams.
func TestWindowErrors(t *testing.T) {
	records := noted("a0", "b1", "c2")
	records[1].Note = "fails"
	unnamed := records[1].change(`"SequenceNumber":"`+sequence(1)+`",`, "")
	mixed := records[1]
	mixed.ARN = otherARN
	for _, test := range []struct {
		name    string
		on      batch.ErrorOn
		records []string
		want    string
	}{
		{"ErrorOn", batch.ErrorOnAnyFailure, texts(records), "fails"},
		{"no sequence number", 0, []string{records[0].json(), unnamed, records[2].json()}, "dynamodbstream: record 1 has no sequence number and failed"},
		{"two streams", 0, []string{records[0].json(), mixed.json()}, "dynamodbstream: event has records of stream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f finished
			h := newWindowHandler(t, count, f.finish, errorOn(test.on))
			wantInvokeError(t, t.Context(), h, window{Final: true}.event(test.records...), test.want)
			f.want(t)
		})
	}
}

// A state that Lambda would refuse is an error that says why, and nothing is finished with it.
func TestWindowStateErrors(t *testing.T) {
	records := texts(noted("a0"))
	type text struct{ Text string }
	set := func(size int) func(context.Context, text, *dynamodbstream.Change[order]) (text, error) {
		return func(context.Context, text, *dynamodbstream.Change[order]) (text, error) {
			return text{strings.Repeat("x", size)}, nil
		}
	}
	nothing := func(context.Context, *dynamodbstream.Window[text]) error {
		t.Error("window is finished")
		return nil
	}
	const overhead = len(`{"Text":""}`)
	fits := newWindowHandler(t, set(1<<20-overhead), nothing)
	if response, err := fits.Invoke(t.Context(), window{}.event(records...)); err != nil || len(response) < 1<<20 {
		t.Errorf("state of 1 MB: error is %v, answer has %d bytes", err, len(response))
	}
	wantInvokeError(t, t.Context(), newWindowHandler(t, set(1<<20-overhead+1), nothing), window{}.event(records...),
		"dynamodbstream: window's state has 1048577 bytes in JSON, want at most 1048576")
	// The last state of a window is finished, whatever its size: nobody carries it on.
	finished := 0
	large := newWindowHandler(t, set(1<<20), func(_ context.Context, w *dynamodbstream.Window[text]) error {
		finished += len(w.State.Text)
		return nil
	})
	wantState(t, t.Context(), large, window{Final: true}.event(records...), `{}`, "")
	if finished != 1<<20 {
		t.Errorf("window was finished with %d bytes, want all", finished)
	}

	_, err := dynamodbstream.NewWindowHandler(
		func(_ context.Context, s []int, _ *dynamodbstream.Change[order]) ([]int, error) { return s, nil },
		func(context.Context, *dynamodbstream.Window[[]int]) error { return nil })
	wantError(t, err, "dynamodbstream: window's state is not a valid []int")
	empty := newWindowHandler(t, func(context.Context, counts, *dynamodbstream.Change[order]) (counts, error) { return nil, nil }, finishNothing)
	wantState(t, t.Context(), empty, window{}.event(records...), `{}`, "")
	channel := newWindowHandler(t, func(_ context.Context, s any, _ *dynamodbstream.Change[order]) (any, error) {
		return make(chan int), nil
	},
		func(context.Context, *dynamodbstream.Window[any]) error { return nil })
	wantInvokeError(t, t.Context(), channel, window{}.event(records...), "dynamodbstream: window's state cannot be encoded")
}

// The event of a window is none of a plain handler, whose answer would have no state, and the other way round. A window
// without its state, or with what is none, is an error: to begin with an empty one would lose what was counted.
func TestWindowBadEvents(t *testing.T) {
	records := texts(noted("a0"))
	w := &worker{}
	const plain = "dynamodbstream: event is that of a tumbling window, want a handler made by NewWindowHandler"
	for _, payload := range [][]byte{window{}.event(records...), window{Final: true}.event(), []byte(`{"isFinalInvokeForWindow":true,"Records":[]}`)} {
		wantInvokeError(t, t.Context(), newHandler(t, w.handle), payload, plain)
	}
	w.want(t)

	good := string(window{Final: true, State: `{"MODIFY":3}`}.event(records...))
	replaced := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	const state, arn = `"state":{"MODIFY":3},`, `"eventSourceARN":"` + ordersARN + `","is`
	for _, test := range []struct{ name, payload, want string }{
		{"no window", `{"Records":[` + records[0] + `]}`, "event has no window, want that of a mapping with TumblingWindowInSeconds"},
		{"no state", replaced(state, ""), "event has a window's state that is missing, want an object"},
		{"state null", replaced(state, `"state":null,`), "event has a window's state that is null, want an object"},
		{"state a number", replaced(state, `"state":7,`), "event has a window's state that is a number, want an object"},
		{"state an array", replaced(state, `"state":[],`), "event has a window's state that is an array, want an object"},
		{"state of another version", replaced(`"MODIFY":3`, `"MODIFY":"three"`), "window's state is not a valid dynamodbstream_test.counts"},
		{"no shard", replaced(`"shardId":"`+shardID+`",`, ""), "event of a window has a shardId that is missing, want text"},
		{"shard empty", replaced(`"shardId":"`+shardID+`"`, `"shardId":""`), "event of a window has a shardId"},
		{"no stream", replaced(arn, `"is`), "event of a window has an eventSourceARN that is missing, want text"},
		{"final missing", replaced(`"isFinalInvokeForWindow":true,`, ""), "event of a window has isFinalInvokeForWindow that is missing, want a boolean"},
		{"final a string", replaced(`"isFinalInvokeForWindow":true`, `"isFinalInvokeForWindow":"true"`), "event of a window has isFinalInvokeForWindow that is a string, want a boolean"},
		{"no start", replaced(`"start":"2026-12-01T07:04:00Z",`, ""), "event has a window whose start is missing, want a time"},
		{"end no time", replaced(`"2026-12-01T07:06:00Z"`, `"soon"`), "event has a window whose end is \"soon\", want a time such as"},
		{"window a string", replaced(`{"start":"2026-12-01T07:04:00Z","end":"2026-12-01T07:06:00Z"}`, `"x"`), "event has a window whose start is missing"},
		{"not JSON", good + "x", "event is followed by more bytes"},
		{"an empty object", "{}", "event has no Records, but is an empty object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folds := 0
			var f finished
			h := newWindowHandler(t, func(_ context.Context, s counts, _ *dynamodbstream.Change[order]) (counts, error) {
				folds++
				return s, nil
			}, f.finish)
			wantInvokeError(t, t.Context(), h, []byte(test.payload), "dynamodbstream: "+test.want)
			f.want(t)
			if folds != 0 {
				t.Errorf("%d changes were folded, want none", folds)
			}
		})
	}
}
