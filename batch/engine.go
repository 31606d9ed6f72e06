package batch

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// phase is where a record stands. It changes under engine.mu.
type phase uint8

const (
	phasePending  phase = iota // not started, or waiting for a worker again
	phaseStarting              // a worker prepares it, or it is being admitted
	phaseQueued                // waits in a group to be admitted
	phaseAdmitted              // admitted in a group, and waits for a worker
	phaseRunning               // a worker runs it, or it is being settled
	phaseFollower              // waits for its twin's leader, without a worker
	phaseHeld                  // waits to be admitted again, without a worker
	phaseEnded
)

type item struct {
	phase    phase
	blocked  bool          // its lane predecessor has not ended
	prepared bool          // it comes back from phaseHeld
	stop     bool          // its failure stops the batch
	laneNext int32         // the next record of its lane, or -1
	follower int32         // the first record that follows it as a twin, or -1
	next     int32         // the next of the followers that it is one of, or -1
	started  time.Duration // plus one, zero: not yet
}

// engine runs one batch. Workers take records from it, the goroutine of Process supervises, and everything they share
// is behind mu.
type engine struct {
	ctx                            context.Context // the caller's
	handlers                       context.Context // the handlers': ends at the cut
	detached                       context.Context // for settling: ends with the caller's deadline, but not when the caller cancels
	cancelHandlers, cancelDetached func()

	begin    time.Time
	schedule schedule
	records  []Record
	stages   Stages
	options  *Options
	logger   *slog.Logger
	run      Handler // Stages.Run inside the middleware, if there is any
	gates    []gate  // of each record, for the middleware

	mu      sync.Mutex
	ready   sync.Cond // a record became ready, or there will be none
	gone    sync.Cond // a worker ended
	items   []item
	results []Result
	queue   queue
	twins   twins
	open    int           // records without an outcome
	stopped error         // why no record starts any more, or nil
	closed  bool          // the answer has gone out without the late workers: what they report is not heard
	clock   time.Duration // since begin, read when a record ended: the time of a record that starts then
	idle    int           // workers that wait for ready
	workers int           // workers that live, and calls for groups
	busy    int           // of those, the ones that have a record
	late    int           // of those, the ones that were busy when the batch was closed

	// For stages that take groups: see group.go.
	admitting, settling group
	settlements         []Settlement  // of settling
	admissions          []*Admission  // of the records that are admitted, nil without groups
	admitted            indexHeap     // records that are, and that no worker has begun
	ahead               int           // records that are, or that are being admitted
	preparing           int           // workers that may be about to add to admitting
	pace                time.Duration // how long a handler takes, 0: none has ended
	startIn             time.Duration // within which what was admitted last may begin, 0: that does not matter
	ran                 bool          // a handler has begun
	answered            bool          // a group was admitted

	done   chan struct{} // closed when open is 0
	nudged chan struct{} // tells the supervisor of a change in queue.held or settling
}

func newEngine(ctx context.Context, begin time.Time, records []Record, stages Stages, options *Options) *engine {
	e := &engine{
		ctx: ctx, begin: begin, records: records, stages: stages, options: options, logger: options.logger(),
		schedule: newSchedule(ctx, begin, options.Reserve),
		items:    make([]item, len(records)),
		results:  make([]Result, len(records)),
		open:     len(records),
		done:     make(chan struct{}),
		nudged:   make(chan struct{}, 1),
		twins:    newTwins(records),
	}
	e.ready.L, e.gone.L = &e.mu, &e.mu
	if e.schedule.clamped {
		logSafely(func() {
			e.logger.Warn("batch reserve is more than half of the time left and was cut down to that",
				"reserve", options.Reserve, "used", e.schedule.reserve)
		})
	}
	e.contexts()
	e.groups()
	e.middleware()
	for i := range records {
		records[i].position = i + 1
		e.results[i].Record = &records[i]
	}
	e.queue.lanes(records, e.items)
	if e.open == 0 {
		close(e.done)
	}
	return e
}

