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
		if got := s.Stats(); got.Repeated != 0 || got.Waiting != 4 {
			t.Errorf("stats are %v, want 4 records waiting", got)
		}
		s.put("s", "f")
		s.drain(succeed)
		if got := s.Stats(); got.Repeated != 4 {
			t.Errorf("stats are %v, want 4 records repeated", got)
		}
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
		var checkpoints []string
		for _, d := range s.observed() {
			checkpoints = append(checkpoints, d.CheckpointBefore+">"+d.CheckpointAfter)
		}
		if diff := cmp.Diff([]string{">b", "b>c", "c>d", "a>c", "c>e"}, checkpoints); diff != "" {
			t.Errorf("checkpoints (-want +got):\n%s", diff)
		}
		if got := s.Stats(); got.Repeated != 3 {
			t.Errorf("stats are %v, want b, c and d repeated", got)
		}
	})
}

// What has failed, or was discarded, is not repeated when it comes again, nor is a retry of what is.
func TestRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize, o.MaximumRetryAttempts = 2, 1 })
		s.put("s", "a b c")
		s.drain(failing(func(n int, _ event) (string, error) {
			switch n {
			case 2: // of b, which is discarded after it
				if err := s.Redeliver("s", "a"); err != nil {
					t.Error(err)
				}
				return report("b"), nil
			case 1:
				return report("b"), nil
			case 3: // of a and b, for the second time
				return "", errNo
			}
			return "", nil
		}))
		if diff := cmp.Diff([]string{"a b", "b", "a b", "a b", "c"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if got := s.Stats(); got.Repeated != 1 {
			t.Errorf("stats are %v, want a repeated", got)
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

// An answer that reports failures is lost as others are: no checkpoint moves, and no retry is used up.
func TestAPartialAnswerIsLost(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s := newStream(t, func(o *shardtest.Options) {
				o.DuplicateProbability, o.Seed, o.MaximumRetryAttempts = .5, seed+1, 1
			})
			s.put("s", "a b c")
			failed := false
			s.drain(failing(func(_ int, e event) (string, error) {
				if len(e.Records) == 3 {
					return report("b"), nil
				}
				failed = true
				return "", nil
			}))
			first := s.observed()[0]
			if first.AnswerLost {
				lost++
			}
			if first.AnswerLost != (first.CheckpointAfter == "") || first.AnswerLost != (len(first.Returned) == 3) {
				t.Errorf("observed %+v, want the checkpoint a unless the answer is lost", first)
			}
			repeated := 0
			for _, d := range s.observed() {
				switch {
				case d.AnswerLost && len(d.Records) == 3:
					repeated++ // a
				case d.AnswerLost:
					repeated += len(d.Records)
				}
			}
			if got := s.Stats(); got.Repeated != repeated || got.Done != 3 || got.Discarded != 0 || !failed {
				t.Errorf("stats are %v, want 3 records done and %d repeated", got, repeated)
			}
		})
	}
	if lost < 5 || lost > 15 {
		t.Errorf("%d of 20 partial answers are lost, want about half", lost)
	}
}

// Which answer is lost is a choice of its own for each final invocation that has no records: for those of one window, which
// comes to an early end several times, and for those of several.
func TestLostEndsOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(time.Minute), func(o *shardtest.Options) {
			o.DuplicateProbability, o.Seed, o.BatchSize = .5, 1, 1
		})
		s.put("s", "a b c")
		go func() {
			for i := range 20 {
				time.Sleep(time.Minute)
				s.put("s", fmt.Sprint(i))
			}
		}()
		large := `{"n":"` + strings.Repeat("x", 1<<20) + `"}`
		s.run(time.Hour, stateful(func(e event) string {
			if len(e.Records) > 0 && e.Records[0] >= "a" {
				return large
			}
			return "{}"
		}))
		early, late := "", ""
		for _, d := range s.observed() {
			lost := "."
			if d.AnswerLost {
				lost = "L"
			}
			switch {
			case len(d.Records) > 0 || d.Attempt > 1:
			case d.Window.TerminatedEarly:
				early += lost
			default:
				late += lost
			}
		}
		if len(early) != 3 || len(late) != 20 {
			t.Fatalf("there were %d early ends and %d others, want 3 and 20", len(early), len(late))
		}
		for _, ends := range []string{early, late} {
			if !strings.Contains(ends, "L") || !strings.Contains(ends, ".") {
				t.Errorf("answers to final invocations are %s, want some lost (L) and some not", ends)
			}
		}
	})
}
