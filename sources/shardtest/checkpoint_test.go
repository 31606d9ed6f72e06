package shardtest_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

// Each answer is given to the batch "a b c d e" once, and what comes again succeeds.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		again        string // what the second invocation gets, "" if there is none
		err          string
	}{
		{name: "no bytes", answer: ""},
		{name: "null", answer: "null"},
		{name: "empty object", answer: "{}"},
		{name: "empty list", answer: report()},
		{name: "null list", answer: `{"batchItemFailures":null}`},
		{name: "misspelt list", answer: `{"batchItemsFailures":[{"itemIdentifier":"a"}]}`},
		{name: "list of another case", answer: `{"BatchItemFailures":[{"itemIdentifier":"a"}]}`},
		{name: "first", answer: report("a"), again: "a b c d e"},
		{name: "middle", answer: report("c"), again: "c d e"},
		{name: "last", answer: report("e"), again: "e"},
		{name: "several", answer: report("b", "d"), again: "b c d e"},
		{name: "several in another order", answer: report("e", "d", "c"), again: "c d e"},
		{name: "one twice", answer: report("d", "d"), again: "d e"},
		{name: "unknown", answer: report("d", "x"), again: "a b c d e", err: `names "x", which is not in the batch`},
		{name: "no JSON", answer: `{`, again: "a b c d e", err: "answer is not JSON"},
		{name: "empty identifier", answer: report("d", ""), again: "a b c d e", err: "non-empty itemIdentifier"},
		{name: "null identifier", answer: `{"batchItemFailures":[{"itemIdentifier":null}]}`, again: "a b c d e",
			err: "non-empty itemIdentifier"},
		{name: "misspelt identifier", answer: `{"batchItemFailures":[{"sequenceNumber":"d"}]}`, again: "a b c d e",
			err: "non-empty itemIdentifier"},
		{name: "no list", answer: `{"batchItemFailures":{}}`, again: "a b c d e", err: "must be a list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t)
				s.put("s", "a b c d e")
				first := true
				s.drain(handler(func(context.Context, event) (string, error) {
					if !first {
						return "", nil
					}
					first = false
					return test.answer, nil
				}))
				want := []string{"a b c d e"}
				if test.again != "" {
					want = append(want, test.again)
				}
				if diff := cmp.Diff(want, s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				d := s.observed()[0]
				if (d.Err == nil) != (test.err == "") || d.Err != nil && !strings.Contains(d.Err.Error(), test.err) {
					t.Errorf("error is %v, want it to contain %q", d.Err, test.err)
				}
				again := strings.Fields(test.again)
				if diff := cmp.Diff(again, d.Returned, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("returned (-want +got):\n%s", diff)
				}
				done := []string{"a", "b", "c", "d", "e"}[:5-len(again)]
				if diff := cmp.Diff(done, d.Done, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("done (-want +got):\n%s", diff)
				}
				if want := strings.Join(done[max(0, len(done)-1):], ""); d.CheckpointBefore != "" || d.CheckpointAfter != want {
					t.Errorf("checkpoint was %q and is %q, want none and %q", d.CheckpointBefore, d.CheckpointAfter, want)
				}
				if got := s.Stats(); got.Done != 5 || got.Waiting != 0 || got.Discarded != 0 {
					t.Errorf("stats are %v, want 5 records done", got)
				}
			})
		})
	}
}