func (e *engine) contexts() {
	e.detached, e.cancelDetached = context.WithoutCancel(e.ctx), func() {}
	deadline, ok := e.ctx.Deadline()
	if !ok {
		e.handlers, e.cancelHandlers = context.WithCancel(e.ctx)
		return
	}
	e.handlers, e.cancelHandlers = context.WithDeadlineCause(e.ctx, e.schedule.cut, ErrDeadlineNear)
	e.detached, e.cancelDetached = context.WithDeadline(e.detached, deadline)
}

// take hands the calling worker the ready record with the lowest index, and waits for one. It returns -1 if there will
// be none. The record is admitted already if its admission is not nil.
func (e *engine) take() (int, *Admission) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.closed && e.open > 0 {
		if e.stopped == nil && e.handlers.Err() != nil {
			break // the supervisor is about to cut, on its own goroutine
		}
		if i, admission := e.next(); i >= 0 {
			e.busy++
			e.items[i].phase = phaseStarting
			if e.items[i].started == 0 {
				e.items[i].started = e.clock + 1
			}
			return i, admission
		}
		e.idle++
		if e.grouped() {
			e.tick()
			e.send()
		}
		e.ready.Wait()
		e.idle--
		e.tick()
	}
	return -1, nil
}

func (e *engine) next() (int, *Admission) {
	if !e.grouped() {
		return e.queue.pop(e.items), nil
	}
	if i, admitted := e.nextInGroups(); admitted {
		return i, e.admissions[i]
	} else {
		return i, nil
	}
}

// letGo says that the calling goroutine has done with its record.
func (e *engine) letGo() {
	e.busy--
	if e.closed {
		e.late--
	}
}

// tooLate reports whether a handler that has until deadline, if that is not zero, must not start any more.
func (e *engine) tooLate(deadline time.Time) bool {
	return e.handlers.Err() != nil || (!deadline.IsZero() && !time.Now().Before(deadline))
}

