package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

var errSink = errors.New("queue is gone")

func TestDeadLetter(t *testing.T) {
	type sink = func(ctx context.Context, r *batch.Record, err error) error
	takes := func(context.Context, *batch.Record, error) error { return nil }
	refuses := func(context.Context, *batch.Record, error) error { return errSink }
	for _, test := range []struct {
		name        string
		err         error
		maxAttempts int
		attempt     int
		counted     int // by the store
		sink        sink
		asked       bool
		want        string
	}{
		{"succeeds", nil, 3, 3, 0, takes, false, "succeeded"},
		{"permanent", batch.Permanent(errBoom), 0, 0, 0, takes, true, "dead-lettered: boom"},
		{"permanent, before the last attempt", batch.Permanent(errBoom), 3, 1, 0, takes, true, "dead-lettered: boom"},
		{"permanent, no sink", batch.Permanent(errBoom), 0, 0, 0, nil, false, "failed: boom"},
		{"permanent, the sink fails", batch.Permanent(errBoom), 0, 0, 0, refuses, true, "failed: boom; batch: dead-letter sink: queue is gone"},
		{"before the last attempt", errBoom, 3, 2, 0, takes, false, "failed: boom"},
		{"last attempt", errBoom, 3, 3, 0, takes, true, "dead-lettered: boom"},
		{"behind the last attempt", errBoom, 3, 4, 0, takes, true, "dead-lettered: boom"},
		{"last attempt, no sink", errBoom, 3, 3, 0, nil, false, "failed: boom"},
		{"last attempt, the sink fails", errBoom, 3, 3, 0, refuses, true, "failed: boom; batch: dead-letter sink: queue is gone"},
		{"only attempt", errBoom, 1, 1, 0, takes, true, "dead-lettered: boom"},
		{"unknown attempt", errBoom, 1, 0, 0, takes, false, "failed: boom"},
		{"no limit", errBoom, 0, 1000, 0, takes, false, "failed: boom"},
		{"store counted more", errBoom, 3, 1, 3, takes, true, "dead-lettered: boom"},
		{"store counted fewer", errBoom, 3, 3, 1, takes, false, "failed: boom"},
		{"to be tried later", batch.RetryAfter(time.Hour, errBoom), 3, 3, 0, takes, true, "dead-lettered: boom"},
		{"the sink panics", batch.Permanent(errBoom), 0, 0, 0, func(context.Context, *batch.Record, error) error { panic(errSink) }, true,
			"failed: boom; batch: dead-letter sink: batch: panic: queue is gone"},
		{"the sink exits", batch.Permanent(errBoom), 0, 0, 0, func(context.Context, *batch.Record, error) error { return exit() }, true,
			"failed: boom; batch: dead-letter sink: batch: panic(nil) or runtime.Goexit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls trace
			records := newRecords("A.1 A.2")
			for i := range records {
				records[i].Attempt = test.attempt
			}
			report := runStages(t, t.Context(), records, &stages{
				admit: func(_ context.Context, i int) batch.Admission { return batch.Admission{Attempt: test.counted} },
				run: func(_ context.Context, i int) error {
					if i == 0 {
						return test.err
					}
					return nil
				},
				settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
					if i == 0 {
						calls.add("settle %v", s.Outcome)
					}
					return s
				},
			}, func(o *batch.Options) {
				o.MaxAttempts = test.maxAttempts
				if test.sink != nil {
					o.DeadLetter = func(ctx context.Context, r *batch.Record, err error) error {
						calls.add("sink %s", r.ID)
						if err != test.err {
							t.Errorf("sink got %v, want the handler's error", err)
						}
						return test.sink(ctx, r, err)
					}
				}
			})
			first := report.Results[0]
			if got := summarize(&first); got != "A.1 "+test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			want := []string{"settle " + first.Outcome.String()}
			if test.asked {
				want = append([]string{"sink A.1"}, want...) // inside the claim: before it is settled
			}
			if diff := cmp.Diff(want, calls.list()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if test.err != nil && !errors.Is(first.Err, errBoom) {
				t.Errorf("error %v does not match the handler's", first.Err)
			}
			if done, goesOn := first.Outcome.Done(), report.Results[1].Outcome == batch.Succeeded; done != goesOn {
				t.Errorf("lane goes on: %v, want %v", goesOn, done)
			}
			wantAttempt := test.attempt
			if test.counted > 0 {
				wantAttempt = test.counted
			}
			if got := first.Record.Attempt; got != wantAttempt {
				t.Errorf("attempt = %d, want %d", got, wantAttempt)
			}
		})
	}
}

