package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/idempotency"
)

func config(seed draw.Seed, f Function, store idempotency.Store) Config {
	return Config{Seed: seed, Orders: 40, Function: f, Store: store}
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

// TestRun is the promise: whatever happens, nothing is lost or out of order, and what is repeated has a reason.
func TestRun(t *testing.T) {
	causes := make(map[string]int)
	repliesLost := 0
	for seed := range draw.Seed(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, config(seed, Oncekit, idempotency.NewMemoryStore()))
				if len(r.Lost) > 0 || len(r.OutOfOrder) > 0 || r.Unexplained() > 0 {
					t.Errorf("lost: %q, out of order: %q, repeated: %v", r.Lost, r.OutOfOrder, r.Repeats)
				}
				wantSums(t, r)
				if min(r.Crashes, r.Redelivered, r.Retries, r.Replays, r.LogThrottled, r.Throttled, r.Moved()) < 1 {
					t.Errorf("some of what can happen has not: %+v", r)
				}
				for _, repeat := range r.Repeats {
					causes[repeat.Cause]++
				}
				repliesLost += r.RepliesLost
			})
		})
	}
	for _, want := range []string{
		"a crash fell between row and completion", "the table was throttled and did not take the completion",
	} {
		if causes[want] == 0 {
			t.Errorf("over all seeds no repeat has the cause %q: %v", want, causes)
		}
	}
	if repliesLost == 0 {
		t.Error("over all seeds the store lost no reply")
	}
}

// wantSums checks what adds up in the table that is printed. All but Retries is counted by itself.
func wantSums(t *testing.T, r *Result) {
	t.Helper()
	if got := r.Changes + r.Redelivered + r.Retries; got != r.Deliveries {
		t.Errorf("%d changes + %d redelivered + %d retries are not the %d deliveries",
			r.Changes, r.Redelivered, r.Retries, r.Deliveries)
	}
	if got := r.Logged + r.Moved() + len(r.Lost); got != r.Changes {
		t.Errorf("%d logged + %d in the dead-letter queue + %d lost are not the %d changes",
			r.Logged, r.Moved(), len(r.Lost), r.Changes)
	}
	if got := r.Logged + len(r.Repeats); got != r.Rows {
		t.Errorf("%d logged + %d repeated are not the %d rows", r.Logged, len(r.Repeats), r.Rows)
	}
}

// TestLoops is what the handler is for.
func TestLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := run(t, config(5, Oncekit, idempotency.NewMemoryStore()))
		goesOn, stops := run(t, config(5, LoopGoesOn, nil)), run(t, config(5, LoopStops, nil))
		wantSums(t, goesOn)
		wantSums(t, stops)
		if len(goesOn.OutOfOrder) == 0 || len(stops.OutOfOrder) > 0 {
			t.Errorf("out of order: %q where the loop goes on, %q where it stops", goesOn.OutOfOrder, stops.OutOfOrder)
		}
		// The change that cannot be read, and with it, where nothing behind it was tried, others of its batch.
		if len(goesOn.Lost) != 1 || len(stops.Lost) < 2 {
			t.Errorf("lost: %q where the loop goes on, %q where it stops", goesOn.Lost, stops.Lost)
		}
		if len(stops.Repeats) < 2*len(with.Repeats) || len(goesOn.Repeats) < 2*len(stops.Repeats) {
			t.Errorf("repeated: %d with oncekit, %d where the loop goes on, %d where it stops",
				len(with.Repeats), len(goesOn.Repeats), len(stops.Repeats))
		}
	})
}

// TestSameSeed runs each function several times. Time stands still while goroutines run, but in which order they run is
// as open as ever, so what depended on that would differ now and then.
func TestSameSeed(t *testing.T) {
	byText := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	results := make(map[draw.Seed]*Result)
	for _, seed := range []draw.Seed{7, 8} {
		for f := Oncekit; f <= LoopStops; f++ {
			var first *Result
			for range 3 {
				synctest.Test(t, func(t *testing.T) {
					r := run(t, config(seed, f, idempotency.NewMemoryStore()))
					if first == nil {
						first = r
					}
					if diff := cmp.Diff(first, r, byText); diff != "" {
						t.Errorf("seed %d, function %d: two runs (-first +later):\n%s", seed, f, diff)
					}
				})
			}
			results[seed] = first
		}
	}
	if cmp.Equal(results[7], results[8], byText) {
		t.Error("two seeds have the same result")
	}
}

// TestBrokenStores shows that the accounts can find something.
func TestBrokenStores(t *testing.T) {
	for _, test := range []struct {
		name  string
		store idempotency.Store
		want  string // in the cause of a repeat; "": changes are lost
	}{
		{"forgets completions", forgetful{idempotency.NewMemoryStore()}, "the completion of the first row was stored"},
		{"grants what is held", generous{idempotency.NewMemoryStore()}, "the claim of the first row had not run out"},
		{"takes all for done", hasty{idempotency.NewMemoryStore()}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, config(2, Oncekit, test.store))
				if test.want == "" {
					if len(r.Lost) < r.Changes/2 {
						t.Errorf("%d of %d changes were found to be lost, want most", len(r.Lost), r.Changes)
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

// forgetful says that it has stored completions and has not.
type forgetful struct{ *idempotency.MemoryStore }

func (forgetful) Complete(context.Context, idempotency.CompleteRequest) error { return nil }

// generous takes no notice of leases.
type generous struct{ *idempotency.MemoryStore }

func (s generous) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	if e, held := s.Get(r.Key); held && e.Status == idempotency.InProgress {
		r.Now = e.Lease.Add(r.Skew + time.Second)
		r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
	}
	return s.MemoryStore.Claim(ctx, r)
}

// hasty says of every key that it is done.
type hasty struct{ *idempotency.MemoryStore }

func (hasty) Claim(context.Context, idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return idempotency.ClaimResult{Entry: idempotency.Entry{Status: idempotency.Completed}}, nil
}

func TestOutOfOrder(t *testing.T) {
	changes := make(map[string]*change)
	for _, c := range []*change{
		{order: "a", number: 1}, {order: "a", number: 2}, {order: "a", number: 3}, {order: "b", number: 1},
	} {
		changes[c.String()] = c
	}
	for _, test := range []struct {
		name string
		log  []string
		want []string
	}{
		{name: "in order", log: []string{"a change 1", "b change 1", "a change 2", "a change 3"}},
		{name: "one is missing", log: []string{"a change 1", "a change 3"}},
		{name: "a repeat", log: []string{"a change 1", "a change 2", "a change 1"}},
		{name: "a late one", log: []string{"a change 1", "a change 3", "a change 2"}, want: []string{"a change 2"}},
		{name: "a late one that is repeated", log: []string{"a change 2", "a change 1", "a change 1"}, want: []string{"a change 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rows []row
			for _, id := range test.log {
				r := row{}
				r.EventID = id
				rows = append(rows, r)
			}
			if diff := cmp.Diff(test.want, outOfOrder(rows, changes)); diff != "" {
				t.Errorf("out of order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStops ends a run in the middle.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		started := time.Now()
		r, err := Run(ctx, config(1, Oncekit, idempotency.NewMemoryStore()))
		if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			t.Errorf("result %v, error %v; want the end of the context", r, err)
		}
		if took := time.Since(started); took > 2*timeout {
			t.Errorf("it took %v to stop", took)
		}
		letGo()
	})
}
