package eventbridgetest_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Whatever the function does and the faults are, each delivery is done or dead-lettered in the end, the numbers add up, a
// FIFO subscriber that waits never overtakes within a group, and nothing is tried more often than its policies say.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var (
			retries    = rapid.IntRange(-1, 2).Draw(rt, "function's retries")
			target     = rapid.IntRange(-1, 4).Draw(rt, "target's retries")
			duplicates = rapid.SampledFrom([]float64{0, .3}).Draw(rt, "duplicates")
			throttles  = rapid.SampledFrom([]float64{0, .3}).Draw(rt, "throttles")
			faults     = rapid.SampledFrom([]float64{0, .3}).Draw(rt, "target faults")
			crashes    = rapid.SampledFrom([]float64{0, .2}).Draw(rt, "crashes")
			width      = rapid.IntRange(1, 3).Draw(rt, "concurrency")
			replays    = rapid.Bool().Draw(rt, "replays")
			seed       = rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
			groups     = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", ""}), 1, 20).Draw(rt, "groups")
			s          *subscriber
		)
		if rapid.Bool().Draw(rt, "subscriber") {
			s = &subscriber{
				MaxBatchSize: rapid.IntRange(1, 4).Draw(rt, "batch size"), FIFO: rapid.Bool().Draw(rt, "FIFO"),
				RequestResponse: rapid.Bool().Draw(rt, "waits"), WithMetadata: rapid.Bool().Draw(rt, "metadata"),
			}
			if s.RequestResponse {
				s.InvocationTimeout = 2 * time.Second
			}
		}
		var mu sync.Mutex
		var failures []string
		fail := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, fmt.Sprintf(format, args...))
		}
		synctest.Test(t, func(t *testing.T) {
			var b *eventbridgetest.Bus
			fault := lambdatest.Randomly(seed+1, faults)
			throttle := lambdatest.Randomly(seed+2, throttles)
			b = newBus(t, "orders", func(o *eventbridgetest.Options) {
				o.FunctionRetry.MaximumRetryAttempts, o.TargetRetry.MaximumRetryAttempts = retries, target
				o.DuplicateProbability, o.Concurrency, o.Seed, o.Subscriber = duplicates, width, seed, s
				o.FunctionTimeout = 3 * time.Second
				o.Crash, o.Throttle = lambdatest.Randomly(seed, crashes), throttle
				o.TargetFault = func(p lambdatest.Point) error {
					if !fault(p) {
						return nil
					}
					return errNo
				}
				o.Observe = func(d eventbridgetest.Delivery) {
					if (d.Ended.Sub(d.Started) >= 2*time.Second && s != nil && s.RequestResponse) != d.GivenUp {
						fail("%+v, want it given up after 2s and only then", d)
					}
				}
			})
			ordered := s != nil && s.FIFO && s.RequestResponse && duplicates == 0 && !replays
			for i, group := range groups {
				e := order(fmt.Sprint(i))
				if s != nil {
					e.Group = group
				}
				if _, err := b.Put(e); err != nil {
					fail("%v", err)
				}
			}
			if replays {
				if n, err := b.Replay(time.Now(), time.Now(), "again"); n != len(groups) || err != nil {
					fail("Replay returned %d and %v, want %d", n, err, len(groups))
				}
			}
			calls, start := 0, time.Now()
			random := lambdatest.Seed(seed)
			err := b.Drain(t.Context(), handler(func(ctx context.Context, orders []string) error {
				mu.Lock()
				calls++
				chance := func(about string) float64 { return random.Fraction(about, strconv.Itoa(calls)) }
				what, pause := chance("what"), time.Duration(chance("pause")*float64(4*time.Second))
				mu.Unlock()
				stats := b.Stats()
				if stats.Put+stats.Replayed+stats.Duplicates != stats.Done+stats.DeadLettered+stats.Waiting+stats.InFlight {
					fail("stats are %v, which does not add up", stats)
				}
				if ordered {
					batch := map[string]bool{}
					for _, o := range orders {
						batch[o] = true
					}
					first := false
					for i, h := range b.Histories() {
						first = first || batch[fmt.Sprint(i)]
						if !first && h.Waiting {
							fail("%v were delivered before %d was done or given up", orders, i)
						}
					}
				}
				time.Sleep(pause)
				switch {
				case what < .5:
					return nil
				case what < .6:
					panic("boom")
				default:
					return errNo
				}
			}))
			if err != nil {
				fail("%v", err)
			}
			time.Sleep(10 * time.Second) // what has timed out is still running
			stats := b.Stats()
			if stats.Put+stats.Replayed+stats.Duplicates != stats.Done+stats.DeadLettered || stats.Waiting+stats.InFlight != 0 {
				fail("stats are %v, want all done or dead-lettered", stats)
			}
			for _, h := range b.Histories() {
				if h.Waiting || h.Done.IsZero() && h.DeadLettered.IsZero() {
					fail("%+v, want it done or dead-lettered", h)
				}
			}
			n := 0
			for _, l := range b.DeadLetters() {
				n += len(l.IDs)
				limit := max(0, retries)
				if retries == 0 {
					limit = 2
				}
				if l.Queue == eventbridgetest.TargetQueue {
					if limit = max(0, target); target == 0 {
						limit = map[bool]int{true: 185, false: 5}[s == nil]
					}
				}
				// What waits behind a batch that fails can get too old for its turn.
				late := s != nil && l.Queue == eventbridgetest.TargetQueue && l.Reason == eventbridgetest.EventAgeExceeded
				if late && l.Retries < limit && l.At.Sub(start) >= 5*time.Minute {
					continue
				}
				if l.Reason != eventbridgetest.RetriesExhausted || l.Retries != limit || l.Invocations > limit+1 || l.Err == nil {
					fail("%+v, want it given up after %d retries", l, limit)
				}
			}
			if n != stats.DeadLettered {
				fail("%d events in dead letters, want %d", n, stats.DeadLettered)
			}
		})
		for _, failure := range failures {
			rt.Error(failure)
		}
	})
}