// Without the flag only an error makes records come again.
func TestWithoutReportBatchItemFailures(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		err    error
		want   []string
	}{
		"all reported": {answer: report("a", "b"), want: []string{"a b"}},
		"no JSON":      {answer: "{", want: []string{"a b"}},
		"over 6 MB":    {answer: strings.Repeat("x", lambdatest.MaxPayload+1), want: []string{"a b", "a b"}},
		"error":        {err: errNo, want: []string{"a b", "a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, func(o *shardtest.Options) { o.WithoutReportBatchItemFailures = true })
				s.put("s", "a b")
				first := true
				s.drain(handler(func(context.Context, event) (string, error) {
					if !first {
						return "", nil
					}
					first = false
					return test.answer, test.err
				}))
				if diff := cmp.Diff(test.want, s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// However an invocation fails, all of its records come again, and its answer counts for nothing.
func TestEndings(t *testing.T) {
	for _, test := range []struct {
		ending lambdatest.Ending
		fail   func(ctx context.Context)
		err    error
		stats  shardtest.Stats
	}{
		{lambdatest.FunctionError, func(context.Context) {}, errNo, shardtest.Stats{Errors: 1}},
		{lambdatest.Panicked, func(context.Context) { panic("boom") }, nil, shardtest.Stats{Errors: 1}},
		{lambdatest.Panicked, func(context.Context) { runtime.Goexit() }, nil, shardtest.Stats{Errors: 1}},
		{lambdatest.Crashed, lambdatest.Crash, nil, shardtest.Stats{Crashes: 1}},
		{lambdatest.TimedOut, func(context.Context) { time.Sleep(31 * time.Second) }, nil, shardtest.Stats{Timeouts: 1}},
	} {
		t.Run(test.ending.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t)
				s.put("s", "a b c")
				var calls atomic.Int32 // the handler that times out runs on beside the next
				s.drain(handler(func(ctx context.Context, e event) (string, error) {
					if calls.Add(1) > 1 {
						return "", nil
					}
					test.fail(ctx)
					return report("c"), test.err
				}))
				if diff := cmp.Diff([]string{"a b c", "a b c"}, s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				d := s.observed()[0]
				if d.Ending != test.ending || d.Response != nil || d.CheckpointAfter != "" || len(d.Returned) != 3 {
					t.Errorf("observed %+v, want the ending %v, no response, no checkpoint and all returned", d, test.ending)
				}
				got := s.Stats()
				want := test.stats
				want.Put, want.Deliveries, want.Invocations, want.Done = 3, 6, 2, 3
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				time.Sleep(time.Minute) // the handler that has timed out returns
			})
		})
	}
}

func TestDeliveriesTellTheirCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 2 })
		s.put("s", "a b c d")
		fails := map[string]int{"b": 2}
		s.drain(inOrder(func(name string) error {
			if fails[name]--; fails[name] >= 0 {
				return errNo
			}
			return nil
		}))
		type row struct {
			Records, Before, After string
			Attempt, Invocation    int
		}
		var got []row
		for _, d := range s.observed() {
			got = append(got, row{strings.Join(d.Records, " "), d.CheckpointBefore, d.CheckpointAfter, d.Attempt, d.Invocation})
		}
		want := []row{{"a b", "", "a", 1, 1}, {"b", "a", "a", 2, 2}, {"b", "a", "b", 3, 3}, {"c d", "b", "d", 1, 4}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
	})
}

func TestHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRetryAttempts = 0 })
		start := time.Now()
		at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
		s.put("s", "a")
		time.Sleep(time.Second)
		s.put("s", "b")
		s.drain(poison("b"))
		time.Sleep(time.Second)
		s.put("s", "c")
		want := []shardtest.History[string]{
			{Shard: "s", SequenceNumber: "a", Record: "a", Put: at(0), Delivered: []time.Time{at(1)}, Done: at(1)},
			{Shard: "s", SequenceNumber: "b", Record: "b", Put: at(1), Delivered: []time.Time{at(1)}, Discarded: at(1)},
			{Shard: "s", SequenceNumber: "c", Record: "c", Put: at(2), Waiting: true},
		}
		if diff := cmp.Diff(want, s.Histories()); diff != "" {
			t.Errorf("histories (-want +got):\n%s", diff)
		}
	})
}

// While a batch is with the handler it is in flight, and waiting according to its history.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 2 })
		s.put("s", "a b c")
		ended := make(chan error)
		go func() {
			ended <- s.Drain(t.Context(), handler(func(context.Context, event) (string, error) {
				time.Sleep(time.Second)
				return "", nil
			}))
		}()
		synctest.Wait()
		want := shardtest.Stats{Put: 3, Deliveries: 2, Invocations: 1, InFlight: 2, Waiting: 1}
		if diff := cmp.Diff(want, s.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		for _, h := range s.Histories() {
			if !h.Waiting {
				t.Errorf("record %s is not waiting", h.Record)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
