package shardtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestDelaysGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRetryAttempts = 9 })
		start := time.Now()
		s.put("s", "a")
		s.drain(failWith("a"))
		// 0.1, 0.2, 0.4 and so on, and 10 from then on.
		want := []string{"0 a", "0.1 a", "0.3 a", "0.7 a", "1.5 a", "3.1 a", "6.3 a", "12.7 a", "22.7 a", "32.7 a"}
		if diff := cmp.Diff(want, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// What has become smaller comes at once, and waits from the beginning if it fails again.
func TestProgressEndsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		start := time.Now()
		s.put("s", "a b c")
		answers := []string{report("a"), report("a"), report("b"), report("b"), report("c"), report("c"), ""}
		s.drain(handler(func(context.Context, event) (string, error) {
			next := answers[0]
			answers = answers[1:]
			return next, nil
		}))
		want := []string{"0 a b c", "0.1 a b c", "0.3 a b c", "0.3 b c", "0.4 b c", "0.4 c", "0.5 c"}
		if diff := cmp.Diff(want, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// The batch "a b c d e" with a poison record c, and f behind it.
func TestRetriesAndBisect(t *testing.T) {
	for _, test := range []struct {
		name      string
		option    func(*shardtest.Options)
		whole     bool // the function returns an error; otherwise it reports c
		want      string
		discarded string
		attempts  int
	}{
		{name: "partial, no retries", want: "a b c d e|f", discarded: "c d e", attempts: 1},
		{name: "partial, one retry", option: func(o *shardtest.Options) { o.MaximumRetryAttempts = 1 },
			want: "a b c d e|c d e|f", discarded: "c d e", attempts: 2},
		{name: "partial, three retries", option: func(o *shardtest.Options) { o.MaximumRetryAttempts = 3 },
			want: "a b c d e|c d e|c d e|c d e|f", discarded: "c d e", attempts: 4},
		{name: "error, no retries", whole: true, want: "a b c d e|f", discarded: "a b c d e", attempts: 1},
		{name: "error, two retries", whole: true, option: func(o *shardtest.Options) { o.MaximumRetryAttempts = 2 },
			want: "a b c d e|a b c d e|a b c d e|f", discarded: "a b c d e", attempts: 3},
		// The progress of the first delivery makes its failure the first of what is left. It makes no difference until
		// there was a failure before it: see TestResetRetriesOnProgress.
		{name: "partial, one retry, reset", option: func(o *shardtest.Options) {
			o.MaximumRetryAttempts, o.ResetRetriesOnProgress = 1, true
		}, want: "a b c d e|c d e|f", discarded: "c d e", attempts: 2},
		// The split at c uses up no retry, the first delivery of the rest is no retry either.
		{name: "partial, bisect, no retries", option: func(o *shardtest.Options) { o.BisectOnError = true },
			want: "a b c d e|c d e|f", discarded: "c d e", attempts: 2},
		{name: "partial, bisect, one retry", option: func(o *shardtest.Options) {
			o.BisectOnError, o.MaximumRetryAttempts = true, 1
		}, want: "a b c d e|c d e|c d e|f", discarded: "c d e", attempts: 3},
		// Halves in order until c is alone.
		{name: "error, bisect, no retries", whole: true, option: func(o *shardtest.Options) { o.BisectOnError = true },
			want: "a b c d e|a b c|a b|c|d e|f", discarded: "c", attempts: 3},
		{name: "error, bisect, two retries", whole: true, option: func(o *shardtest.Options) {
			o.BisectOnError, o.MaximumRetryAttempts = true, 2
		}, want: "a b c d e|a b c|a b|c|c|c|d e|f", discarded: "c", attempts: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, func(o *shardtest.Options) {
					o.BatchSize, o.MaximumRetryAttempts = 5, 0
					if test.option != nil {
						test.option(o)
					}
				})
				s.put("s", "a b c d e f")
				if test.whole {
					s.drain(failWith("c"))
				} else {
					s.drain(poison("c"))
				}
				if diff := cmp.Diff(strings.Split(test.want, "|"), s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				records := strings.Fields(test.discarded)
				discarded := s.Discarded()
				if len(discarded) != 1 {
					t.Fatalf("discarded %+v, want one batch", discarded)
				}
				want := shardtest.Discarded{
					Shard: "s", StartSequenceNumber: records[0], EndSequenceNumber: records[len(records)-1], Count: len(records),
					SequenceNumbers: records, Reason: shardtest.RetryAttemptsExhausted, Attempts: test.attempts, At: discarded[0].At,
				}
				if diff := cmp.Diff(want, discarded[0]); diff != "" {
					t.Errorf("discarded (-want +got):\n%s", diff)
				}
				if got := s.Stats(); got.Done+got.Discarded != 6 || got.Discarded != len(records) {
					t.Errorf("stats are %v, want %d records discarded and the others done", got, len(records))
				}
			})
		})
	}
}

