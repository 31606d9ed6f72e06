package eventbridgetest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
)

func subscribed(s eventbridgetest.Subscriber) func(*eventbridgetest.Options) {
	return func(o *eventbridgetest.Options) { o.Subscriber = &s }
}

func TestNewBusRefuses(t *testing.T) {
	type options = eventbridgetest.Options
	for _, test := range []struct {
		name   string
		bus    string
		option func(*options)
		want   string
	}{
		{"no name", "", nil, `bus name is "", but must be 1 to 256`},
		{"a space", "a b", nil, `bus name is "a b"`},
		{"257 letters", strings.Repeat("a", 257), nil, "1 to 256 letters"},
		{"negative timeout", "b", func(o *options) { o.FunctionTimeout = -1 }, "FunctionTimeout is -1ns"},
		{"long timeout", "b", func(o *options) { o.FunctionTimeout = 91 * time.Minute }, "at most 1h30m"},
		{"three retries", "b", func(o *options) { o.FunctionRetry.MaximumRetryAttempts = 3 },
			"FunctionRetry.MaximumRetryAttempts is 3, but must be 1 or 2, -1 (none)"},
		{"negative retries", "b", func(o *options) { o.FunctionRetry.MaximumRetryAttempts = -2 }, "MaximumRetryAttempts is -2"},
		{"seven hours", "b", func(o *options) { o.FunctionRetry.MaximumEventAge = 7 * time.Hour },
			"FunctionRetry.MaximumEventAge is 7h0m0s, but must be positive and at most 6h"},
		{"negative age", "b", func(o *options) { o.FunctionRetry.MaximumEventAge = -1 }, "MaximumEventAge is -1ns"},
		{"186 retries", "b", func(o *options) { o.TargetRetry.MaximumRetryAttempts = 186 },
			"TargetRetry.MaximumRetryAttempts is 186, but must be 1 to 185, -1 (none)"},
		{"25 hours", "b", func(o *options) { o.TargetRetry.MaximumEventAge = 25 * time.Hour },
			"TargetRetry.MaximumEventAge is 25h0m0s, but must be positive and at most 24h"},
		{"negative delay", "b", func(o *options) { o.RetryDelay = -1 }, "RetryDelay is -1ns, but must be positive and at most 1h"},
		{"long delay", "b", func(o *options) { o.RetryDelay = 61 * time.Minute }, "RetryDelay is 1h1m0s"},
		{"negative concurrency", "b", func(o *options) { o.Concurrency = -1 }, "Concurrency is -1, but must be at least 1"},
		{"certain duplicates", "b", func(o *options) { o.DuplicateProbability = 1 }, "DuplicateProbability is 1, but must be at least 0"},
		{"negative batch", "b", subscribed(eventbridgetest.Subscriber{MaxBatchSize: -1}), "Subscriber.MaxBatchSize is -1, but must be 1 to 500"},
		{"large batch", "b", subscribed(eventbridgetest.Subscriber{MaxBatchSize: 501}), "Subscriber.MaxBatchSize is 501"},
		{"long window", "b", subscribed(eventbridgetest.Subscriber{MaxBatchWindow: 301 * time.Second}),
			"Subscriber.MaxBatchWindow is 5m1s, but must be 0 to 5m"},
		{"timeout without an answer", "b", subscribed(eventbridgetest.Subscriber{InvocationTimeout: time.Second}),
			"Subscriber.InvocationTimeout is 1s, but must be 0 without RequestResponse"},
		{"long invocation timeout", "b", subscribed(eventbridgetest.Subscriber{RequestResponse: true, InvocationTimeout: 31 * time.Second}),
			"Subscriber.InvocationTimeout is 31s, but must be positive and at most 30s"},
		{"negative invocation timeout", "b", subscribed(eventbridgetest.Subscriber{RequestResponse: true, InvocationTimeout: -1}),
			"Subscriber.InvocationTimeout is -1ns"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.option == nil {
				test.option = func(*options) {}
			}
			b, err := eventbridgetest.NewBus(test.bus, test.option)
			if err == nil {
				t.Fatalf("NewBus returned %v and no error, want %q", b.Name(), test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %q, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestNewBusTakesTheLimits(t *testing.T) {
	type options = eventbridgetest.Options
	subscriber := eventbridgetest.Subscriber{RequestResponse: true}
	for _, option := range []func(*options){
		func(*options) {},
		func(o *options) { o.FunctionTimeout, o.RetryDelay = 90*time.Minute, time.Hour },
		func(o *options) {
			o.FunctionRetry = eventbridgetest.RetryPolicy{MaximumRetryAttempts: 2, MaximumEventAge: 6 * time.Hour}
		},
		func(o *options) {
			o.FunctionRetry.MaximumRetryAttempts, o.TargetRetry.MaximumRetryAttempts = eventbridgetest.NoRetries, eventbridgetest.NoRetries
		},
		func(o *options) {
			o.TargetRetry = eventbridgetest.RetryPolicy{MaximumRetryAttempts: 185, MaximumEventAge: 24 * time.Hour}
		},
		subscribed(eventbridgetest.Subscriber{MaxBatchSize: 500, MaxBatchWindow: 5 * time.Minute}),
		subscribed(eventbridgetest.Subscriber{MaxBatchSize: 1, RequestResponse: true, InvocationTimeout: 30 * time.Second}),
		func(o *options) { o.Subscriber = &subscriber },
	} {
		newBus(t, "a/b_-.1", option)
	}
	if subscriber != (eventbridgetest.Subscriber{RequestResponse: true}) {
		t.Errorf("the user's Subscriber has become %+v, want it unchanged", subscriber)
	}
}

func TestNames(t *testing.T) {
	b := newBus(t, "orders")
	if b.Name() != "orders" || b.ARN() != "arn:aws:events:us-east-1:123456789012:event-bus/orders" {
		t.Errorf("bus is %q with ARN %q", b.Name(), b.ARN())
	}
	b = newBus(t, "orders", subscribed(eventbridgetest.Subscriber{}))
	if want := "arn:aws:events:us-east-1:123456789012:event-busv2/orders/example1234567890abcdef12"; b.ARN() != want {
		t.Errorf("ARN is %q, want %q", b.ARN(), want)
	}
}
