package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
)

// protection is what keeps the records of a scenario from running twice.
type protection string

const (
	byGuard     protection = "guard"
	byWatermark protection = "watermark"
	byNothing   protection = "nothing"
)

// streamScenario is a random stream, what its handler does with each record each time, and what goes wrong.
type streamScenario struct {
	by      protection
	actions []streamAction
	keys    []string // partition keys, empty: none
	seed    uint64

	// The stream and the mapping.
	shards, batchSize, retries, factor int
	functionTimeout                    time.Duration
	bisect, reset, sameNumbers         bool
	consumer                           string
	duplicates, crashes, storeFaults   float64
	maxCrashes, maxStoreFaults         int

	// The handler.
	concurrency        int
	serial, stop       bool
	timeout            time.Duration // of a record
	sink               bool
	sinkFails          int // the first so many times
	errorOn            batch.ErrorOn
	maxAttempts        int
	count, failsUnsure bool // the guard counts attempts; FailUnrecorded
	bulk               bool // its store takes many requests in a call
	lease, expiry      time.Duration
	skew, wait         time.Duration
}

// streamAction is what happens to the stream when so many invocations have ended.
type streamAction struct {
	after int
	does  string // put, aggregate, split, merge or redeliver
	n     int    // which shard, or which record
	puts  []plannedRecord
}

// plannedRecord is a record to be put.
type plannedRecord struct {
	key     string        // the partition key, empty: none
	broken  bool          // it is no JSON
	poison  bool          // its last step is that of every later start
	steps   []plannedStep // what the handler does the first times that it starts
	arrives time.Duration // after the one before
}

// plannedStep is what a handler does with a record.
type plannedStep struct {
	takes   time.Duration
	ignores bool // the end of its context
	ends    stepEnd
}

type stepEnd string

const (
	stepSucceeds     stepEnd = "succeeds"
	stepFails        stepEnd = "fails"
	stepFailsForGood stepEnd = "fails for good"
	stepPanics       stepEnd = "panics"
	stepExits        stepEnd = "exits"
)

var errOnPurpose = errors.New("on purpose")

