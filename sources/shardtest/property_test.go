package shardtest_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

// Whatever the function does, each record is delivered until it is done or discarded and not lost, a record of a lane
// comes first only when all earlier ones of the lane are dealt with, and the checkpoint never passes a record that was
// reported.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var (
			factor  = rapid.IntRange(1, 3).Draw(rt, "factor")
			size    = rapid.IntRange(1, 7).Draw(rt, "batch size")
			retries = rapid.IntRange(0, 4).Draw(rt, "retries")
			bisect  = rapid.Bool().Draw(rt, "bisect")
			reset   = rapid.Bool().Draw(rt, "reset")
			lost    = rapid.SampledFrom([]float64{0, .2}).Draw(rt, "lost answers")
			crashes = rapid.SampledFrom([]float64{0, .1}).Draw(rt, "crashes")
			seed    = rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
			lanes   = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 30).Draw(rt, "lanes")
			cut     = rapid.IntRange(0, len(lanes)).Draw(rt, "split after")
		)
		var failures []string
		synctest.Test(t, func(t *testing.T) {
			s := newStream(t, func(o *shardtest.Options) {
				o.ParallelizationFactor, o.BatchSize, o.MaximumRetryAttempts = factor, size, retries
				o.BisectOnError, o.ResetRetriesOnProgress, o.DuplicateProbability, o.Seed = bisect, reset, lost, seed
				o.Crash = lambdatest.Randomly(seed, crashes)
			})
			shard := "s"
			for i, lane := range lanes {
				if i == cut {
					s.open("child", "s")
					s.closeShard("s")
					shard = "child"
				}
				s.put(shard, fmt.Sprint(lane, i))
			}
			h := &unreliable{stream: s, seed: lambdatest.Seed(seed)}
			s.drain(handler(h.handle))
			failures = append(h.failures, s.check()...)
		})
		for _, failure := range failures {
			rt.Error(failure)
		}
	})
}

// unreliable is a handler that answers by chance.
type unreliable struct {
	stream *stream
	seed   lambdatest.Seed

	mu       sync.Mutex
	calls    int
	failures []string
}

func (u *unreliable) handle(_ context.Context, e event) (string, error) {
	u.mu.Lock()
	u.calls++
	chance := func(about string) float64 { return u.seed.Fraction(about, strconv.Itoa(u.calls)) }
	u.failures = append(u.failures, u.stream.overtaken(e.Records)...)
	what, which := chance("what"), int(chance("which")*float64(len(e.Records)))
	pause := time.Duration(chance("pause") * float64(time.Second))
	u.mu.Unlock()
	time.Sleep(pause)
	switch {
	case what < .4:
		return "", nil
	case what < .7:
		return report(e.Records[which:]...), nil
	case what < .8:
		return report("unknown"), nil
	case what < .9:
		panic("boom")
	default:
		return "", errNo
	}
}

// overtaken returns what was delivered although an earlier record of its lane is still to come, a sentence each.
func (s *stream) overtaken(batch []string) []string {
	inBatch := map[string]bool{}
	for _, name := range batch {
		inBatch[name] = true
	}
	var failures []string
	waiting := map[string]string{} // by lane, the first record that waits outside of the batch
	for _, h := range s.Histories() {
		lane := h.Record[:1]
		earlier, found := waiting[lane]
		switch {
		case inBatch[h.Record] && found:
			failures = append(failures, fmt.Sprintf("%s was delivered before %s was dealt with", h.Record, earlier))
		case !inBatch[h.Record] && h.Waiting && !found:
			waiting[lane] = h.Record
		}
	}
	return failures
}

// check returns what is wrong with a drained stream, a sentence each.
func (s *stream) check() []string {
	var failures []string
	for _, h := range s.Histories() {
		if h.Waiting || h.Done.IsZero() == h.Discarded.IsZero() || len(h.Delivered) == 0 {
			failures = append(failures, fmt.Sprintf("%s ended as %+v, want it delivered and either done or discarded", h.Record, h))
		}
	}
	stats, limit := s.Stats(), 0
	for _, d := range s.observed() {
		limit++
		if len(d.Done)+len(d.Returned)+len(d.Discarded) != len(d.Records) {
			failures = append(failures, fmt.Sprintf("%+v, want every record done, returned or discarded", d))
		}
		if d.Ending != lambdatest.Answered && len(d.Done) > 0 {
			failures = append(failures, fmt.Sprintf("%+v, want no record done", d))
		}
	}
	if stats.Done+stats.Discarded != stats.Put || stats.Waiting+stats.InFlight != 0 || stats.Invocations != limit {
		failures = append(failures, fmt.Sprintf("stats are %v, want all that was put done or discarded", stats))
	}
	return failures
}
