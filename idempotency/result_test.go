package idempotency_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

type address struct{ Street string }

type order struct {
	address
	*Note
	ID       int64             `json:"id"`
	Amount   float64           `json:"amount"`
	Tags     []string          `json:"tags"`
	Labels   map[string]string `json:"labels"`
	Previous *order            `json:"previous"`
	Raw      json.RawMessage   `json:"raw"`
}

// Note is exported, so that encoding/json can set an embedded pointer to it.
type Note struct{ Text string }

type state string

// Rule 13, case 20: a replay returns the same value of the same type.
func TestResultReplays(t *testing.T) {
	t.Run("nil pointer", replays[*order](nil))
	t.Run("pointer", replays(new(7)))
	t.Run("0", replays(0))
	t.Run("empty string", replays(""))
	t.Run("false", replays(false))
	t.Run("true", replays(true))
	t.Run("nil slice", replays[[]string](nil))
	t.Run("empty slice", replays([]string{}))
	t.Run("slice of zeros", replays([]int{0, 0}))
	t.Run("nil bytes", replays[[]byte](nil))
	t.Run("empty bytes", replays([]byte{}))
	t.Run("bytes", replays([]byte{0, 0xff, '"', '\n'}))
	t.Run("nil map", replays[map[string]int](nil))
	t.Run("empty map", replays(map[string]int{}))
	t.Run("map", replays(map[int]string{1: "", -2: "b"}))
	t.Run("nil interface", replays[any](nil))
	t.Run("string in an interface", replays[any]("a"))
	t.Run("largest int64", replays[int64](math.MaxInt64))
	t.Run("smallest int64", replays[int64](math.MinInt64))
	t.Run("2^53+1", replays[int64](1<<53+1))
	t.Run("largest uint64", replays[uint64](math.MaxUint64))
	t.Run("smallest float", replays(math.SmallestNonzeroFloat64))
	t.Run("largest float", replays(math.MaxFloat64))
	t.Run("time", replays(time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("", 3600))))
	t.Run("zero time", replays(time.Time{}))
	t.Run("duration", replays(1500*time.Millisecond))
	t.Run("markup", replays("<b>&amp;\u2028</b>"))
	t.Run("named string", replays(state("PAID")))
	t.Run("array", replays([3]bool{true, false, true}))
	t.Run("raw JSON", replays(json.RawMessage(`{"id":9007199254740993,"x":null}`)))
	t.Run("raw null", replays(json.RawMessage("null")))
	t.Run("empty struct", replays(struct{}{}))
	t.Run("zero struct", replays(order{Raw: json.RawMessage("null")}))
	t.Run("struct", replays(order{
		address: address{"Main Street"}, Note: &Note{"fragile"}, ID: 1<<53 + 1, Amount: 0.1,
		Tags: []string{}, Labels: map[string]string{"": ""},
		Previous: &order{ID: 1, Raw: json.RawMessage("0")}, Raw: json.RawMessage(`[]`),
	}))
}

func replays[R any](value R) func(*testing.T) {
	return func(t *testing.T) {
		g := newGuard(t, idempotency.NewMemoryStore())
		_, err := idempotency.Do(t.Context(), g, "k", returns(value, nil))
		wantErr(t, err)
		got, err := idempotency.Do(t.Context(), g, "k", forbidden[R](t))
		wantErr(t, err)
		want := idempotency.Result[R]{Value: value, Replayed: true}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(order{})); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
	}
}

// Rule 13: what a caller does to the value that it got changes no later replay.
func TestResultIsACopy(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	for range 3 {
		got, err := idempotency.Do(t.Context(), g, "k", returns([]byte("receipt"), nil))
		if wantErr(t, err); string(got.Value) != "receipt" {
			t.Errorf("result is %q, want %q", got.Value, "receipt")
		}
		clear(got.Value)
	}
}

// What stands in the store for a result: its JSON, and nothing for a result that says nothing.
func TestStoredResult(t *testing.T) {
	store := idempotency.NewMemoryStore()
	g := newGuard(t, store)
	for key, do := range map[string]func(key string) error{
		`null`:    func(key string) error { return doOnce[*int](t, g, key, nil) },
		`""`:      func(key string) error { return doOnce(t, g, key, "") },
		`[]`:      func(key string) error { return doOnce(t, g, key, []int{}) },
		`{"N":1}`: func(key string) error { return doOnce(t, g, key, struct{ N int }{1}) },
		``:        func(key string) error { return doOnce(t, g, key+"none", struct{}{}) },
	} {
		wantErr(t, do(key))
		entry, ok := store.Get("orders#" + key)
		if key == "" {
			entry, ok = store.Get("orders#none")
		}
		if !ok || entry.Status != idempotency.Completed || string(entry.Data) != key || (key == "") != (entry.Data == nil) {
			t.Errorf("entry is %+v with data %q, want COMPLETED with %q", entry, entry.Data, key)
		}
	}
}

func doOnce[R any](t *testing.T, g *idempotency.Guard, key string, value R) error {
	_, err := idempotency.Do(t.Context(), g, key, returns(value, nil))
	return err
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { return nil, errors.New("sealed") }

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("sealed") }

type cyclic struct{ Next *cyclic }

