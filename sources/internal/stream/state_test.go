package stream

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type (
	flat   struct{ A, B int }
	nested struct {
		F flat
		S string
		T time.Time
		N [3]float64
	}
	withSlice struct {
		N nested
		L []int
	}
	withHidden struct{ m map[string]int }
	recursive  struct{ Next *recursive }
)

// Which states show in one copy what is done to another.
func TestSharesMemory(t *testing.T) {
	_ = withHidden{}.m
	for _, test := range []struct {
		t    reflect.Type
		want bool
	}{
		{reflect.TypeFor[int](), false}, {reflect.TypeFor[string](), false}, {reflect.TypeFor[flat](), false}, {reflect.TypeFor[nested](), false},
		{reflect.TypeFor[time.Time](), false}, {reflect.TypeFor[[2]flat](), false}, {reflect.TypeFor[struct{}](), false},
		{reflect.TypeFor[complex128](), false}, {reflect.TypeFor[bool](), false},
		{reflect.TypeFor[[]int](), true}, {reflect.TypeFor[map[string]int](), true}, {reflect.TypeFor[*flat](), true}, {reflect.TypeFor[any](), true},
		{reflect.TypeFor[withSlice](), true}, {reflect.TypeFor[withHidden](), true}, {reflect.TypeFor[recursive](), true},
		{reflect.TypeFor[[1][]int](), true}, {reflect.TypeFor[func()](), true}, {reflect.TypeFor[chan int](), true},
		{reflect.TypeFor[struct{ T *time.Time }](), true},
	} {
		if got := sharesMemory(test.t); got != test.want {
			t.Errorf("%v shares memory: %v, want %v", test.t, got, test.want)
		}
	}
}

// A state goes through JSON and back, and means the same.
func TestState(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{}`, `{}`}, {`{"a":1}`, `{"a":1}`}, {` { "a" : 1 } `, `{"a":1}`}, {`{"a":1,"a":2}`, `{"a":2}`},
	} {
		state, err := decodeState[map[string]int](test.in)
		if err != nil {
			t.Fatal(err)
		}
		if state == nil {
			t.Errorf("state of %s is nil, want one to write in", test.in)
		}
		if text, err := encodeState(state, true); err != nil || string(text) != test.want {
			t.Errorf("state is %s, error is %v, want %s", text, err, test.want)
		}
	}
	for _, state := range []any{nil, map[string]int(nil), (*flat)(nil)} {
		if text, err := encodeState(state, true); err != nil || string(text) != "{}" {
			t.Errorf("%#v is %s, error is %v, want {}", state, text, err)
		}
	}
}

func TestStateErrors(t *testing.T) {
	for _, test := range []struct {
		state any
		want  string
	}{
		{1, "window's state, a interface {}, is a number in JSON, want an object"}, {-1.5, "is a number in JSON"}, {"x", "is a string in JSON"},
		{[]int{}, "is an array in JSON"}, {true, "is a boolean in JSON"}, {time.Time{}, "is a string in JSON"},
		{math.NaN(), "window's state cannot be encoded: "}, {map[string]any{"f": func() {}}, "cannot be encoded: "},
		{map[string]string{"a": strings.Repeat("x", maxState)}, "window's state has 1048584 bytes in JSON, want at most 1048576"},
	} {
		if text, err := encodeState(test.state, true); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("state is %.50s, error is %v, want %q", text, err, test.want)
		}
	}
	if _, err := decodeState[flat](`{"A":"x"}`); err == nil || !strings.Contains(err.Error(), "window's state is not a valid stream.flat") {
		t.Errorf("error is %v, want one that names the type", err)
	}
}

func TestTime(t *testing.T) {
	for _, test := range []struct {
		value string
		want  time.Time
	}{
		{"1545084650.987", time.UnixMilli(1545084650987)}, {"1.545084650987E9", time.UnixMilli(1545084650987)},
		{"1479499740", time.Unix(1479499740, 0)}, {"0.000001", time.UnixMicro(1)}, {"0", time.Time{}}, {"-0.5", time.Time{}}, {"253402300799", time.Unix(253402300799, 0)},
		{"253402300800", time.Time{}},
		{"1e11", time.Unix(100_000_000_000, 0)}, {"-1.1e11", time.Time{}}, {"1e999", time.Time{}},
		{"", time.Time{}}, {"null", time.Time{}}, {`"1"`, time.Time{}}, {"Inf", time.Time{}}, {"NaN", time.Time{}}, {"{}", time.Time{}},
	} {
		got := Time(test.value)
		if !got.Equal(test.want) || got.IsZero() != test.want.IsZero() {
			t.Errorf("Time(%s) is %v, want %v", test.value, got, test.want)
		}
		if _, err := got.MarshalText(); err != nil {
			t.Errorf("Time(%s) cannot be printed: %v", test.value, err)
		}
	}
}
