package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// exitingError is an error that ends the goroutine that asks for its text, as a fake does that calls t.FailNow.
type exitingError struct{}

func (exitingError) Error() string { runtime.Goexit(); return "" }

// secretiveError has a text, but panics if it is asked for its cause.
type secretiveError struct{}

func (secretiveError) Error() string { return "no comment" }
func (secretiveError) Unwrap() error { panic("no cause") }

// unsound are errors whose methods panic, and as what they are told.
var unsound = []struct {
	err  error
	want string
}{
	{(*brokenError)(nil), "an error of type *batch_test.brokenError whose methods panic"},
	{exitingError{}, "an error of type batch_test.exitingError whose methods panic"},
	{secretiveError{}, "an error of type batch_test.secretiveError whose methods panic"},
}

// An error whose methods panic is looked at once, when a stage returns it. Its record fails, and is not run again; what
// looks at the error later, and be it the caller, meets one that is sound.
func TestUnsoundErrors(t *testing.T) {
	for _, place := range []string{"run", "admit", "hold", "settle", "admit in groups", "hold in groups", "settle in groups"} {
		place, grouped := strings.CutSuffix(place, " in groups")
		var groups batch.Groups
		if grouped {
			groups = batch.Groups{Admit: 2, Settle: 2}
		}
		for _, e := range unsound {
			t.Run(fmt.Sprintf("%T from %s, groups %v", e.err, place, grouped), func(t *testing.T) {
				var logged trace
				runs, held := 0, false
				report := runStages(t, t.Context(), newRecords("a b"), &stages{
					groups: groups,
					admit: func(_ context.Context, i int) (a batch.Admission) {
						switch {
						case i > 0:
						case place == "admit":
							return batch.Admission{Outcome: batch.Failed, Err: e.err}
						case place == "hold" && held:
							return batch.Admission{Outcome: batch.Failed, Err: e.err}
						case place == "hold":
							held = true
							return batch.Admission{Outcome: batch.InProgress, Err: e.err, RetryAt: time.Now()}
						}
						return a
					},
					run: func(_ context.Context, i int) error {
						if i > 0 || place != "run" {
							return nil
						}
						runs++
						return e.err
					},
					settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
						if i == 0 && place == "settle" {
							return batch.Settlement{Outcome: batch.Failed, Err: e.err}
						}
						return s
					},
				}, concurrency(1), logTo(&logged))
				if diff := cmp.Diff([]string{"a failed: " + e.want, "b succeeded"}, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if err := report.Results[0].Err; errors.Is(err, errBoom) {
					t.Errorf("error %v is errBoom, want another", err)
				}
				if runs > 1 {
					t.Errorf("handler ran %d times, want once", runs)
				}
				want := fmt.Sprintf(`level=ERROR msg="record failed" record=a outcome=failed error=%q`, e.want)
				if lines := logged.list(); len(lines) != 2 || lines[0] != want {
					t.Errorf("logged %q, want %q first", lines, want)
				}
			})
		}
	}
}

// What Permanent and RetryAfter say of an error holds even if its methods panic.
func TestUnsoundErrorsKeepTheirMark(t *testing.T) {
	for _, e := range unsound {
		for _, test := range []struct {
			name  string
			err   error
			want  string
			delay time.Duration
		}{
			{"permanent", batch.Permanent(e.err), "dead-lettered", 0},
			{"later", batch.RetryAfter(time.Minute, e.err), "failed", time.Minute},
			{"both", batch.Permanent(batch.RetryAfter(time.Minute, e.err)), "dead-lettered", time.Minute},
			{"both, the other way round", batch.RetryAfter(time.Minute, batch.Permanent(e.err)), "dead-lettered", time.Minute},
		} {
			t.Run(fmt.Sprintf("%s %T", test.name, e.err), func(t *testing.T) {
				sunk := 0
				report := process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return test.err },
					func(o *batch.Options) {
						o.DeadLetter = func(context.Context, *batch.Record, error) error { sunk++; return nil }
					})
				if diff := cmp.Diff([]string{"a " + test.want + ": " + e.want}, summary(report)); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if want := report.Count(batch.DeadLettered); sunk != want {
					t.Errorf("sink got %d records, want %d", sunk, want)
				}
				if delay, _ := batch.RetryDelay(report.Results[0].Err); delay != test.delay {
					t.Errorf("delay = %v, want %v", delay, test.delay)
				}
			})
		}
	}
}

// A handler that returns a nil pointer of a type of its own as an error fails its record. It is logged, settled, and no
// other record suffers.
func TestNilPointerAsError(t *testing.T) {
	for _, sink := range []bool{false, true} {
		t.Run(fmt.Sprint("sink ", sink), func(t *testing.T) {
			var logged, settled, told trace
			report := runStages(t, t.Context(), newRecords("A.1 A.2 b"), &stages{
				run: func(_ context.Context, i int) error {
					if i == 0 {
						return (*brokenError)(nil)
					}
					return nil
				},
				settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
					settled.add("%d %v", i, s.Outcome)
					return s
				},
			}, concurrency(1), logTo(&logged), func(o *batch.Options) {
				o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) { told.add("%s %v", r.Record.ID, r.Outcome) })}
				if sink {
					o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
				}
			})
			if got := report.Results[0].Outcome; got != batch.Failed {
				t.Errorf("outcome = %v, want failed", got)
			}
			if diff := cmp.Diff([]string{"0 failed", "2 succeeded"}, settled.list()); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"A.1 failed", "A.2 skipped", "b succeeded"}, told.list()); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
			if lines := logged.list(); len(lines) != 3 || !strings.HasPrefix(lines[0], `level=ERROR msg="record failed" record=A.1 outcome=failed error=`) {
				t.Errorf("logged %q, want the failed record first", lines)
			}
		})
	}
}