// beginHandler moves an admitted record on to its handler, or returns why it must not start: it is too late, or another
// record has stopped the batch while this one was being admitted. An attempt that the store counted replaces the one that
// the source did.
func (e *engine) beginHandler(i, attempt int, deadline time.Time) error {
	if e.tooLate(deadline) {
		return ErrDeadlineNear
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil {
		return e.stopped
	}
	if attempt > 0 {
		e.records[i].Attempt = attempt
	}
	e.items[i].phase = phaseRunning
	e.ran = true
	return nil
}

// beginSink moves a record that is given up on to the sink, and returns false if the answer has gone out. A record that
// never got to its handler is at work from now on too: it is Abandoned if the sink hangs.
func (e *engine) beginSink(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.items[i].phase = phaseRunning
	return true
}

// hold parks the record until the admission's RetryAt.
func (e *engine) hold(i int, a *Admission) {
	var ended []int32
	e.mu.Lock()
	e.tick()
	e.letGo()
	if !e.closed {
		ended = e.holdLocked(ended, i, a)
	}
	e.mu.Unlock()
	e.tell(ended)
}

// holdLocked keeps what the admission says as the record's result, in case the batch ends before its RetryAt.
func (e *engine) holdLocked(ended []int32, i int, a *Admission) []int32 {
	if e.stopped != nil {
		return e.endLocked(ended, i, Settlement{Outcome: a.Outcome, Err: a.Err})
	}
	e.results[i].Outcome, e.results[i].Err = a.Outcome, a.Err
	e.items[i].phase = phaseHeld
	e.items[i].prepared = true
	e.queue.hold(i, a.RetryAt)
	e.nudge()
	return ended
}

// nudge has the supervisor look at what waits for a moment to come.
func (e *engine) nudge() {
	select {
	case e.nudged <- struct{}{}:
	default: // it is told already
	}
}

// end gives a record its outcome, and what follows from that to others.
func (e *engine) end(i int, s Settlement, stop bool) {
	var buffer [8]int32
	e.mu.Lock()
	e.letGo()
	if e.closed {
		// The answer is out and says Abandoned or Skipped. The claim was settled, which is all this worker may do.
		e.mu.Unlock()
		return
	}
	e.tick()
	ended := e.endLocked(buffer[:0], i, s)
	if e.stops(s, stop) {
		ended = e.stopLocked(ended, ErrOrder)
	}
	e.mu.Unlock()
	e.tell(ended)
}

// stops reports whether the outcome ends the whole batch.
func (e *engine) stops(s Settlement, stop bool) bool {
	return (stop || e.options.StopOnFailure) && stopsLane(s)
}

// endLocked records the outcome of i and of those that depend on it: followers share it, the next of its lane is
// ready, or the rest of the lane is skipped. It appends all that ended to ended.
func (e *engine) endLocked(ended []int32, i int, s Settlement) []int32 {
	ended = e.markLocked(ended, i, s)
	it := &e.items[i]
	for f := it.follower; f >= 0; f = e.items[f].next {
		ended = e.endLocked(ended, int(f), e.shared(i, int(f)))
	}
	if stopsLane(s) {
		for n := it.laneNext; n >= 0; n = e.items[n].laneNext {
			if e.items[n].phase == phasePending {
				ended = e.markLocked(ended, int(n), Settlement{Outcome: Skipped, Err: ErrOrder})
			}
		}
	} else if n := it.laneNext; n >= 0 {
		e.items[n].blocked = false
		if e.items[n].phase == phasePending {
			e.makeReady(int(n))
		}
	}
	return ended
}

func (e *engine) markLocked(ended []int32, i int, s Settlement) []int32 {
	it, r := &e.items[i], &e.results[i]
	it.phase = phaseEnded
	r.Outcome, r.Err, r.Unrecorded = s.Outcome, s.Err, s.Unrecorded
	if it.started > 0 {
		r.Duration = e.clock - (it.started - 1)
	}
	e.open--
	if e.open == 0 {
		close(e.done)
	}
	return append(ended, int32(i))
}

// tick reads the clock. Reading it for the start and the end of each record would be a fifth of the engine's work.
func (e *engine) tick() { e.clock = time.Since(e.begin) }

// makeReady lets the queue offer i, and wakes a worker if one sleeps.
func (e *engine) makeReady(i int) {
	e.queue.push(i)
	if e.idle > 0 {
		e.ready.Signal()
	}
}

// stopLocked ends all records that no worker has and that wait for no twin.
func (e *engine) stopLocked(ended []int32, err error) []int32 {
	e.stopped = err
	e.stopGroups(err)
	for i := range e.items {
		if p := e.items[i].phase; p != phasePending && p != phaseHeld {
			continue
		}
		if e.results[i].Outcome != 0 {
			ended = e.endLocked(ended, i, e.unstarted(i, err))
			continue
		}
		// It was not prepared, so nothing follows it, and the rest of its lane is told of err here as well.
		ended = e.markLocked(ended, i, Settlement{Outcome: Skipped, Err: err})
	}
	e.send()
	return ended
}

// tell logs what ended and calls the hooks. It holds no lock: an ended result does not change any more.
func (e *engine) tell(ended []int32) {
	for _, i := range ended {
		result := &e.results[i]
		if !result.Outcome.Done() || result.Unrecorded || result.Outcome == DeadLettered {
			logSafely(func() { logResult(e.ctx, e.logger, result) })
		}
		if len(e.options.Hooks) > 0 {
			eachHook(e.options.Hooks, e.logger, func(h OnRecordFinished) { h.OnRecordFinished(e.ctx, result) })
		}
	}
}

// stopsLane reports whether the rest of the record's lane must not start: it failed, or a redelivery of it would run
// again, behind records that came after it.
func stopsLane(s Settlement) bool { return !s.Outcome.Done() || s.Unrecorded }

// unstarted is the outcome of a record that does not start because of err: what its last admission said, if it was held.
func (e *engine) unstarted(i int, err error) Settlement {
	if held := &e.results[i]; held.Outcome != 0 {
		return Settlement{Outcome: held.Outcome, Err: held.Err}
	}
	return Settlement{Outcome: Skipped, Err: err}
}
