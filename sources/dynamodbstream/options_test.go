package dynamodbstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Options that are out of their limits are named in the constructor, all of them in one error, whatever the handler.
func TestOptionErrors(t *testing.T) {
	const attempts = "dynamodbstream: Options.MaxAttempts is 3, but nobody counts attempts, want a guard with " +
		"idempotency.Options.CountAttempts, or 0"
	maxAttempts := func(o *dynamodbstream.Options) { o.MaxAttempts = 3 }
	guard := guarded(t)
	for _, test := range []struct {
		name   string
		option func(*dynamodbstream.Options)
		want   []string
	}{
		{"concurrency", concurrency(-1), []string{"Options.Concurrency is -1, want 0 (for 10) to 10000"}},
		{"much concurrency", concurrency(10_001), []string{"Options.Concurrency is 10001"}},
		{"timeout", func(o *dynamodbstream.Options) { o.Timeout = -time.Second }, []string{"Options.Timeout is -1s"}},
		{"two", func(o *dynamodbstream.Options) { o.MaxAttempts, o.ErrorOn = -1, 3 }, []string{"Options.MaxAttempts is -1", "Options.ErrorOn is 3"}},
		{"middleware", func(o *dynamodbstream.Options) { o.Middleware = []batch.Middleware{nil} }, []string{"Options.Middleware[0] is nil"}},
		{"hook", func(o *dynamodbstream.Options) { o.Hooks = []batch.Hook{"hook"} }, []string{"Options.Hooks[0] is of type string"}},
		{"attempts without a guard", maxAttempts, []string{attempts}},
		{"attempts with a guard that does not count", func(o *dynamodbstream.Options) { maxAttempts(o); guard(o) }, []string{attempts}},
		{"several", func(o *dynamodbstream.Options) { maxAttempts(o); o.Concurrency = -2 }, []string{attempts, "Options.Concurrency is -2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := dynamodbstream.NewHandler((&worker{}).handle, test.option)
			wantError(t, err, test.want...)
			_, err = dynamodbstream.NewWindowHandler(count, finishNothing, test.option)
			wantError(t, err, test.want...)
		})
	}
	_, err := dynamodbstream.NewWindowHandler(count, finishNothing, concurrency(2))
	wantError(t, err, "dynamodbstream: Options.Concurrency is 2, want 0 or 1 in a handler of windows")
	if _, err := dynamodbstream.NewHandler((&worker{}).handle, nil, guarded(t, countAttempts), maxAttempts); err != nil {
		t.Errorf("attempts with a guard that counts: error is %v", err)
	}
	if _, err := dynamodbstream.NewHandler[order](nil); err == nil || err.Error() != "dynamodbstream: handler function is nil, want a function" {
		t.Errorf("nil handler: error is %v", err)
	}
	const noWindow = "dynamodbstream: fold or finish is nil, want two functions"
	if _, err := dynamodbstream.NewWindowHandler(count, nil); err == nil || err.Error() != noWindow {
		t.Errorf("nil finish: error is %v", err)
	}
	if _, err := dynamodbstream.NewWindowHandler[order](nil, finishNothing); err == nil || err.Error() != noWindow {
		t.Errorf("nil fold: error is %v", err)
	}
}

// Records of a window have no keys, so options about these are errors, with a guard too.
func TestOptionErrorsOfWindows(t *testing.T) {
	for name, option := range map[string]func(*dynamodbstream.Options){
		"Options.Key": func(o *dynamodbstream.Options) { o.Key = func(dynamodbstream.View) (string, error) { return "k", nil } },
		"Options.Fingerprint": func(o *dynamodbstream.Options) {
			o.Fingerprint = func(dynamodbstream.View) (string, error) { return "f", nil }
		},
		"KeyOf": byNote(),
	} {
		_, err := dynamodbstream.NewWindowHandler(count, finishNothing, guarded(t), option)
		wantError(t, err, "dynamodbstream: "+name+" is set, want none in a handler of windows: their records have no keys")
	}
}

// What a function of options keeps and changes later changes no handler, and the options of one change none of another.
func TestOptionsAreCopied(t *testing.T) {
	var kept *dynamodbstream.Options
	w := &worker{errs: failing("a0")}
	h := newHandler(t, w.handle, guarded(t), func(o *dynamodbstream.Options) { kept = o })
	newHandler(t, func(context.Context, *dynamodbstream.Change[order]) error { return nil }, func(o *dynamodbstream.Options) {
		o.Options = kept.Options // without a guard it stops on failures
	})
	kept.ErrorOn = batch.ErrorOnAnyFailure
	wantCheckpoint(t, t.Context(), h, event(noted("a0", "b1")...), sequence(0))
	w.want(t, "a0", "b1")
}
