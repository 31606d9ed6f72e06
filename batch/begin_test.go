package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
)

// What Begin does may take so long that the handler must not start: its claim may be another worker's by then.
func TestBeginTakesTooLong(t *testing.T) {
	for _, test := range []struct {
		name          string
		begin, claim  time.Duration // how long Begin takes, and for how long the claim is good, 0: for ever
		took          time.Duration
		wantUnstarted bool
	}{
		{"in time", 5 * time.Second, 6 * time.Second, 5 * time.Second, false},
		{"longer than its claim", 5 * time.Second, 4 * time.Second, 5 * time.Second, true},
		{"until after the cut", 51 * time.Second, 0, 51 * time.Second, true},
		{"until after the answer", 59 * time.Second, 0, 55 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs, settled := 0, batch.Outcome(0)
				begin := time.Now()
				report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
					admit: func(context.Context, int) (a batch.Admission) {
						if test.claim > 0 {
							a.Deadline = time.Now().Add(test.claim)
						}
						return a
					},
					begin: func(int) error { time.Sleep(test.begin); return nil },
					run:   func(context.Context, int) error { runs++; return nil },
					settle: func(_ context.Context, _ int, s batch.Settlement) batch.Settlement {
						settled = s.Outcome
						return s
					},
				}, reserve(10*time.Second))
				if took := time.Since(begin); took != test.took {
					t.Errorf("answer after %v, want %v", took, test.took)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				want, wantRuns := batch.Succeeded, 1
				if test.wantUnstarted {
					want, wantRuns = batch.Skipped, 0
				}
				if runs != wantRuns || settled != want || report.Results[0].Outcome != want {
					t.Errorf("%d runs, settled as %v, reported as %v; want %d and %v", runs, settled, report.Results[0].Outcome, wantRuns, want)
				}
			})
		})
	}
}

// An error of Begin is the record's, whatever middleware makes of records, and goes to the sink.
func TestBeginFails(t *testing.T) {
	for _, attempt := range []int{1, 2} {
		var sunk error
		report := runStages(t, t.Context(), newRecords("a"), &stages{
			admit: func(context.Context, int) batch.Admission { return batch.Admission{Attempt: attempt} },
			begin: func(int) error { return errBoom },
			run:   func(context.Context, int) error { t.Error("it ran"); return nil },
		}, func(o *batch.Options) {
			o.MaxAttempts = 2
			o.DeadLetter = func(_ context.Context, _ *batch.Record, err error) error { sunk = err; return nil }
			o.Middleware = []batch.Middleware{func(batch.Handler) batch.Handler {
				return func(context.Context, *batch.Record) error { return nil }
			}}
		})
		want := batch.Failed
		if attempt == 2 {
			want = batch.DeadLettered
		}
		if got := report.Results[0]; got.Outcome != want || (want == batch.Failed && !errors.Is(got.Err, errBoom)) {
			t.Errorf("attempt %d: %v, %v; want %v", attempt, got.Outcome, got.Err, want)
		}
		if (attempt == 2) != errors.Is(sunk, errBoom) {
			t.Errorf("attempt %d: the sink got %v", attempt, sunk)
		}
	}
}