// wait takes the time that the step takes. It returns an error if the context ended before, unless that is ignored.
func (p plannedStep) wait(ctx context.Context) error {
	if p.takes == 0 {
		return nil
	}
	if p.ignores {
		time.Sleep(p.takes)
		return nil
	}
	timer := time.NewTimer(p.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends the handler as planned, but for a success, which is nil.
func (p plannedStep) end() error {
	switch p.ends {
	case stepFails:
		return errOnPurpose
	case stepFailsForGood:
		return batch.Permanent(errOnPurpose)
	case stepPanics:
		panic(errOnPurpose)
	case stepExits:
		runtime.Goexit()
	}
	return nil
}

// step is what happens when the record is started for the nth time, from 0.
func (r *plannedRecord) step(n int) plannedStep {
	switch {
	case n < len(r.steps):
		return r.steps[n]
	case r.poison:
		return plannedStep{ends: stepFails}
	default:
		return plannedStep{ends: stepSucceeds}
	}
}

// oneOf draws one of the values. The first is the simplest.
func oneOf[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawStreamScenario(t *rapid.T, by protection) *streamScenario {
	s := &streamScenario{by: by, seed: rapid.Uint64Range(1, 1<<32).Draw(t, "seed"), factor: 1}
	s.shards = oneOf(t, "shards", 1, 1, 2, 3)
	s.batchSize = oneOf(t, "batch size", 100, 10, 4, 3, 2, 1)
	s.retries = oneOf(t, "retries", -1, -1, -1, 5, 2, 0)
	s.functionTimeout = oneOf[time.Duration](t, "function timeout", 30, 10, 3) * time.Second
	s.bisect, s.reset = rapid.Bool().Draw(t, "bisect"), rapid.Bool().Draw(t, "progress resets retries")
	s.sameNumbers = rapid.Bool().Draw(t, "same sequence numbers")
	s.consumer = oneOf(t, "consumer", "", "fan-out")
	s.duplicates = oneOf(t, "lost answers", 0., 0, .2, .4)
	s.crashes, s.maxCrashes = oneOf(t, "crashes", 0., .01, .05), 8
	s.storeFaults, s.maxStoreFaults = oneOf(t, "store faults", 0., .03, .1), 40

	s.concurrency = oneOf(t, "concurrency", 0, 1, 2, 3)
	s.serial, s.stop = oneOf(t, "serial", false, false, true), oneOf(t, "stop on failure", false, false, true)
	s.timeout = oneOf(t, "record timeout", 0, 0, time.Second)
	s.sink, s.sinkFails = rapid.Bool().Draw(t, "sink"), oneOf(t, "sink failures", 0, 0, 1, 3)
	s.errorOn = oneOf(t, "error on", batch.ErrorOnNothing, batch.ErrorOnNothing, batch.ErrorOnNothing,
		batch.ErrorOnTotalFailure, batch.ErrorOnAnyFailure)
	switch by {
	case byGuard:
		s.drawGuard(t)
	case byWatermark:
		s.concurrency = min(s.concurrency, 1)
		s.skew = oneOf[time.Duration](t, "skew", 0, 0, -1)
	}
	s.keys = []string{"k", "l", "m", "n", ""}
	if s.bulk && rapid.Bool().Draw(t, "many keys") { // records of many lanes share a call
		for i := range 20 {
			s.keys = append(s.keys, fmt.Sprint("k", i))
		}
	}
	for after := 0; len(s.actions) < 16; {
		a := s.drawAction(t)
		after += oneOf(t, "later by", 0, 0, 0, 1, 2)
		a.after = after
		s.actions = append(s.actions, a)
		if rapid.IntRange(0, 11).Draw(t, "last") == 11 {
			break
		}
	}
	return s
}

func (s *streamScenario) drawGuard(t *rapid.T) {
	s.factor = oneOf(t, "factor", 1, 1, 1, 2, 3)
	s.lease = oneOf(t, "lease", 0, time.Second, 45*time.Second)
	s.skew = oneOf[time.Duration](t, "skew", 0, 0, -1)
	s.wait = oneOf(t, "wait", 0, 0, -1, 500*time.Millisecond)
	s.failsUnsure = rapid.Bool().Draw(t, "fail unrecorded")
	s.bulk = rapid.Bool().Draw(t, "bulk")
	if oneOf(t, "keys expire", false, false, true) {
		s.expiry = max(s.lease, oneOf[time.Duration](t, "expiry", 2, 9)*time.Second)
		return // and with the keys the counts, so that attempts may never be exhausted
	}
	if s.sink && rapid.Bool().Draw(t, "count attempts") {
		s.count, s.maxAttempts = true, rapid.IntRange(1, 4).Draw(t, "max attempts")
	}
}

// givesUp reports whether a record that always fails comes to an end, and so does the test.
func (s *streamScenario) givesUp() bool { return s.retries >= 0 || s.maxAttempts > 0 }

func (s *streamScenario) drawAction(t *rapid.T) streamAction {
	a := streamAction{
		does: oneOf(t, "action", "put", "put", "put", "put", "put", "put", "aggregate", "aggregate", "redeliver", "split", "merge"),
		n:    rapid.IntRange(0, 30).Draw(t, "n"),
	}
	records := 0
	switch a.does {
	case "put":
		records = rapid.IntRange(1, 5).Draw(t, "records")
	case "aggregate":
		records = rapid.IntRange(2, 5).Draw(t, "records")
	}
	for range records {
		r := s.drawRecord(t)
		if a.does == "aggregate" && r.key == "" {
			r.key = "k"
		}
		a.puts = append(a.puts, r)
	}
	return a
}

func (s *streamScenario) drawRecord(t *rapid.T) plannedRecord {
	r := plannedRecord{key: oneOf(t, "key", s.keys...)}
	switch rapid.IntRange(0, 14).Draw(t, "never succeeds") {
	case 13:
		r.broken = s.givesUp() || s.sink
	case 14:
		r.poison = s.givesUp()
	}
	for range oneOf(t, "steps", 0, 0, 0, 1, 1, 2, 3) {
		r.steps = append(r.steps, plannedStep{
			takes:   s.drawTime(t),
			ignores: rapid.Bool().Draw(t, "ignores context"),
			ends:    oneOf(t, "ends", stepSucceeds, stepSucceeds, stepSucceeds, stepFails, stepFails, stepFailsForGood, stepPanics, stepExits),
		})
	}
	return r
}

// drawTime draws how long a handler takes. The longest time is longer than an invocation.
func (s *streamScenario) drawTime(t *rapid.T) time.Duration {
	return oneOf(t, "takes", 0, 0, 10*time.Millisecond, 300*time.Millisecond, 1100*time.Millisecond, 4100*time.Millisecond,
		s.functionTimeout+700*time.Millisecond, s.functionTimeout+7*time.Second)
}

// strict reports whether a shard's records are to run one at a time, and none behind a failure.
func (s *streamScenario) strict() bool {
	return s.serial || s.by == byWatermark || (s.by == byNothing && s.concurrency <= 1)
}

// stops reports whether a failure is to stop everything behind it at once. Where a guard first has to release a claim, that
// may take time.
func (s *streamScenario) stops() bool { return s.by != byGuard || s.stop && s.storeFaults == 0 }

// chances is how many runs of the scenario differ from each other: none do where nothing is left to chance.
func (s *streamScenario) chances() uint64 {
	if s.crashes+s.storeFaults+s.duplicates == 0 {
		return 1
	}
	return 2
}
