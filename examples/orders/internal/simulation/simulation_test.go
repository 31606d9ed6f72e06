package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/brokenstore"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
)

func config(seed uint64, concurrency int, store idempotency.Store) Config {
	return Config{
		Seed: seed, Orders: 200, Concurrency: concurrency, Timeout: time.Second, Store: store, Namespace: "orders",
	}
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

// TestRun is the promise: whatever happens, nothing is lost, and what is repeated has a reason.
func TestRun(t *testing.T) {
	causes := make(map[string]int)
	var inProgress, repliesLost, hung int
	for _, concurrency := range []int{1, 3, 10} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("seed %d, concurrency %d", seed, concurrency), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := run(t, config(seed, concurrency, idempotency.NewMemoryStore()))
					if len(r.Lost) > 0 || r.Unexplained() > 0 {
						t.Errorf("lost: %q, repeated: %d, of them unexplained: %d", r.Lost, len(r.Repeats), r.Unexplained())
					}
					wantSums(t, r)
					wantMoved(t, r)
					if min(r.Crashes, r.Throttled, r.Duplicates, r.Replays, len(r.DeadLettered)-3) < 1 {
						t.Errorf("%d crashes, %d throttled, %d duplicates, %d replays, %d dead-lettered; that shows too little",
							r.Crashes, r.Throttled, r.Duplicates, r.Replays, len(r.DeadLettered))
					}
					for _, repeat := range r.Repeats {
						causes[repeat.Cause]++
					}
					inProgress, repliesLost, hung = inProgress+r.InProgress, repliesLost+r.RepliesLost, hung+r.Hung
				})
			})
		}
	}
	if inProgress == 0 || repliesLost == 0 || hung == 0 {
		t.Errorf("over all seeds: %d in progress elsewhere, %d replies lost, %d hung; want some of each",
			inProgress, repliesLost, hung)
	}
	for _, want := range []string{"a crash fell", "the table was throttled", "its handler hung"} {
		if !slices.ContainsFunc(keys(causes), func(cause string) bool { return strings.HasPrefix(cause, want) }) {
			t.Errorf("over all seeds no repeat has the cause %q: %v", want, causes)
		}
	}
}

// wantSums checks the accounts: what adds up in the table that is printed. All but Retries is counted by itself.
func wantSums(t *testing.T, r *Result) {
	t.Helper()
	if got := r.Orders + r.Duplicates + r.Retries; got != r.Deliveries {
		t.Errorf("%d orders + %d duplicates + %d retries are not the %d deliveries",
			r.Orders, r.Duplicates, r.Retries, r.Deliveries)
	}
	if got := r.Runs + r.Replays + r.InProgress + r.Unreached; got != r.Deliveries {
		t.Errorf("%d runs + %d replays + %d in progress + %d that never reached the handler are not the %d deliveries",
			r.Runs, r.Replays, r.InProgress, r.Unreached, r.Deliveries)
	}
	if got := r.Charged + len(r.Repeats); got != r.Charges {
		t.Errorf("%d charged + %d repeated are not the %d charges", r.Charged, len(r.Repeats), r.Charges)
	}
	if got := r.Charged + r.Uncharged() + len(r.Lost); got != r.Orders {
		t.Errorf("%d charged + %d in the dead-letter queue + %d lost are not the %d orders",
			r.Charged, r.Uncharged(), len(r.Lost), r.Orders)
	}
}

// wantMoved checks what the dead-letter queue says of the orders that can never be charged.
func wantMoved(t *testing.T, r *Result) {
	t.Helper()
	moved := make(map[int]int)
	for _, d := range r.DeadLettered {
		switch declined := errors.Is(d.Err, shop.ErrDeclined); {
		case d.Err == nil, declined && d.Charged:
			t.Errorf("%s is in the dead-letter queue, charged %v, because of %v", d.Order, d.Charged, d.Err)
		case !d.Charged:
			moved[d.Receives]++
		}
	}
	if moved[0]+moved[maxReceiveCount] != r.Uncharged() || moved[maxReceiveCount] < 2 {
		t.Errorf("moved after so many receives: %v, want all at once or after %d", moved, maxReceiveCount)
	}
}

func keys(m map[string]int) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// TestSameSeed runs each seed several times. Time stands still while goroutines run, but in which order they run is as
// open as ever, so what depended on that would differ now and then.
func TestSameSeed(t *testing.T) {
	byText := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	for _, concurrency := range []int{1, 10} {
		for _, guarded := range []bool{true, false} {
			var first *Result
			for range 4 {
				synctest.Test(t, func(t *testing.T) {
					c := config(7, concurrency, nil)
					if guarded {
						c.Store = idempotency.NewMemoryStore()
					}
					r := run(t, c)
					if first == nil {
						first = r
					}
					if diff := cmp.Diff(first, r, byText); diff != "" {
						t.Errorf("concurrency %d, guard %v: two runs (-first +later):\n%s", concurrency, guarded, diff)
					}
				})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		one, other := run(t, config(1, 10, nil)), run(t, config(2, 10, nil))
		if cmp.Equal(one, other, byText) {
			t.Error("two seeds have the same result")
		}
	})
}

// TestWithoutGuard is what the guard is for.
func TestWithoutGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := run(t, config(1, 10, idempotency.NewMemoryStore()))
		without := run(t, config(1, 10, nil))
		wantSums(t, without)
		if len(without.Repeats) < 2*len(with.Repeats) || without.Unexplained() != len(without.Repeats) {
			t.Errorf("with a guard %d repeats, without %d, of them %d unexplained",
				len(with.Repeats), len(without.Repeats), without.Unexplained())
		}
		if len(without.Lost) > 0 {
			t.Errorf("lost without a guard: %q", without.Lost)
		}
	})
}

// TestBrokenStores shows that the accounts can find something.
func TestBrokenStores(t *testing.T) {
	for _, test := range []struct {
		name  string
		store idempotency.Store
		want  string // in the cause of a repeat; "": orders are lost
	}{
		{"forgets completions", new(brokenstore.Forgetful), "the completion of the first charge was stored"},
		{"grants what is held", new(brokenstore.Generous), "the claim of the first charge had not run out"},
		{"takes all for done", new(brokenstore.Hasty), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, config(2, 10, test.store))
				if test.want == "" {
					if len(r.Lost) < 100 {
						t.Errorf("%d orders were found to be lost, want most", len(r.Lost))
					}
					return
				}
				found := slices.ContainsFunc(r.Repeats, func(repeat Repeat) bool {
					return repeat.Unexplained && strings.Contains(repeat.Cause, test.want)
				})
				if !found {
					t.Errorf("of %d repeats none has the cause: UNEXPLAINED: %s", len(r.Repeats), test.want)
				}
			})
		})
	}
}

// TestStops ends a run in the middle.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		c := config(1, 10, idempotency.NewMemoryStore())
		started := time.Now()
		r, err := Run(ctx, c)
		if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			t.Errorf("result %v, error %v; want the end of the context", r, err)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("it took %v to stop", took)
		}
		letGo()
	})
}
