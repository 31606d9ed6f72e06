package simulation

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []int
		hopeless := 0
		last := Progress{}
		c := config(1, 10, idempotency.NewMemoryStore())
		c.Progress = func(p Progress) {
			if p.Deliveries < last.Deliveries || p.Charged < last.Charged || p.Round < last.Round {
				t.Errorf("progress went back from %+v to %+v", last, p)
			}
			if last = p; p.RoundEnded {
				ended = append(ended, p.Round)
				if p.Hopeless {
					hopeless++
				}
			}
		}
		r := run(t, c)
		if want := (Progress{
			Round: 6, RoundEnded: true, Deliveries: r.Deliveries, Crashes: r.Crashes,
			Orders: r.Orders, Charged: r.Charged, DeadLettered: r.Uncharged(), Hopeless: true,
		}); last != want {
			t.Errorf("progress ends with %+v, want %+v", last, want)
		}
		if hopeless < 2 || hopeless == len(ended) {
			t.Errorf("after %d of %d rounds nothing could charge what was left, want that after the last few", hopeless, len(ended))
		}
		if !slices.Equal(ended, []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("rounds %v have ended, want one for each of %d receives and one to dead-letter", ended, maxReceiveCount)
		}
	})
}

// TestTakes compares what is said to take so long with what does.
func TestTakes(t *testing.T) {
	for _, test := range []struct {
		orders, concurrency int
		timeout             time.Duration
	}{
		{5, 10, time.Second}, {50, 10, time.Second}, {200, 10, time.Second}, {200, 10, 3 * time.Second},
		{200, 1, time.Second}, {1000, 10, time.Second}, {1000, 1, 3 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d orders, concurrency %d, timeout %v", test.orders, test.concurrency, test.timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := config(20, test.concurrency, idempotency.NewMemoryStore())
				c.Orders, c.Timeout = test.orders, test.timeout
				started := time.Now()
				if _, err := Run(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				took, said := time.Since(started), c.Takes()
				if took < said*3/4 || took > said*5/4 {
					t.Errorf("it took %v, and was said to take about %v", took, said)
				}
				letGo()
			})
		})
	}
}
