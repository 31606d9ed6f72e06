package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

type poisoned struct{ ID string }

// UnmarshalJSON is of a payload type that panics.
func (p *poisoned) UnmarshalJSON(data []byte) error {
	if p.ID = string(data); p.ID == `"m3"` {
		panic("poisoned payload")
	}
	return nil
}

// Case 31: a panic in one of five, of whatever kind, is that message's failure. The others finish, the process lives.
func TestPanic(t *testing.T) {
	errPanic := errors.New("panicked with this")
	for _, test := range []struct {
		name  string
		panic func()
		want  []string // in the error
		stack bool
	}{
		{"value", func() { panic("a value") }, []string{"panic: a value"}, true},
		{"error", func() { panic(errPanic) }, []string{"panic: panicked with this"}, true},
		{"nil", func() { panic(nil) }, []string{"panic", "nil"}, true},
		{"runtime error", func() { _ = failing()["m1"].Error() }, []string{"panic: ", "nil pointer dereference"}, true},
		{"Goexit", runtime.Goexit, []string{"runtime.Goexit"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var logged logs
				w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
					if m.ID() == "m3" {
						test.panic()
					}
					return nil
				}}
				h := newHandler(t, w.handle, options, logged.option)
				wantFailures(t, t.Context(), h, event(numbered(5)...), "m3")
				w.want(t, "m1", "m2", "m3", "m4", "m5")
				line := logged.Failure(t, "m3")
				for _, part := range test.want {
					if !strings.Contains(line.Error, part) {
						t.Errorf("error is %q, want %q in it", line.Error, part)
					}
				}
				if strings.Contains(line.Stack, "panic_test.go") != test.stack {
					t.Errorf("stack is %q, want the place of the panic in it: %v", line.Stack, test.stack)
				}
				// The claim of the message is free again.
				wantFailures(t, t.Context(), h, event(message{ID: "m3"}), "m3")
				w.want(t, "m3")
			})
		})
	}
}

// The error that a message panicked with is found in the invocation's error.
func TestPanicWithAnError(t *testing.T) {
	errPanic := batch.Permanent(errors.New("gone"))
	w := &worker{work: func(context.Context, *sqs.Message[string]) error { panic(fmt.Errorf("wrapped: %w", errPanic)) }}
	h := newHandler(t, w.handle, func(o *sqs.Options) { o.ErrorOn = batch.ErrorOnTotalFailure })
	_, err := h.Invoke(t.Context(), event(numbered(1)...))
	if !errors.Is(err, errPanic) || !batch.IsPermanent(err) {
		t.Errorf("error is %v, want %v in it", err, errPanic)
	}
}

// A payload type that panics when it is decoded harms its own message only.
func TestPanicInDecoding(t *testing.T) {
	messages := numbered(5)
	for i := range messages {
		messages[i].Body = `"` + messages[i].ID + `"`
	}
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var logged logs
		ran := make(chan string, 9)
		h := newHandler(t, func(_ context.Context, m *sqs.Message[poisoned]) error {
			ran <- m.Body.ID
			return nil
		}, options, logged.option)
		wantFailures(t, t.Context(), h, event(messages...), "m3")
		if len(ran) != 4 {
			t.Errorf("%d messages ran, want 4", len(ran))
		}
		if line := logged.Failure(t, "m3"); !strings.Contains(line.Error, "poisoned payload") || line.Stack == "" {
			t.Errorf("line is %+v, want the panic and its stack", line)
		}
	})
}
