package shardtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestRedeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 3 })
		s.put("s", "a b c d e")
		s.drain(succeed)
		if err := s.Redeliver("s", "b"); err != nil {
			t.Fatal(err)
		}
		if got := s.Stats(); got.Repeated != 4 || got.Waiting != 4 {
			t.Errorf("stats are %v, want 4 records repeated and waiting", got)
		}
		s.put("s", "f")
		s.drain(succeed)
		if diff := cmp.Diff([]string{"a b c", "d e", "b c d", "e f"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		d := s.observed()[2]
		if d.CheckpointBefore != "a" || d.CheckpointAfter != "d" || d.Attempt != 2 {
			t.Errorf("checkpoint was %q and is %q at attempt %d, want a and d at attempt 2", d.CheckpointBefore,
				d.CheckpointAfter, d.Attempt)
		}
	})
}

// The batch in work is not disturbed.
func TestRedeliverDuringABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 2 })
		s.put("s", "a b c d e")
		failed := false
		s.drain(handler(func(_ context.Context, e event) (string, error) {
			if e.Records[0] == "c" && !failed {
				failed = true
				if err := s.Redeliver("s", "b"); err != nil {
					t.Error(err)
				}
				return report("d"), nil
			}
			return "", nil
		}))
		if diff := cmp.Diff([]string{"a b", "c d", "d", "b c", "d e"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// Every lane goes back to where the record stands in the shard.
func TestRedeliverLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.ParallelizationFactor = 10 })
		s.put("s", "a1 b1 a2 b2")
		s.drain(succeed)
		if err := s.Redeliver("s", "b1"); err != nil {
			t.Fatal(err)
		}
		s.drain(succeed)
		again := map[string]bool{}
		for _, batch := range s.batches()[2:] {
			again[batch] = true
		}
		if diff := cmp.Diff(map[string]bool{"a2": true, "b1 b2": true}, again); diff != "" {
			t.Errorf("delivered again (-want +got):\n%s", diff)
		}
	})
}

func TestRedeliverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.put("s", "a")
		windows := newStream(t, func(o *shardtest.Options) { o.TumblingWindow = time.Minute })
		windows.put("s", "a")
		windows.drain(stateful(func(event) string { return "{}" }))
		closed := newStream(t)
		closed.put("s", "a")
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			s             *stream
			shard, number string
			want          string
		}{
			{s, "t", "a", `kit: stream "letters" has no shard "t"`},
			{s, "s", "x", `kit: shard s has no record "x"`},
			{s, "s", "a", "kit: record a of s was not delivered yet"},
			{windows, "s", "a", "has tumbling windows"},
			{closed, "s", "a", lambdatest.ErrClosed.Error()},
		} {
			if err := test.s.Redeliver(test.shard, test.number); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Redeliver(%q, %q) is %v, want an error with %q", test.shard, test.number, err, test.want)
			}
		}
		s.drain(succeed)
	})
}

// A lost answer makes the whole batch come again, and uses up no retry.
func TestDuplicateProbability(t *testing.T) {
	lost := func(seed uint64) (batches []string, stats shardtest.Stats) {
		synctest.Test(t, func(t *testing.T) {
			s := newStream(t, func(o *shardtest.Options) {
				o.DuplicateProbability, o.Seed, o.BatchSize, o.MaximumRetryAttempts = .5, seed, 2, 0
			})
			for i := range 20 {
				s.put("s", fmt.Sprint(i))
			}
			s.drain(succeed)
			for _, d := range s.observed() {
				if d.AnswerLost != (len(d.Done) == 0) || d.AnswerLost != (d.CheckpointAfter == d.CheckpointBefore) ||
					d.AnswerLost != (len(d.Returned) == len(d.Records)) {
					t.Errorf("observed %+v, want all records returned if and only if the answer is lost", d)
				}
			}
			batches, stats = s.batches(), s.Stats()
		})
		return batches, stats
	}
	one, stats := lost(1)
	if stats.Repeated < 4 || stats.Done != 20 || stats.Discarded != 0 || stats.Deliveries != 20+stats.Repeated {
		t.Errorf("stats are %v, want some records repeated and 20 done", stats)
	}
	if again, _ := lost(1); !cmp.Equal(one, again) {
		t.Errorf("seed 1 delivers %q at first and then %q", one, again)
	}
	if two, _ := lost(2); cmp.Equal(one, two) {
		t.Error("seeds 1 and 2 lose the same answers")
	}
}

// Neither does the failure after it find a retry used up.
func TestALostAnswerIsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) {
			o.DuplicateProbability, o.Seed, o.MaximumRetryAttempts = .5, seedThatLosesFirst, 1
		})
		s.put("s", "a")
		s.drain(failing(func(n int, _ event) (string, error) {
			if n == 2 {
				return "", errNo
			}
			return "", nil
		}))
		if got := s.Stats(); !s.observed()[0].AnswerLost || got.Errors != 1 || got.Done != 1 || got.Discarded != 0 {
			t.Errorf("stats are %v, want a lost answer, an error and the record done", got)
		}
	})
}
