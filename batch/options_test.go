package batch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

func TestValidate(t *testing.T) {
	pass := func(next batch.Handler) batch.Handler { return next }
	for _, test := range []struct {
		name   string
		option batch.Options
		want   string
	}{
		{"zero", batch.Options{}, ""},
		{"all set", batch.Options{
			Concurrency: 1, Reserve: time.Second, Timeout: time.Minute, MaxAttempts: 5, StopOnFailure: true, ErrorOn: batch.ErrorOnAnyFailure,
			Middleware: []batch.Middleware{pass}, Hooks: []batch.Hook{startedFunc(func() {})},
		}, ""},
		{"most concurrent", batch.Options{Concurrency: 10_000}, ""},
		{"too concurrent", batch.Options{Concurrency: 10_001}, "batch: Options.Concurrency is 10001, want 0 (for 10) to 10000"},
		{"negative concurrency", batch.Options{Concurrency: -1}, "batch: Options.Concurrency is -1, want 0 (for 10) to 10000"},
		{"no reserve", batch.Options{Reserve: -1}, ""},
		{"negative timeout", batch.Options{Timeout: -time.Second}, "batch: Options.Timeout is -1s, want 0 (for none) or more"},
		{"negative attempts", batch.Options{MaxAttempts: -1}, "batch: Options.MaxAttempts is -1, want 0 (for no limit) or more"},
		{"unknown ErrorOn", batch.Options{ErrorOn: 3}, "batch: Options.ErrorOn is 3, want one of the ErrorOn constants"},
		{"nil middleware", batch.Options{Middleware: []batch.Middleware{pass, nil}}, "batch: Options.Middleware[1] is nil, want a function"},
		{"nil hook", batch.Options{Hooks: []batch.Hook{nil}},
			"batch: Options.Hooks[0] is of type <nil>, want one with at least one of OnBatchStarted, OnRecordFinished, OnBatchFinished"},
		{"no hook", batch.Options{Hooks: []batch.Hook{startedFunc(func() {}), time.Second}},
			"batch: Options.Hooks[1] is of type time.Duration, want one with at least one of OnBatchStarted, OnRecordFinished, OnBatchFinished"},
		{"all wrong", batch.Options{Concurrency: -1, Timeout: -1, MaxAttempts: -1, ErrorOn: 200,
			Middleware: []batch.Middleware{nil}, Hooks: []batch.Hook{1}},
			strings.Join([]string{
				"batch: Options.Concurrency is -1, want 0 (for 10) to 10000",
				"batch: Options.Timeout is -1ns, want 0 (for none) or more",
				"batch: Options.MaxAttempts is -1, want 0 (for no limit) or more",
				"batch: Options.ErrorOn is 200, want one of the ErrorOn constants",
				"batch: Options.Middleware[0] is nil, want a function",
				"batch: Options.Hooks[0] is of type int, want one with at least one of OnBatchStarted, OnRecordFinished, OnBatchFinished",
			}, "\n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := test.option.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// An option function that is nil, as where an option depends on a condition, is skipped.
func TestNilOptionFunction(t *testing.T) {
	report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return nil }, nil, concurrency(3), nil)
	if report.Failed() > 0 {
		t.Errorf("report = %v, want a success", report)
	}
}