// Two retries. The batch fails as a whole, then at c, then at c again: the second failure is the second or the first of
// what is left.
func TestResetRetriesOnProgress(t *testing.T) {
	for reset, want := range map[bool]string{
		false: "a b c|a b c|c",
		true:  "a b c|a b c|c|c",
	} {
		t.Run(fmt.Sprint(reset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, func(o *shardtest.Options) {
					o.MaximumRetryAttempts, o.ResetRetriesOnProgress = 2, reset
				})
				s.put("s", "a b c")
				first := true
				s.drain(handler(func(context.Context, event) (string, error) {
					if first {
						first = false
						return "", errNo
					}
					return report("c"), nil
				}))
				if diff := cmp.Diff(strings.Split(want, "|"), s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A batch whose first record is reported cannot be split there. It is not split in half either, and uses up a retry.
func TestBisectAtTheFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BisectOnError, o.MaximumRetryAttempts = true, 1 })
		s.put("s", "a b c")
		s.drain(poison("a"))
		if diff := cmp.Diff([]string{"a b c", "a b c"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A bad answer is split like an error.
func TestBisectOnABadAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BisectOnError = true })
		s.put("s", "a b c d")
		s.drain(handler(func(_ context.Context, e event) (string, error) {
			if len(e.Records) == 4 {
				return report("x"), nil
			}
			return "", nil
		}))
		if diff := cmp.Diff([]string{"a b c d", "a b", "c d"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestRecordAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRecordAge, o.BatchSize = time.Minute, 3 })
		start := time.Now()
		s.put("s", "a b")
		time.Sleep(30 * time.Second)
		s.put("s", "c")
		time.Sleep(30 * time.Second)
		s.put("s", "d")
		// a and b are 60 s old, which is not too old.
		s.drain(inOrder(func(name string) error {
			if name != "d" && time.Since(start) < 105*time.Second {
				return errNo
			}
			return nil
		}))
		// The delays are 0.1 to 6.4 s, and 10 s from 72.7 s on. After a minute a and b are gone, and then c.
		batches := s.batches()
		if first, last := batches[0], batches[len(batches)-1]; first != "a b c" || last != "d" {
			t.Errorf("delivered %q at first and %q at last, want \"a b c\" and \"d\"", first, last)
		}
		type row struct {
			Records  []string
			At       time.Duration
			Reason   shardtest.Reason
			Attempts int
		}
		var got []row
		for _, d := range s.Discarded() {
			got = append(got, row{d.SequenceNumbers, d.At.Sub(start), d.Reason, d.Attempts})
		}
		want := []row{
			{[]string{"a", "b"}, 60*time.Second + 100*time.Millisecond, shardtest.RecordAgeExceeded, 1},
			{[]string{"c"}, 92*time.Second + 700*time.Millisecond, shardtest.RecordAgeExceeded, 9},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("discarded (-want +got):\n%s", diff)
		}
	})
}

// The checkpoint passes what is discarded.
func TestCheckpointOfDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRetryAttempts, o.BatchSize = 0, 1 })
		s.put("s", "a b")
		s.drain(poison("a"))
		first, second := s.observed()[0], s.observed()[1]
		if first.CheckpointAfter != "a" || second.CheckpointBefore != "a" || !cmp.Equal(first.Discarded, []string{"a"}) {
			t.Errorf("checkpoint is %q after %q were discarded and %q then, want a", first.CheckpointAfter, first.Discarded,
				second.CheckpointBefore)
		}
	})
}

func TestReasonNames(t *testing.T) {
	var got []string
	for r := range shardtest.PayloadTooLarge + 2 {
		got = append(got, r.String())
	}
	want := []string{"Reason(0)", "RetryAttemptsExhausted", "RecordAgeExceeded", "PayloadTooLarge", "Reason(4)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
