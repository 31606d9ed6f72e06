package batch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
)

// scenario is a random batch: what its records are, how long each stage of each takes and how it ends.
type scenario struct {
	records     []batch.Record
	plans       []plan
	concurrency int
	groups      batch.Groups
	stop        bool
	sink        int           // 0: none, 1: takes, 2: refuses
	left        time.Duration // until the deadline, 0: none
	cancel      time.Duration // when the caller cancels, 0: never
}

type plan struct {
	key         string
	fingerprint int
	prepare     int  // 0: succeeds, 1: fails, 2: panics
	admit       int  // 0: admits, 1: fails, 2: replays, 3: in progress, 4: exits, 5: stops
	holds       int  // how often it is held before that
	run         int  // 0: succeeds, 1: fails, 2: fails for good, 3: panics, 4: exits
	settle      int  // 0: as it is, 1: unrecorded, 2: panics
	startBy     bool // it waits no longer than its handler takes
	takes       [4]time.Duration
	heeds       bool // its context
}

// drawScenario draws a scenario; draw(n) is a number from 0 to n-1, unit is a short time and hang a long one.
func drawScenario(draw func(n int) int, unit, hang time.Duration) *scenario {
	seldom := func(n int) int { // mostly 0
		if draw(3) > 0 {
			return 0
		}
		return draw(n)
	}
	takes := func() time.Duration {
		if draw(25) == 0 {
			return hang
		}
		return time.Duration(seldom(30)) * unit
	}
	s := &scenario{concurrency: 1 + draw(5), stop: draw(5) == 0, sink: draw(3)}
	switch draw(3) {
	case 0:
		s.left = time.Duration(1+draw(200)) * unit
	case 1:
		s.cancel = time.Duration(1+draw(100)) * unit
	}
	if draw(2) == 0 {
		s.groups = batch.Groups{Admit: 1 + draw(6), Settle: 1 + draw(4)}
	}
	n := draw(16)
	s.records, s.plans = make([]batch.Record, n), make([]plan, n)
	for i := range n {
		r, p := &s.records[i], &s.plans[i]
		r.ID = fmt.Sprint("r", i)
		if draw(5) == 0 {
			r.ID = []string{"p", "q"}[draw(2)]
		}
		r.Lane = []string{"", "A", "B", "C"}[draw(4)]
		if draw(3) == 0 {
			p.key = []string{"x", "y"}[draw(2)]
		}
		p.fingerprint, p.heeds, p.startBy = seldom(2), draw(2) == 0, draw(4) == 0
		p.prepare, p.admit, p.run, p.settle, p.holds = seldom(3), seldom(6), seldom(5), seldom(3), seldom(4)
		for k := range p.takes {
			p.takes[k] = takes()
		}
	}
	return s
}

// event is something that happened to record i.
type event struct {
	what string
	i    int
}

