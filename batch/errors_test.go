package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
)

func TestControlErrors(t *testing.T) {
	permanent := batch.Permanent(errBoom)
	later := batch.RetryAfter(time.Minute, errBoom)
	for _, test := range []struct {
		name      string
		err       error
		permanent bool
		delay     time.Duration
		delayed   bool
		text      string
	}{
		{"nil", nil, false, 0, false, ""},
		{"any", errBoom, false, 0, false, "boom"},
		{"permanent", permanent, true, 0, false, "boom"},
		{"permanent, wrapped", fmt.Errorf("order 7: %w", permanent), true, 0, false, "order 7: boom"},
		{"permanent, joined", errors.Join(errSink, fmt.Errorf("x: %w", permanent)), true, 0, false, "queue is gone\nx: boom"},
		{"permanent, wrapped twice over", batch.Permanent(fmt.Errorf("x: %w", permanent)), true, 0, false, "x: boom"},
		{"permanent, printed", fmt.Errorf("x: %v", permanent), false, 0, false, "x: boom"},
		{"later", later, false, time.Minute, true, "boom"},
		{"later, wrapped", fmt.Errorf("order 7: %w", later), false, time.Minute, true, "order 7: boom"},
		{"later, joined", errors.Join(errSink, later), false, time.Minute, true, "queue is gone\nboom"},
		{"later, and later still", batch.RetryAfter(time.Hour, fmt.Errorf("x: %w", later)), false, time.Hour, true, "x: boom"},
		{"at once", batch.RetryAfter(0, errBoom), false, 0, true, "boom"},
		{"before now", batch.RetryAfter(-time.Second, errBoom), false, 0, true, "boom"},
		{"both", batch.Permanent(later), true, time.Minute, true, "boom"},
		{"both, the other way", batch.RetryAfter(time.Minute, permanent), true, time.Minute, true, "boom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := batch.IsPermanent(test.err); got != test.permanent {
				t.Errorf("IsPermanent = %v, want %v", got, test.permanent)
			}
			if delay, ok := batch.RetryDelay(test.err); delay != test.delay || ok != test.delayed {
				t.Errorf("RetryDelay = %v, %v, want %v, %v", delay, ok, test.delay, test.delayed)
			}
			if test.err == nil {
				return
			}
			if got := test.err.Error(); got != test.text {
				t.Errorf("text = %q, want %q", got, test.text)
			}
			if test.name != "permanent, printed" && !errors.Is(test.err, errBoom) {
				t.Error("the cause is not found")
			}
		})
	}
	if err := batch.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) = %#v, want nil", err)
	}
	if err := batch.RetryAfter(time.Second, nil); err != nil {
		t.Errorf("RetryAfter(1s, nil) = %#v, want nil", err)
	}
	if _, ok := errors.AsType[*pathError](batch.Permanent(fmt.Errorf("x: %w", &pathError{}))); !ok {
		t.Error("errors.As does not see through Permanent")
	}
}

type pathError struct{}

func (*pathError) Error() string { return "path" }

func TestHandlersOwnErrorIsKept(t *testing.T) {
	want := batch.RetryAfter(time.Minute, errBoom)
	report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return want })
	if got := report.Results[0].Err; got != want {
		t.Errorf("error = %#v, want the handler's own", got)
	}
	if delay, ok := batch.RetryDelay(report.Results[0].Err); delay != time.Minute || !ok {
		t.Errorf("RetryDelay = %v, %v, want 1m0s, true", delay, ok)
	}
}

func TestPanicError(t *testing.T) {
	for _, test := range []struct {
		err  batch.PanicError
		text string
		is   error
	}{
		{batch.PanicError{Value: "ouch", Stack: []byte("stack")}, "batch: panic: ouch", nil},
		{batch.PanicError{Value: 7}, "batch: panic: 7", nil},
		{batch.PanicError{Value: errBoom}, "batch: panic: boom", errBoom},
		{batch.PanicError{}, "batch: panic(nil) or runtime.Goexit", nil},
	} {
		if got := test.err.Error(); got != test.text {
			t.Errorf("text = %q, want %q", got, test.text)
		}
		if got := errors.Unwrap(&test.err); got != test.is {
			t.Errorf("%v unwraps to %v, want %v", &test.err, got, test.is)
		}
	}
}
