package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Case 31: a panic in one of five, of whatever kind, is that change's failure. The others finish, the process lives.
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
		{"runtime error", func() { _ = (*order)(nil).ID }, []string{"panic: ", "nil pointer dereference"}, true},
		{"Goexit", runtime.Goexit, []string{"runtime.Goexit"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
				var logged logs
				w := &worker{work: func(_ context.Context, c *dynamodbstream.Change[order]) error {
					if c.New.Note == "r2" {
						test.panic()
					}
					return nil
				}}
				h := newHandler(t, w.handle, inOrder(isGuarded, options), logged.option)
				wantCheckpoint(t, t.Context(), h, event(numbered(5)...), sequence(2))
				line := logged.Failure(t, eventID(2))
				for _, part := range test.want {
					if !strings.Contains(line.Error, part) {
						t.Errorf("error is %q, want %q in it", line.Error, part)
					}
				}
				if strings.Contains(line.Stack, "panic_test.go") != test.stack {
					t.Errorf("stack is %q, want the place of the panic in it: %v", line.Stack, test.stack)
				}
				if !isGuarded {
					return
				}
				w.want(t, "r0", "r1", "r2", "r3", "r4")
				// The claim of the change is free again.
				wantCheckpoint(t, t.Context(), h, event(numbered(5)[2:]...), sequence(2))
				w.want(t, "r2")
			})
		})
	}
}

// The error that a change panicked with is found in the invocation's error.
func TestPanicWithAnError(t *testing.T) {
	errPanic := batch.Permanent(errors.New("gone"))
	w := &worker{work: func(context.Context, *dynamodbstream.Change[order]) error { panic(fmt.Errorf("wrapped: %w", errPanic)) }}
	_, err := newHandler(t, w.handle, errorOn(batch.ErrorOnTotalFailure)).Invoke(t.Context(), event(numbered(1)...))
	if !errors.Is(err, errPanic) || !batch.IsPermanent(err) {
		t.Errorf("error is %v, want %v in it", err, errPanic)
	}
}

type poisoned struct{ note string }

// UnmarshalDynamoDBAttributeValue is of an item type that panics, or worse.
func (p *poisoned) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	if note, ok := av.(*types.AttributeValueMemberM).Value["note"]; ok {
		p.note = note.(*types.AttributeValueMemberS).Value
	}
	switch p.note {
	case "panic":
		panic("poisoned image")
	case "exit":
		runtime.Goexit()
	}
	return nil
}

// An item type that panics when it is decoded harms its own changes only.
func TestPanicInDecoding(t *testing.T) {
	for note, want := range map[string]string{"panic": "poisoned image", "exit": "runtime.Goexit"} {
		for _, n := range []int{1, 2, 10} {
			records := numbered(5)
			records[2].Note = note
			var logged logs
			ran := make(chan string, 9)
			h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[poisoned]) error {
				ran <- c.New.note
				return nil
			}, guarded(t), concurrency(n), logged.option)
			wantCheckpoint(t, t.Context(), h, event(records...), sequence(2))
			if len(ran) != 4 {
				t.Errorf("%d changes ran, want 4", len(ran))
			}
			if line := logged.Failure(t, eventID(2)); !strings.Contains(line.Error, want) {
				t.Errorf("line is %+v, want %q", line, want)
			}
		}
	}
}

// A change whose decoding panics is a poison change like any: it is given up in the end.
func TestPanicInDecodingIsGivenUp(t *testing.T) {
	var dead sink
	h := newHandler(t, func(context.Context, *dynamodbstream.Change[poisoned]) error { return nil },
		guarded(t, countAttempts), dead.giveUpAfter(2))
	payload := event(record{ID: "a", Note: "panic"}, record{ID: "a", Note: "behind", N: 1})
	wantCheckpoint(t, t.Context(), h, payload, sequence(0))
	wantCheckpoint(t, t.Context(), h, payload, "")
	dead.want(t, eventID(0)+" at 2")
}
