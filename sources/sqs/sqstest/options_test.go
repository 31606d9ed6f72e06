package sqstest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestNewQueueRefuses(t *testing.T) {
	standardDLQ, fifoDLQ := newQueue(t, "dead"), newQueue(t, "dead.fifo")
	for _, test := range []struct {
		name   string
		queue  string
		option func(*sqstest.Options)
		want   string
	}{
		{"no name", "", nil, `queue name is "", but must be 1 to 80`},
		{"only the suffix", ".fifo", nil, `queue name is ".fifo"`},
		{"a dot", "a.b", nil, `queue name is "a.b"`},
		{"81 letters", strings.Repeat("a", 81), nil, "1 to 80 letters"},
		{"negative timeout", "q", func(o *sqstest.Options) { o.FunctionTimeout = -1 }, "FunctionTimeout is -1ns"},
		{"long timeout", "q", func(o *sqstest.Options) { o.FunctionTimeout = 91 * time.Minute }, "at most 1h30m"},
		{"negative batch", "q", func(o *sqstest.Options) { o.BatchSize = -1 }, "BatchSize is -1, but must be 1 to 10000"},
		{"large batch", "q", func(o *sqstest.Options) { o.BatchSize = 10001 }, "BatchSize is 10001, but must be 1 to 10000"},
		{"large FIFO batch", "q.fifo", func(o *sqstest.Options) { o.BatchSize = 11 }, "BatchSize is 11, but must be 1 to 10"},
		{"large batch without window", "q", func(o *sqstest.Options) { o.BatchSize = 11 }, "at least 1s for a BatchSize above 10"},
		{"FIFO window", "q.fifo", func(o *sqstest.Options) { o.BatchingWindow = time.Second }, "BatchingWindow is 1s, but must be 0 for a FIFO"},
		{"long window", "q", func(o *sqstest.Options) { o.BatchingWindow = 301 * time.Second }, "must be 0 to 5m"},
		{"negative concurrency", "q", func(o *sqstest.Options) { o.Concurrency = -1 }, "Concurrency is -1, but must be at least 1"},
		{"long visibility", "q", func(o *sqstest.Options) { o.VisibilityTimeout = 13 * time.Hour }, "at most 12h"},
		{"visibility below timeout", "q", func(o *sqstest.Options) { o.VisibilityTimeout = 29 * time.Second },
			"VisibilityTimeout is 29s, but must be at least FunctionTimeout (30s)"},
		{"count without queue", "q", func(o *sqstest.Options) { o.MaxReceiveCount = 3 }, "must be 0 without DeadLetter"},
		{"large count", "q", func(o *sqstest.Options) { o.DeadLetter, o.MaxReceiveCount = standardDLQ, 1001 }, "must be 1 to 1000"},
		{"FIFO dead-letter queue", "q", func(o *sqstest.Options) { o.DeadLetter = fifoDLQ }, `DeadLetter is "dead.fifo"`},
		{"standard dead-letter queue", "q.fifo", func(o *sqstest.Options) { o.DeadLetter = standardDLQ }, `DeadLetter is "dead"`},
		{"certain duplicates", "q", func(o *sqstest.Options) { o.DuplicateProbability = 1 }, "less than 1"},
		{"FIFO duplicates", "q.fifo", func(o *sqstest.Options) { o.DuplicateProbability = .1 }, "must be 0 for a FIFO"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.option == nil {
				test.option = func(*sqstest.Options) {}
			}
			q, err := sqstest.NewQueue(test.queue, test.option)
			if err == nil {
				t.Fatalf("NewQueue returned %v and no error, want %q", q.Name(), test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %q, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestNewQueueTakesTheLimits(t *testing.T) {
	dead := newQueue(t, "dead")
	for _, option := range []func(*sqstest.Options){
		func(*sqstest.Options) {},
		func(o *sqstest.Options) { o.BatchSize, o.BatchingWindow = 10000, time.Second },
		func(o *sqstest.Options) { o.VisibilityTimeout, o.FunctionTimeout = 15*time.Minute, 15*time.Minute },
		func(o *sqstest.Options) { o.VisibilityTimeout, o.FunctionTimeout = 12*time.Hour, 90*time.Minute },
		func(o *sqstest.Options) { o.DeadLetter, o.MaxReceiveCount = dead, 1000 },
		func(o *sqstest.Options) { o.FunctionTimeout = 10 * time.Millisecond },
	} {
		newQueue(t, "q_-1", option)
	}
}
