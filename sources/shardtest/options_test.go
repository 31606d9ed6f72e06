package shardtest_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		option func(*shardtest.Options)
		want   string
	}{
		{"negative timeout", func(o *shardtest.Options) { o.FunctionTimeout = -1 }, "kit: FunctionTimeout is -1ns, but must be positive"},
		{"long timeout", func(o *shardtest.Options) { o.FunctionTimeout = 91 * time.Minute }, "at most 1h30m"},
		{"negative batch", func(o *shardtest.Options) { o.BatchSize = -1 }, "BatchSize is -1, but must be 1 to 10000"},
		{"large batch", func(o *shardtest.Options) { o.BatchSize = 10001 }, "BatchSize is 10001, but must be 1 to 10000"},
		{"negative batching window", func(o *shardtest.Options) { o.BatchingWindow = -1 }, "BatchingWindow is -1ns, but must be 0 to 5m"},
		{"long batching window", func(o *shardtest.Options) { o.BatchingWindow = 301 * time.Second }, "must be 0 to 5m"},
		{"negative factor", func(o *shardtest.Options) { o.ParallelizationFactor = -1 }, "ParallelizationFactor is -1, but must be 1 to 10"},
		{"large factor", func(o *shardtest.Options) { o.ParallelizationFactor = 11 }, "ParallelizationFactor is 11, but must be 1 to 10"},
		{"long window", func(o *shardtest.Options) { o.TumblingWindow = 901 * time.Second }, "TumblingWindow is 15m1s, but must be 0 to 15m"},
		{"half a second", func(o *shardtest.Options) { o.TumblingWindow = 1500 * time.Millisecond }, "in whole seconds"},
		{"negative window", func(o *shardtest.Options) { o.TumblingWindow = -time.Second }, "TumblingWindow is -1s"},
		{"window and factor", func(o *shardtest.Options) { o.TumblingWindow, o.ParallelizationFactor = time.Second, 2 },
			"ParallelizationFactor is 2, but must be 1 with a TumblingWindow"},
		{"fewer than infinite retries", func(o *shardtest.Options) { o.MaximumRetryAttempts = -2 },
			"MaximumRetryAttempts is -2, but must be -1 (for ever) or 0 to 10000"},
		{"many retries", func(o *shardtest.Options) { o.MaximumRetryAttempts = 10001 }, "MaximumRetryAttempts is 10001"},
		{"young", func(o *shardtest.Options) { o.MaximumRecordAge = 59 * time.Second },
			"MaximumRecordAge is 59s, but must be -1 (infinite) or 1m to 168h"},
		{"old", func(o *shardtest.Options) { o.MaximumRecordAge = 168*time.Hour + 1 }, "1m to 168h"},
		{"certain duplicates", func(o *shardtest.Options) { o.DuplicateProbability = 1 }, "less than 1"},
		{"negative duplicates", func(o *shardtest.Options) { o.DuplicateProbability = -.1 }, "at least 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := shardtest.Defaults()
			test.option(&o)
			_, err := shardtest.New(shardtest.Config[string]{Kit: "kit"}, o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestNewTakesTheLimits(t *testing.T) {
	for _, option := range []func(*shardtest.Options){
		func(o *shardtest.Options) { o.FunctionTimeout, o.BatchingWindow = 90*time.Minute, 5*time.Minute },
		func(o *shardtest.Options) { o.BatchSize, o.ParallelizationFactor = 10000, 10 },
		func(o *shardtest.Options) { o.TumblingWindow = 15 * time.Minute },
		func(o *shardtest.Options) { o.MaximumRetryAttempts, o.MaximumRecordAge = 10000, 7*24*time.Hour },
		func(o *shardtest.Options) { o.MaximumRetryAttempts, o.MaximumRecordAge = 0, time.Minute },
		func(o *shardtest.Options) { o.MaximumRecordAge = 0 },
		func(o *shardtest.Options) {
			o.MaximumRetryAttempts, o.MaximumRecordAge = shardtest.Infinite, shardtest.Infinite
		},
	} {
		newStream(t, option)
	}
}

func TestStatsString(t *testing.T) {
	ones, manies := shardtest.Stats{}, shardtest.Stats{}
	for i := range reflect.TypeFor[shardtest.Stats]().NumField() {
		reflect.ValueOf(&ones).Elem().Field(i).SetInt(1)
		reflect.ValueOf(&manies).Elem().Field(i).SetInt(int64(i + 2))
	}
	for _, test := range []struct {
		stats shardtest.Stats
		want  string
	}{
		{shardtest.Stats{}, "0 put"},
		{shardtest.Stats{Waiting: 2}, "2 waiting"},
		{ones, "1 put, 1 delivery, 1 invocation, 1 done, 1 discarded, 1 repeated, 1 crash, 1 timeout, 1 error, 1 waiting, " +
			"1 in flight"},
		{manies, "2 put, 3 deliveries, 4 invocations, 5 done, 6 discarded, 7 repeated, 8 crashes, 9 timeouts, 10 errors, " +
			"11 waiting, 12 in flight"},
	} {
		if got := test.stats.String(); got != test.want {
			t.Errorf("String is %q, want %q", got, test.want)
		}
	}
}
