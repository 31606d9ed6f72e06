package eventbridge_test

import (
	"testing"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// Options that are out of their limits are named in the constructor, all of them in one error.
func TestOptionErrors(t *testing.T) {
	const attempts = "eventbridge: Options.MaxAttempts is 3, but nobody counts attempts, want a guard with " +
		"idempotency.Options.CountAttempts, or 0"
	key := func(o *eventbridge.Options) { o.Key = func(eventbridge.View) (string, error) { return "k", nil } }
	maxAttempts := func(o *eventbridge.Options) { o.MaxAttempts = 3 }
	guard := guarded(t)
	type options = []func(*eventbridge.Options)
	for _, test := range []struct {
		name    string
		options options
		want    []string
	}{
		{"of the engine", options{concurrency(-1)}, []string{"batch: Options.Concurrency is -1, want 0 (for 10) to 10000"}},
		{"attempts without a guard", options{maxAttempts}, []string{attempts}},
		{"attempts that nobody counts", options{maxAttempts, guard}, []string{attempts}},
		{"two keys", options{guard, key, byOrder()}, []string{"eventbridge: both KeyOf and Options.Key are set, want one"}},
		{"key without a guard", options{key}, []string{"eventbridge: Options.Key is set, but Options.Idempotency is nil, want a guard or neither"}},
		{"KeyOf without a guard", options{byOrder()}, []string{"eventbridge: KeyOf is set, but Options.Idempotency is nil"}},
		{"fingerprint without a guard", options{func(o *eventbridge.Options) { o.Fingerprint = eventbridge.DetailSHA256 }},
			[]string{"eventbridge: Options.Fingerprint is set, but Options.Idempotency is nil"}},
		{"KeyOf of another type", options{guard, eventbridge.KeyOf(func(string) string { return "" })},
			[]string{"eventbridge: KeyOf has a func(string) string, want a func(eventbridge_test.order) string"}},
		{"KeyOf nil", options{guard, eventbridge.KeyOf[order](nil)}, []string{"eventbridge: KeyOf has a nil function"}},
		{"age", options{maxAge(-1)}, []string{"eventbridge: Options.MaxAge is -1ns, want 0 (for no limit) or more"}},
		{"replays without a guard", options{runReplays}, []string{"eventbridge: Options.RunReplays is set, but Options.Idempotency is nil"}},
		{"ErrorOn", options{func(o *eventbridge.Options) { o.ErrorOn = batch.ErrorOnTotalFailure }},
			[]string{"eventbridge: Options.ErrorOn is ErrorOnTotalFailure, want 0 or ErrorOnAnyFailure"}},
		{"several", options{maxAttempts, concurrency(-2), maxAge(-time.Second)}, []string{attempts, "Options.Concurrency is -2", "Options.MaxAge is -1s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := eventbridge.NewHandler((&worker{}).handle, test.options...)
			if h != nil {
				t.Error("there is a handler, want none")
			}
			wantError(t, err, test.want...)
		})
	}
	if _, err := eventbridge.NewHandler[order](nil); err == nil || err.Error() != "eventbridge: handler function is nil, want a function" {
		t.Errorf("nil handler: error is %v", err)
	}
	if _, err := eventbridge.NewHandler((&worker{}).handle, nil, guarded(t, countAttempts), maxAttempts, func(o *eventbridge.Options) {
		o.ErrorOn = batch.ErrorOnAnyFailure
	}); err != nil {
		t.Errorf("what is right: error is %v", err)
	}
}

// What a function of options keeps and changes later changes no handler.
func TestOptionsAreCopied(t *testing.T) {
	var kept *eventbridge.Options
	w := &worker{}
	h := newHandler(t, w.handle, guarded(t), func(o *eventbridge.Options) { kept = o })
	kept.MaxAge, kept.Idempotency, kept.RunReplays = 1, nil, true
	for range 2 {
		wantDone(t, t.Context(), h, []byte(change(placed(1, "o1"), `"version"`, `"replay-name":"fix","version"`)))
	}
	w.wantOrder(t, "o1")
}
