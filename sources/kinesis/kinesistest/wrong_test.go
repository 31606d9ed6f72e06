package kinesistest_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// loop is a handler written by hand. process has an error for "a3" the first time.
type loop func(e events.KinesisEvent, process func(r events.KinesisEventRecord) error) (failures []string, err error)

// What loops that are written by hand do to the records of one key, when a3 fails once. The right one shows that the
// stream does not find fault with everything.
func TestHandWrittenLoops(t *testing.T) {
	for _, test := range []struct {
		name      string
		loop      loop
		processed string // successfully
	}{
		{
			name: "stops at the first failure and reports its sequence number",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) ([]string, error) {
				for _, r := range e.Records {
					if process(r) != nil {
						return []string{r.Kinesis.SequenceNumber}, nil
					}
				}
				return nil, nil
			},
			processed: "a1 a2 a3 a4 a5",
		},
		{
			name: "reports the eventID: everything comes again",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) ([]string, error) {
				for _, r := range e.Records {
					if process(r) != nil {
						return []string{r.EventID}, nil
					}
				}
				return nil, nil
			},
			processed: "a1 a2 a1 a2 a3 a4 a5",
		},
		{
			name: "goes on after the failure: out of order, and again",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) (failures []string, err error) {
				for _, r := range e.Records {
					if process(r) != nil {
						failures = append(failures, r.Kinesis.SequenceNumber)
					}
				}
				return failures, nil
			},
			processed: "a1 a2 a4 a5 a3 a4 a5",
		},
		{
			name: "reports the last record instead of the first: the failed one is lost",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) ([]string, error) {
				failed := false
				for _, r := range e.Records {
					failed = process(r) != nil || failed
				}
				if failed {
					return []string{e.Records[len(e.Records)-1].Kinesis.SequenceNumber}, nil
				}
				return nil, nil
			},
			processed: "a1 a2 a4 a5 a5",
		},
		{
			name: "ignores the failure: it is lost",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) ([]string, error) {
				for _, r := range e.Records {
					_ = process(r)
				}
				return nil, nil
			},
			processed: "a1 a2 a4 a5",
		},
		{
			name: "returns an error beside its answer: everything comes again",
			loop: func(e events.KinesisEvent, process func(events.KinesisEventRecord) error) ([]string, error) {
				for _, r := range e.Records {
					if err := process(r); err != nil {
						return []string{r.Kinesis.SequenceNumber}, err
					}
				}
				return nil, nil
			},
			processed: "a1 a2 a1 a2 a3 a4 a5",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, func(o *kinesistest.Options) { o.MaximumRetryAttempts = 3 })
				put(t, s, "a1", "a2", "a3", "a4", "a5")
				var processed log[string]
				failed := false
				drain(t, s, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
					var e events.KinesisEvent
					if err := json.Unmarshal(payload, &e); err != nil {
						return nil, err
					}
					failures, err := test.loop(e, func(r events.KinesisEventRecord) error {
						if string(r.Kinesis.Data) == "a3" && !failed {
							failed = true
							return errNo
						}
						processed.add(string(r.Kinesis.Data))
						return nil
					})
					return answer(failures...), err
				}))
				if diff := cmp.Diff(test.processed, strings.Join(processed.all(), " ")); diff != "" {
					t.Errorf("processed (-want +got):\n%s", diff)
				}
				for _, h := range s.Histories() {
					if h.Done.IsZero() {
						t.Errorf("%s is not done according to the stream", h.Record.Kinesis.Data)
					}
				}
			})
		})
	}
}

// One goroutine a record runs the records of a key out of order.
func TestConcurrentLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		put(t, s, "a1", "a2", "a3")
		var processed log[string]
		drain(t, s, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			var e events.KinesisEvent
			if err := json.Unmarshal(payload, &e); err != nil {
				return nil, err
			}
			var wg sync.WaitGroup
			for i, r := range e.Records {
				wg.Go(func() {
					time.Sleep(time.Duration(len(e.Records)-i) * time.Second) // the later ones are faster
					processed.add(string(r.Kinesis.Data))
				})
			}
			wg.Wait()
			return nil, nil
		}))
		if diff := cmp.Diff([]string{"a3", "a2", "a1"}, processed.all()); diff != "" {
			t.Errorf("processed (-want +got):\n%s", diff)
		}
	})
}

// A crash after the last record makes all of them come again. The guard's completions are what is left of the dead
// invocation, and no record runs twice.
func TestGuardRemembersAcrossACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *kinesistest.Options) {
			o.Crash = func(p lambdatest.Point) bool { return p.Moment == lambdatest.AfterInvoke && p.Attempt == 1 }
		})
		guard, err := idempotency.New("clicks", s.Store(idempotency.NewMemoryStore()))
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "a1", "b1", "a2")
		var ran, replayed log[string]
		drain(t, s, inOrder(func(ctx context.Context, r events.KinesisEventRecord) error {
			result, err := idempotency.Do(ctx, guard, r.EventID, func(context.Context) (struct{}, error) {
				ran.add(string(r.Kinesis.Data))
				return struct{}{}, nil
			})
			if result.Replayed {
				replayed.add(string(r.Kinesis.Data))
			}
			return err
		}))
		want := []string{"a1", "b1", "a2"}
		if diff := cmp.Diff([][]string{want, want}, [][]string{ran.all(), replayed.all()}); diff != "" {
			t.Errorf("ran and replayed (-want +got):\n%s", diff)
		}
		if got := s.Stats(); got.Crashes != 1 || got.Done != 3 || got.Deliveries != 6 {
			t.Errorf("stats are %v, want a crash, 6 deliveries and 3 records done", got)
		}
	})
}