// Rule 13: the effect is not repeated because its result cannot be stored. That is logged, and a replay says so.
func TestResultNotStored(t *testing.T) {
	loop := &cyclic{}
	loop.Next = loop
	t.Run("error", notStored(unencodable{}, "sealed"))
	t.Run("panic", notStored(panicking{}, "encoding it panicked: sealed"))
	t.Run("cycle", notStored(loop, "cycle"))
	t.Run("NaN", notStored(math.NaN(), "NaN"))
	t.Run("function", notStored(func() {}, "unsupported type"))
}

func notStored[R any](value R, reason string) func(*testing.T) {
	return func(t *testing.T) {
		var log bytes.Buffer
		store := &faultStore{}
		g := newGuard(t, store, logTo(&log))
		got, err := idempotency.Do(t.Context(), g, "k", returns(value, nil))
		if wantErr(t, err); got.Unrecorded {
			t.Error("the result is Unrecorded, want it to be recorded as done")
		}
		const prefix = `level=WARN msg="idempotent result is not stored and cannot be replayed" key=k error=`
		if got := log.String(); !strings.HasPrefix(got, prefix) ||
			!strings.Contains(got, reason) || strings.Count(got, "\n") != 1 {
			t.Errorf("log is %q, want one warning with %q", got, reason)
		}
		got, err = idempotency.Do(t.Context(), g, "k", forbidden[R](t))
		if wantErr(t, err, idempotency.ErrResultNotStored); !got.Replayed {
			t.Error("the result is not Replayed")
		}
		if diff := cmp.Diff([]string{"claim", "complete", "claim"}, store.calls); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
	}
}

// A completion that cannot be stored either is Unrecorded, not merely without result.
func TestResultNotStoredAndUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, &faultStore{onComplete: refuse(errThrottled)})
		got, err := idempotency.Do(t.Context(), g, "k", returns(unencodable{}, nil))
		if wantErr(t, err); !got.Unrecorded {
			t.Error("the result is not Unrecorded")
		}
	})
}

// Rule 13: a batch record stores no result. Do on its key does not do the work again, and does not make a result up.
func TestReplayOfRecordWithoutResult(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	c, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
	wantErr(t, err)
	wantErr(t, c.Complete(t.Context(), nil))
	c, err = g.Claim(t.Context(), idempotency.Request{Key: "k"})
	if wantErr(t, err); !c.Replayed() || c.Data() != nil {
		t.Errorf("Replayed is %t, Data is %q, want true and nil", c.Replayed(), c.Data())
	}
	got, err := idempotency.Do(t.Context(), g, "k", forbidden[string](t))
	wantErr(t, err, idempotency.ErrResultNotStored)
	want := `idempotency: result is not stored: the work of "k" is done, but its result was too large, had no JSON, ` +
		`or was of no use to the caller that did it`
	if diff := cmp.Diff(want, errorText(err)); diff != "" || !got.Replayed {
		t.Errorf("result is %+v, want it to be Replayed; error (-want +got):\n%s", got, diff)
	}
	void, err := idempotency.Do(t.Context(), g, "k", forbidden[struct{}](t))
	if wantErr(t, err); !void.Replayed {
		t.Errorf("result is %+v, want it to be Replayed", void)
	}
}

// A stored result that is none of R, since the code has changed or another tool wrote it, is an error that says so, and
// nothing of it comes back.
func TestStoredResultDoesNotFit(t *testing.T) {
	type receipt struct {
		ID    string
		Count int
	}
	for _, data := range []string{`{"ID":"a","Count":"many"}`, `[1]`, `{"ID":`, ``} {
		store := idempotency.NewMemoryStore()
		store.Plant("orders#k", idempotency.Entry{
			Status: idempotency.Completed, Expiry: time.Now().Add(time.Hour), Data: []byte(data)})
		got, err := idempotency.Do(t.Context(), newGuard(t, store), "k", forbidden[receipt](t))
		prefix := `idempotency: stored result is not valid: the work of "k" is done, but its result is no idempotency_test.receipt: `
		if !strings.HasPrefix(errorText(err), prefix) {
			t.Errorf("data %s: error is %v, want %q...", data, err, prefix)
		}
		if want := (idempotency.Result[receipt]{Replayed: true}); got != want {
			t.Errorf("data %s: result is %+v, want %+v", data, got, want)
		}
	}
}

// A result of an interface type that is no empty one can be stored, but not be read back.
func TestStoredResultOfInterface(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	_, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (error, error) { return errThrottled, nil })
	wantErr(t, err)
	_, err = idempotency.Do(t.Context(), g, "k", forbidden[error](t))
	want := `idempotency: stored result is not valid: the work of "k" is done, but its result is no error: ` +
		`json: cannot unmarshal object into Go value of type error`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// undecodable is a result that is stored, and panics when it is to be read back.
type undecodable struct{ N int }

func (*undecodable) UnmarshalJSON([]byte) error { panic("sealed") }

// A result whose decoding panics is an error of the replay. The work is not done again.
func TestStoredResultPanics(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	_, err := idempotency.Do(t.Context(), g, "k", returns(undecodable{1}, nil))
	wantErr(t, err)
	got, err := idempotency.Do(t.Context(), g, "k", forbidden[undecodable](t))
	want := `idempotency: stored result is not valid: the work of "k" is done, but its result is no idempotency_test.undecodable: ` +
		`decoding it panicked: sealed`
	if diff := cmp.Diff(want, errorText(err)); diff != "" || !got.Replayed {
		t.Errorf("result is %+v, want it to be Replayed; error (-want +got):\n%s", got, diff)
	}
}