// What is refused before the handler goes to the sink only if it is final, whatever the attempt: that a store does not
// answer is not the record's fault.
func TestDeadLetterOfRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare error
		admit   batch.Admission
		want    string
	}{
		{"cannot be decoded, for good", batch.Permanent(errBoom), batch.Admission{}, "a dead-lettered: boom"},
		{"cannot be decoded, at the last attempt", errBoom, batch.Admission{}, "a dead-lettered: boom"},
		{"refused for good", nil, batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(errBoom)}, "a dead-lettered: boom"},
		{"refused", nil, batch.Admission{Outcome: batch.Failed, Err: errBoom}, "a failed: boom"},
		{"in progress, with a final error", nil, batch.Admission{Outcome: batch.InProgress, Err: batch.Permanent(errBoom)}, "a in progress: boom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			records := newRecords("a")
			records[0].Attempt = 9
			report := runStages(t, t.Context(), records, &stages{
				prepare: func(context.Context, int) (string, error) { return "", test.prepare },
				admit:   func(context.Context, int) batch.Admission { return test.admit },
			}, func(o *batch.Options) {
				o.MaxAttempts = 9
				o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
			})
			if diff := cmp.Diff([]string{test.want}, summary(report)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// A record that panics for the last time is given up like any other.
func TestDeadLetterAfterPanic(t *testing.T) {
	var got error
	records := newRecords("a")
	records[0].Attempt = 5
	report := process(t, t.Context(), records, func(context.Context, *batch.Record) error { panic("poison") }, func(o *batch.Options) {
		o.MaxAttempts = 5
		o.DeadLetter = func(_ context.Context, _ *batch.Record, err error) error { got = err; return nil }
	})
	if diff := cmp.Diff([]string{"a dead-lettered: batch: panic: poison"}, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if p, ok := errors.AsType[*batch.PanicError](got); !ok || p.Value != "poison" {
		t.Errorf("sink got %v, want the panic", got)
	}
}

// The sink can work in the reserve: its context lives until the batch's deadline.
func TestDeadLetterAtTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := within(t, time.Minute)
		end, _ := ctx.Deadline()
		report := process(t, ctx, newRecords("a"), func(ctx context.Context, _ *batch.Record) error {
			<-ctx.Done()
			return batch.Permanent(errBoom)
		}, func(o *batch.Options) {
			o.DeadLetter = func(ctx context.Context, _ *batch.Record, _ error) error {
				if got, _ := ctx.Deadline(); !got.Equal(end) {
					t.Errorf("sink has until %v, want %v", got, end)
				}
				return ctx.Err()
			}
		})
		if diff := cmp.Diff([]string{"a dead-lettered: boom"}, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

// One sink call for twins, whose shared error it is.
func TestDeadLetterOfTwins(t *testing.T) {
	var sunk trace
	report := process(t, t.Context(), newRecords("a a b"), func(_ context.Context, r *batch.Record) error {
		return batch.Permanent(errors.New("bad " + r.ID))
	}, func(o *batch.Options) {
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error { sunk.add("%s", r.ID); return nil }
	}, concurrency(1))
	if diff := cmp.Diff([]string{"a dead-lettered: bad a", "a dead-lettered: bad a", "b dead-lettered: bad b"}, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, sunk.list()); diff != "" {
		t.Errorf("sunk (-want +got):\n%s", diff)
	}
}

// The sink's context has the values of the handler's, but not its end: that of the claim or of the batch is its own,
// whichever is first, also where the handler has used up its timeout.
func TestDeadLetterContext(t *testing.T) {
	for _, test := range []struct {
		name     string
		deadline time.Duration // of the batch, 0: none
		end      time.Duration // of the claim, 0: none
		want     time.Duration // left to the sink, 0: no end
	}{
		{"claim ends first", time.Minute, 20 * time.Second, 15 * time.Second},
		{"batch ends first", time.Minute, 2 * time.Minute, 55 * time.Second},
		{"no claim", time.Minute, 0, 55 * time.Second},
		{"claim, no deadline", 0, 20 * time.Second, 15 * time.Second},
		{"neither", 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					ctx = within(t, test.deadline)
				}
				asked := 0
				report := runStages(t, ctx, newRecords("a"), &stages{
					admit: func(ctx context.Context, _ int) batch.Admission {
						a := batch.Admission{Context: context.WithValue(ctx, middlewareKey("claim"), "of a")}
						if test.end > 0 {
							a.End = time.Now().Add(test.end)
						}
						return a
					},
					run: func(ctx context.Context, _ int) error {
						<-ctx.Done()
						return batch.Permanent(errBoom)
					},
				}, func(o *batch.Options) {
					o.Timeout = 5 * time.Second
					o.DeadLetter = func(ctx context.Context, _ *batch.Record, _ error) error {
						asked++
						if err, value := ctx.Err(), ctx.Value(middlewareKey("claim")); err != nil || value != "of a" {
							t.Errorf("context: error is %v, value %v, want none and the handler's", err, value)
						}
						end, ok := ctx.Deadline()
						if left := time.Until(end); ok != (test.want > 0) || ok && left != test.want {
							t.Errorf("sink has %v (%v), want %v", left, ok, test.want)
						}
						return nil
					}
				})
				if diff := cmp.Diff([]string{"a dead-lettered: boom"}, summary(report)); diff != "" || asked != 1 {
					t.Errorf("sink was asked %d times, want once; results (-want +got):\n%s", asked, diff)
				}
			})
		})
	}
}
