package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/examples/internal/brokenstore"
	"github.com/oncekit/oncekit/idempotency"
)

func config(seed uint64, reader Reader) Config {
	return Config{Seed: seed, Clicks: 400, Reader: reader, Store: idempotency.NewMemoryStore()}
}

func run(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	letGo()
	return r
}

// letGo gives the goroutines of dead invocations, which the end of a run lets go, the time that their last tries to
// reach the store take. In a bubble that is none.
func letGo() { time.Sleep(5 * time.Second) }

// TestRun is the promise: whatever happens, nothing is lost or out of order, and what is repeated has a reason. Only the
// poison is given up.
func TestRun(t *testing.T) {
	repeats := 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, config(seed, Oncekit))
				if len(r.Lost) > 0 || len(r.OutOfOrder) > 0 || r.RedeliveredOutOfOrder > 0 || r.Unexplained() > 0 {
					t.Errorf("lost: %q, out of order: %q and %d, repeated: %q, of them unexplained: %d",
						r.Lost, r.OutOfOrder, r.RedeliveredOutOfOrder, r.Repeats, r.Unexplained())
				}
				wantSums(t, r)
				if r.Segment.Runs > 0 || r.Segment.Replays != r.Segment.Clicks || r.Segment.Clicks < 20 {
					t.Errorf("redelivered were %d clicks, of which %d ran and %d were skipped; want all of many to be skipped",
						r.Segment.Clicks, r.Segment.Runs, r.Segment.Replays)
				}
				want := []DeadLetter{{Attempts: maxAttempts, Err: site.ErrBroken.Error()}}
				for i := range r.DeadLettered {
					want[0].Click, want[0].Visitor = r.DeadLettered[i].Click, r.DeadLettered[i].Visitor
				}
				if diff := cmp.Diff(want, r.DeadLettered); diff != "" {
					t.Errorf("dead-lettered (-want +got):\n%s", diff)
				}
				if r.Crashes != 2*shards || r.Discarded > 0 || r.Replays <= r.Segment.Replays {
					t.Errorf("%d crashes, %d discarded, %d replays; want %d, 0 and more than the redelivered %d",
						r.Crashes, r.Discarded, r.Replays, 2*shards, r.Segment.Replays)
				}
				repeats += len(r.Repeats)
			})
		})
	}
	if repeats == 0 {
		t.Error("over all seeds nothing was repeated, so no crash fell where it hurts")
	}
}

// wantSums checks the accounts: what adds up in the table that is printed.
func wantSums(t *testing.T, r *Result) {
	t.Helper()
	if got := r.Runs + r.Replays + r.NotRun; got != r.Deliveries {
		t.Errorf("%d runs + %d replays + %d not run are not the %d deliveries", r.Runs, r.Replays, r.NotRun, r.Deliveries)
	}
	if got := r.Appended + r.GivenUp() + len(r.Lost); got != r.Clicks {
		t.Errorf("%d appended + %d given up + %d lost are not the %d clicks", r.Appended, r.GivenUp(), len(r.Lost), r.Clicks)
	}
	if got := r.Appended + len(r.Repeats) + r.Redelivered; got != r.Appends {
		t.Errorf("%d appended + %d repeated + %d redelivered are not the %d appends",
			r.Appended, len(r.Repeats), r.Redelivered, r.Appends)
	}
}

// TestLoops is what the guard and the checkpoint are for.
func TestLoops(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			with := run(t, config(seed, Oncekit))
			goesOn, stops := run(t, config(seed, LoopGoesOn)), run(t, config(seed, LoopStops))
			wantSums(t, goesOn)
			wantSums(t, stops)
			if len(goesOn.Repeats) < 5*len(with.Repeats) || len(goesOn.OutOfOrder) < 10 || len(goesOn.Lost) == 0 {
				t.Errorf("seed %d: the loop that goes on repeats %d, has %d out of order and loses %d",
					seed, len(goesOn.Repeats), len(goesOn.OutOfOrder), len(goesOn.Lost))
			}
			if len(stops.Repeats) < 2*len(with.Repeats) || len(stops.Lost) < 2 || stops.Discarded == 0 {
				t.Errorf("seed %d: the loop that stops repeats %d and loses %d, of which %d records were discarded",
					seed, len(stops.Repeats), len(stops.Lost), stops.Discarded)
			}
			if goesOn.Segment.Runs != goesOn.Segment.Clicks || goesOn.Redelivered != goesOn.Segment.Clicks {
				t.Errorf("seed %d: of %d redelivered clicks the loop appends %d", seed, goesOn.Segment.Clicks, goesOn.Redelivered)
			}
		})
	}
}

// TestSameSeed runs each seed several times. Time stands still while goroutines run, but in which order they run is as
// open as ever, so what depended on that would differ now and then.
func TestSameSeed(t *testing.T) {
	for _, reader := range []Reader{Oncekit, LoopGoesOn, LoopStops} {
		var first *Result
		for range 4 {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, config(7, reader))
				if first == nil {
					first = r
				}
				if diff := cmp.Diff(first, r); diff != "" {
					t.Errorf("reader %d: two runs (-first +later):\n%s", reader, diff)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) {
			if other := run(t, config(8, reader)); cmp.Equal(first, other) {
				t.Errorf("reader %d: two seeds have the same result", reader)
			}
		})
	}
}

// TestBrokenStores shows that the accounts can find something.
func TestBrokenStores(t *testing.T) {
	for _, test := range []struct {
		name  string
		store idempotency.Store
		want  string // in the cause of a repeat; "": clicks are lost
	}{
		{"forgets completions", new(brokenstore.Forgetful), "the completion of the first append was stored"},
		{"grants what is held", new(brokenstore.Generous), "the claim of the first append had not run out"},
		{"takes all for done", new(brokenstore.Hasty), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := config(2, Oncekit)
				c.Store = test.store
				r := run(t, c)
				if test.want == "" {
					if len(r.Lost) < 300 {
						t.Errorf("%d clicks were found to be lost, want most", len(r.Lost))
					}
					return
				}
				for _, repeat := range r.Repeats {
					if repeat.Unexplained && strings.Contains(repeat.Cause, test.want) {
						return
					}
				}
				t.Errorf("of %d repeats none has the cause: UNEXPLAINED: %s", len(r.Repeats), test.want)
			})
		})
	}
}

// TestStops ends a run in the middle.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		started := time.Now()
		r, err := Run(ctx, config(1, Oncekit))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result %v, error %v; want the end of the context", r, err)
		}
		if took := time.Since(started); took > functionTimeout {
			t.Errorf("it took %v to stop", took)
		}
		letGo()
	})
}

// TestProgress: every click that is appended the first time is told.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan int, 10_000)
		c := config(1, Oncekit)
		c.Progress = func(appended int) { told <- appended }
		r := run(t, c)
		last := 0
		for range len(told) {
			last = max(last, <-told)
		}
		if last != r.Appended {
			t.Errorf("progress ends with %d, want %d", last, r.Appended)
		}
	})
}