// run runs the scenario and returns all that is wrong with what happened, once the stragglers are done too.
func (s *scenario) run(t *testing.T, settleDown func()) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var mu sync.Mutex
	var events []event
	leaders := map[int]int{}
	happened := func(what string, i int) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, event{what, i})
	}
	var inside gauge
	waiting, most := map[int]bool{}, 0 // records that are admitted and have not begun
	waits := func(i int, yes bool) {
		mu.Lock()
		defer mu.Unlock()
		if waiting[i] = yes; !yes {
			delete(waiting, i)
		}
		most = max(most, len(waiting))
	}
	held := make([]int, len(s.records))
	wait := func(ctx context.Context, i, stage int) {
		if p := &s.plans[i]; p.heeds {
			select {
			case <-ctx.Done():
			case <-time.After(p.takes[stage]):
			}
		} else {
			time.Sleep(p.takes[stage])
		}
	}
	grouped := s.groups != batch.Groups{} && !s.stop
	stage := func(name string, ctx context.Context, i, number int) func() {
		inWorker := !grouped || name == "prepare" || name == "run"
		if inWorker {
			inside.enter()
		}
		happened(name, i)
		wait(ctx, i, number)
		return func() {
			happened(name+" ends", i)
			if inWorker {
				inside.leave()
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s.left > 0 {
		var cancelDeadline context.CancelFunc
		ctx, cancelDeadline = context.WithTimeout(ctx, s.left)
		defer cancelDeadline()
	}
	if s.cancel > 0 {
		defer time.AfterFunc(s.cancel, cancel).Stop()
	}
	begin := time.Now()
	report := runStages(t, ctx, slices.Clone(s.records), &stages{
		groups: s.groups,
		group: func(records []int) {
			if len(records) > max(s.groups.Admit, s.groups.Settle, s.concurrency) {
				fault("a group of %d records is admitted, want %d at most", len(records), s.groups.Admit)
			}
			lanes := map[string]bool{}
			for _, i := range records {
				if lane := s.records[i].Lane; lane != "" && lanes[lane] {
					fault("two records of lane %s are admitted together: %v", lane, records)
				} else {
					lanes[lane] = true
				}
			}
		},
		prepare: func(ctx context.Context, i int) (string, error) {
			defer stage("prepare", ctx, i, 0)()
			switch s.plans[i].prepare {
			case 1:
				return "", errBoom
			case 2:
				panic("prepare")
			}
			return s.plans[i].key, nil
		},
		twin: func(leader, follower int) error {
			if s.plans[leader].fingerprint != s.plans[follower].fingerprint {
				return errFingerprint
			}
			mu.Lock()
			defer mu.Unlock()
			leaders[follower] = leader
			return nil
		},
		admit: func(ctx context.Context, i int) batch.Admission {
			defer stage("admit", ctx, i, 1)()
			p := &s.plans[i]
			if held[i]++; held[i] <= p.holds {
				return batch.Admission{Outcome: batch.InProgress, Err: errHeld, RetryAt: time.Now().Add(p.takes[0])}
			}
			switch p.admit {
			case 1, 5:
				return batch.Admission{Outcome: batch.Failed, Err: errBoom, Stop: p.admit == 5}
			case 2:
				return batch.Admission{Outcome: batch.Replayed}
			case 3:
				return batch.Admission{Outcome: batch.InProgress, Err: errBoom}
			case 4:
				_ = exit()
			}
			a := batch.Admission{}
			if p.startBy && held[i] == p.holds+1 { // the second time it may wait
				a.StartBy = time.Now().Add(p.takes[2])
			}
			waits(i, true)
			return a
		},
		begin: func(i int) error {
			waits(i, false)
			happened("begin", i)
			return nil
		},
		run: func(ctx context.Context, i int) error {
			defer stage("run", ctx, i, 2)()
			switch s.plans[i].run {
			case 1:
				return errBoom
			case 2:
				return batch.Permanent(errBoom)
			case 3:
				panic("run")
			case 4:
				return exit()
			}
			return nil
		},
		settle: func(ctx context.Context, i int, settled batch.Settlement) batch.Settlement {
			defer stage("settle", ctx, i, 3)()
			waits(i, false)
			switch s.plans[i].settle {
			case 1:
				settled.Unrecorded = settled.Outcome == batch.Succeeded
			case 2:
				panic("settle")
			}
			return settled
		},
	}, func(o *batch.Options) {
		o.Concurrency, o.StopOnFailure = s.concurrency, s.stop
		if s.sink > 0 {
			o.DeadLetter = func(context.Context, *batch.Record, error) error { return []error{nil, errSink}[s.sink-1] }
		}
		o.Hooks = []batch.Hook{finishedFunc(func(r *batch.Result) {
			happened("finished", slices.IndexFunc(s.records, func(x batch.Record) bool { return x.Value == r.Record.Value }))
		})}
	})
	took := time.Since(begin)
	before := snapshot(report)
	happened("answer", -1)
	settleDown()
	if diff := cmp.Diff(before, snapshot(report)); diff != "" {
		fault("the report changed after the answer (-before +after):\n%s", diff)
	}
	if most := inside.most(); most > s.concurrency {
		fault("%d stages at once, want %d at most", most, s.concurrency)
	}
	if s.left > 0 && took > s.left+time.Second {
		fault("took %v, with a deadline after %v", took, s.left)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > s.mayWait() {
		fault("%d records were admitted and waited, want %d at most", most, s.mayWait())
	}
	return append(faults, s.check(report, events, leaders)...)
}

// mayWait is how many records may be admitted, at most, and not have begun: those that can begin, and a group more. Those
// that are to be admitted once more have been taken out of the account, but still count here.
func (s *scenario) mayWait() int {
	most := s.concurrency
	if (s.groups != batch.Groups{}) {
		most += max(s.groups.Admit, s.groups.Settle, s.concurrency)
	}
	if slices.ContainsFunc(s.plans, func(p plan) bool { return p.startBy }) {
		most *= 2
	}
	return most
}

// check holds the results against what happened.
func (s *scenario) check(report *batch.Report, events []event, leaders map[int]int) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	count := func(what string, i int) (n int) {
		for _, e := range events {
			if e == (event{what, i}) {
				n++
			}
		}
		return n
	}
	at := func(what string, i int) int { return slices.Index(events, event{what, i}) }
	if len(report.Results) != len(s.records) {
		fault("%d results, want %d", len(report.Results), len(s.records))
		return faults
	}
	total := 0
	for _, o := range everyOutcome {
		total += report.Count(o)
	}
	if total != len(s.records) {
		fault("%d records are counted, want %d", total, len(s.records))
	}

	classes := map[[2]string]int{}
	last := map[string]int{}
	stopped := -1 // when the first failure was settled
	for i, result := range report.Results {
		r, p := &s.records[i], &s.plans[i]
		if result.Record.Value != r.Value {
			fault("result %d is of record %v", i, result.Record.Value)
		}
		if n, ended := count("finished", i), at("finished", i); n != 1 || ended > at("answer", -1) {
			fault("record %d finished %d times, at %d, want once before the answer at %d", i, n, ended, at("answer", -1))
		}
		runs := count("run", i)
		class := [2]string{"key", p.key}
		if p.key == "" {
			class = [2]string{"ID", r.ID}
		}
		classes[class] += runs
		// It begins and does not run if the batch stops in between.
		if begun := count("begin", i); begun > 1 || begun < runs || (begun > runs && result.Outcome.Done()) {
			fault("record %d began %d times, ran %d times and is %v", i, begun, runs, result.Outcome)
		}

		stops := !result.Outcome.Done() || result.Unrecorded
		_, follows := leaders[i]
		switch prepared, settled := count("prepare", i), count("settle", i); {
		case prepared > 1:
			fault("record %d was prepared %d times", i, prepared)
		case prepared == 0 && settled > 0, follows && settled > 0, settled > 1:
			fault("record %d was settled %d times; it was prepared %d times and follows: %v", i, settled, prepared, follows)
		case prepared == 1 && settled == 0 && !follows && (count("admit", i) == 0 || count("admit", i) > p.holds):
			fault("record %d was prepared and not settled", i)
		}
		switch result.Outcome {
		case batch.Succeeded:
			if runs != 1 || p.run != 0 || follows {
				fault("record %d succeeded, ran %d times, and was to end with %d", i, runs, p.run)
			}
		case batch.Skipped:
			if runs > 0 || result.Err == nil {
				fault("record %d was skipped, and ran %d times: %v", i, runs, result.Err)
			}
		case batch.Abandoned:
			if runs == 0 && !follows && count("settle", i) == 0 {
				fault("record %d was abandoned, but had not started", i)
			}
		case batch.Replayed, batch.Failed, batch.InProgress, batch.DeadLettered:
			if leader, ok := leaders[i]; ok && result.Err != report.Results[leader].Err {
				fault("follower %d has another error than its leader %d: %v", i, leader, result.Err)
			}
			if result.Outcome == batch.Replayed && runs > 0 {
				fault("record %d was replayed, and ran", i)
			}
		default:
			fault("record %d has the outcome %v", i, result.Outcome)
		}
		if r.Lane != "" {
			if before, ok := last[r.Lane]; ok && count("prepare", i) > 0 {
				who := before
				if leader, ok := leaders[before]; ok {
					who = leader
				}
				ended := at("settle ends", who)
				if ended < 0 || ended > at("prepare", i) {
					fault("record %d began at %d, before %d of the same lane was finished at %d", i, at("prepare", i), before, ended)
				}
				if b := report.Results[before]; !b.Outcome.Done() || b.Unrecorded {
					fault("record %d began behind %d of the same lane, which is %v", i, before, b.Outcome)
				}
			}
			last[r.Lane] = i
		}
		if end := at("settle ends", i); stops && end >= 0 && (stopped < 0 || end < stopped) {
			stopped = end
		}
	}
	for class, runs := range classes {
		if runs > 1 {
			fault("%s %q ran %d times", class[0], class[1], runs)
		}
	}
	if s.concurrency == 1 && !slices.ContainsFunc(s.plans, func(p plan) bool { return p.holds > 0 }) {
		last := -1
		for _, e := range events {
			if e.what == "run" && e.i < last {
				fault("record %d ran behind %d, one at a time", e.i, last)
			} else if e.what == "run" {
				last = e.i
			}
		}
	}
	if s.stop && s.concurrency == 1 && stopped >= 0 {
		for _, e := range events[stopped:] {
			if e.what == "prepare" || e.what == "run" {
				fault("%s of record %d behind the failure that stops the batch", e.what, e.i)
			}
		}
	}
	return faults
}

func (s *scenario) number() {
	for i := range s.records {
		s.records[i].Value = i
	}
}

// TestScenarios holds whatever may happen to a batch against the rules that always hold.
func TestScenarios(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// In the longer one handlers take longer than what is admitted should wait.
		unit := rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond}).Draw(rt, "unit")
		s := drawScenario(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }, unit, 5000*unit)
		s.number()
		var faults []string
		synctest.Test(t, func(t *testing.T) {
			faults = s.run(t, func() { time.Sleep(time.Hour) })
		})
		for _, f := range faults {
			rt.Error(f)
		}
		if len(faults) > 0 {
			rt.Fatalf("in %+v", s)
		}
	})
}

// TestStress does the same in real time, in which everything is quick and happens at once, for a second.
func TestStress(t *testing.T) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		s := drawScenario(random.IntN, 5*time.Microsecond, 2*time.Millisecond)
		s.number()
		before := runtime.NumGoroutine()
		faults := s.run(t, func() {
			for patience := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
				if time.Now().After(patience) {
					t.Errorf("%d goroutines are left, there were %d before", runtime.NumGoroutine(), before)
					return
				}
			}
		})
		for _, f := range faults {
			t.Error(f)
		}
		if len(faults) > 0 {
			t.Fatalf("with the seed %d", seed)
		}
	}
}
