package kinesis_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/sources/kinesis"
)

// Case 31: a panic in one of five, of whatever kind, is that record's failure. The others finish, the process lives, and the
// record's claim is free again.
func TestPanic(t *testing.T) {
	for _, test := range []struct {
		name  string
		panic func()
		want  string // in the error
		stack bool
	}{
		{"value", func() { panic("a value") }, "panic: a value", true},
		{"error", func() { panic(errors.New("with this")) }, "panic: with this", true},
		{"nil", func() { panic(nil) }, "nil", true},
		{"runtime error", func() { _ = failing()["r0"].Error() }, "nil pointer dereference", true},
		{"Goexit", runtime.Goexit, "runtime.Goexit", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
				var logged logs
				w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
					if r.Data == "r2" {
						test.panic()
					}
					return nil
				}}
				h := newHandler(t, w.handle, options, logged.option)
				wantCheckpoint(t, t.Context(), h, event(numbered(5)...), sequence(2))
				if isGuarded {
					w.want(t, "r0", "r1", "r2", "r3", "r4")
				}
				w.take()
				line := logged.Failure(t, eventID(2))
				if !strings.Contains(line.Error, test.want) || strings.Contains(line.Stack, "panic_test.go") != test.stack {
					t.Errorf("error is %q, stack %q, want %q and the place: %v", line.Error, line.Stack, test.want, test.stack)
				}
				wantCheckpoint(t, t.Context(), h, event(numbered(3)[2]), sequence(2))
				w.want(t, "r2")
			})
		})
	}
}

// poisoned is a type that panics when it is decoded.
type poisoned struct{}

func (*poisoned) UnmarshalJSON(data []byte) error {
	if string(data) == `"c"` {
		panic("poisoned data")
	}
	return nil
}

// Data that panic when they are decoded harm their own record only.
func TestPanicInDecoding(t *testing.T) {
	for _, n := range []int{1, 10} {
		ran := make(chan string, 9)
		var failed errorHook
		h := newHandler(t, func(_ context.Context, r *kinesis.Record[poisoned]) error { ran <- r.ID(); return nil },
			guarded(t), concurrency(n), failed.option)
		wantCheckpoint(t, t.Context(), h, event(record{Data: `"b"`, Key: "b"}, record{Data: `"c"`, Key: "c", N: 1}, record{Data: `"d"`, Key: "d", N: 2}), sequence(1))
		if len(ran) != 2 {
			t.Errorf("%d records ran, want 2", len(ran))
		}
		wantError(t, failed.only(t), "poisoned data")
	}
}
