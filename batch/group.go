package batch

import (
	"errors"
	"slices"
	"sort"
	"time"
)

// Where Stages take groups of records, workers only prepare and run. What they have prepared is collected in admitting,
// and what they have run in settling, and goes out in calls on goroutines of their own, one a call. Records that a call
// has admitted are the first that workers take.
//
// A group to be admitted is sent when it is full, or when a worker has nothing else to do and none is about to add to
// it; it waits for one whose record takes long to prepare for a few milliseconds only. Records are admitted ahead of
// those that can run at once by one group at most, and by no more than handlers of the pace seen so far begin within the
// horizon: see horizon.go.
//
// A group to be settled is sent when it is full. It is sent as well when a worker has nothing else to do, unless others are
// at handlers that have been quick so far: the call for these ends the batch, and those that wait for it end it no later.
// Or it is sent when all handlers in it were so slow that waiting for others gains nothing. But not as the third at a time,
// since those that end meanwhile can share a call, unless none is left that could. Where the next record of a lane waits
// for it, neither quick handlers nor two calls hold it up. When the batch stops, nothing waits.
//
// The supervisor sends what nothing was added to for a while: all workers may be at handlers that take their time, and a
// crash would repeat what is done and not stored. Where records come one by one, slower than that, a group has a limit in
// time. It is several times longer: on a small share of a CPU, which is given and taken in slices of milliseconds, quick
// handlers seem slow and a group takes long to fill, and just there every call saved counts.
type group struct {
	size    int // how many records a call takes best
	records []int
	linger  time.Duration // for how long it waits at all
	since   time.Duration // on the engine's clock, when the first one was added
	last    time.Duration // and the last one
	calls   int           // under way
	urgent  bool          // the next record of a lane waits for one of them
	slow    int           // of the records, those whose handlers were slow
}

const (
	slowHandler  = time.Millisecond      // about what a call for a group takes
	groupQuiet   = 5 * time.Millisecond  // for how long a group waits while nothing is added to it
	groupLinger  = 50 * time.Millisecond // for how long one to be settled waits at all
	partialCalls = 2
)

// groups prepares the engine for stages that take groups. Where any failure stops the batch there are none: whether a
// record has failed must be known before the next one starts. Neither are there where records of lanes run one at a time:
// the next one of a lane would be claimed, and run, behind all that could be claimed together with the one before it.
func (e *engine) groups() {
	if e.options.StopOnFailure || (e.options.concurrency() == 1 && anyLane(e.records)) {
		return
	}
	g := e.stages.Groups()
	if g.Admit > 0 || g.Settle > 0 {
		e.admitting.size, e.settling.size = max(g.Admit, 1), max(g.Settle, 1)
		e.admitting.linger, e.settling.linger = groupQuiet, groupLinger // a group to be admitted waits with idle workers
		e.admissions = make([]*Admission, len(e.records))
	}
}

func anyLane(records []Record) bool {
	return slices.ContainsFunc(records, func(r Record) bool { return r.Lane != "" })
}

func (e *engine) grouped() bool { return e.admissions != nil }

// prepared ends the time in which the worker is about to add to a group, and has not.
func (w *worker) prepared() {
	if w.preparing {
		w.mu.Lock()
		w.notPreparing()
		w.send()
		w.mu.Unlock()
	}
}

// notPreparing is called with the lock.
func (w *worker) notPreparing() {
	if w.preparing {
		w.preparing = false
		w.engine.preparing--
	}
}

// queueAdmission adds the worker's record to the next group to be admitted.
func (w *worker) queueAdmission() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick()
	w.letGo()
	w.notPreparing()
	if w.closed || w.stopped != nil {
		err := w.stopped
		if err == nil {
			err = ErrDeadlineNear
		}
		w.items[w.i].phase = phaseStarting
		w.addToSettle(w.i, Settlement{Outcome: Skipped, Err: err}, false)
	} else {
		w.items[w.i].phase = phaseQueued
		w.addTo(&w.admitting, w.i)
	}
	w.send()
}

// queueSettlement adds the worker's record to the next group to be settled.
func (w *worker) queueSettlement() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick()
	w.letGo()
	if !w.ranAt.IsZero() {
		took := max(w.engine.begin.Add(w.clock).Sub(w.ranAt), 1)
		if w.pace == 0 {
			w.pace = took
		}
		w.pace = max(w.pace+(took-w.pace)/8, 1)
		if took >= slowHandler {
			w.settling.slow++
		}
	}
	w.addToSettle(w.i, w.settlement, w.stop)
	w.send()
}

func (e *engine) addToSettle(i int, s Settlement, stop bool) {
	e.items[i].stop = stop
	e.addTo(&e.settling, i)
	e.settlements = append(e.settlements, s)
	e.settling.urgent = e.settling.urgent || e.laneWaits(i)
}

// addTo takes the clock as it stands: whoever takes the lock to add records calls tick first.
func (e *engine) addTo(g *group, i int) {
	g.last = e.clock
	if len(g.records) == 0 {
		g.since = e.clock
		e.nudge()
	}
	g.records = append(g.records, i)
}

// lingers reports whether the group had waited for long enough when the clock was read last.
func (e *engine) lingers(g *group) bool { return e.clock >= g.until() }

// until is when the group has waited for long enough, unless more is added to it.
func (g *group) until() time.Duration {
	if g.urgent {
		return g.since + groupQuiet
	}
	return min(g.last+groupQuiet, g.since+g.linger)
}

// send makes the calls for the groups whose time has come. It is called, with the lock, after whatever may bring it.
func (e *engine) send() {
	if !e.grouped() {
		return
	}
	if a := &e.admitting; len(a.records) > 0 && e.stopped == nil && e.mayRunAhead(1) && e.maySendAdmission() {
		idle := e.idle > 0 && (e.preparing == 0 || e.lingers(a)) && !(e.wantsMore() && e.queue.ready(e.items))
		if idle || len(a.records) >= e.admitLimit() {
			e.sendAdmission()
		}
	}
	s := &e.settling
	if len(s.records) == 0 {
		return
	}
	idle := e.idle > 0 && len(e.admitted) == 0 && !(e.wantsMore() && e.queue.ready(e.items)) && (s.urgent || !e.joinSoon())
	early := (idle || s.slow == len(s.records)) && (s.urgent || s.calls < partialCalls)
	if early || e.nothingJoins() || len(s.records) >= s.size || e.lingers(s) || e.stopped != nil || e.closed {
		e.sendSettlement()
	}
}

// joinSoon reports whether records are at handlers that have been quick so far.
func (e *engine) joinSoon() bool { return e.pace > 0 && e.pace < slowHandler && e.running() > 0 }

// nothingJoins reports whether no record can be added to the group to be settled before one of the calls under way ends:
// no worker has one, and none is on its way to a worker.
func (e *engine) nothingJoins() bool {
	return e.busy == e.settling.calls && len(e.admitted)+len(e.admitting.records) == 0 && !e.queue.ready(e.items)
}

// sendLingering makes the calls for groups that have waited for long enough. It returns a channel that fires when the
// next one will have, if there is one.
func (e *engine) sendLingering() <-chan time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tick()
	e.send()
	next := time.Duration(-1)
	for _, g := range []*group{&e.admitting, &e.settling} {
		if left := g.until() - e.clock; len(g.records) > 0 && left > 0 && (next < 0 || left < next) {
			next = left
		}
	}
	if next < 0 {
		return nil
	}
	return time.After(next)
}

func (e *engine) sendAdmission() {
	slices.Sort(e.admitting.records) // workers were quick in any order
	// More than a call takes may have been prepared while none could be sent. The rest goes out after this one's answer.
	n := min(len(e.admitting.records), e.admitting.size)
	records := e.admitting.records[:n:n]
	e.admitting.records = slices.Clone(e.admitting.records[n:])
	for _, i := range records {
		e.items[i].phase = phaseStarting
	}
	e.ahead += len(records)
	e.callBegins(&e.admitting)
	go e.admitGroup(records)
}

func (e *engine) sendSettlement() {
	records, settlements := e.settling.records, e.settlements
	sort.Sort(byIndex{records, settlements})
	e.settling.records, e.settlements = nil, nil
	e.settling.urgent, e.settling.slow = false, 0
	e.callBegins(&e.settling)
	go e.settleGroup(records, settlements)
}

// byIndex sorts a group to be settled.
type byIndex struct {
	records     []int
	settlements []Settlement
}

func (s byIndex) Len() int           { return len(s.records) }
func (s byIndex) Less(a, b int) bool { return s.records[a] < s.records[b] }
func (s byIndex) Swap(a, b int) {
	s.records[a], s.records[b] = s.records[b], s.records[a]
	s.settlements[a], s.settlements[b] = s.settlements[b], s.settlements[a]
}

// callBegins accounts for the goroutine of a call like for that of a worker.
func (e *engine) callBegins(g *group) {
	g.calls++
	e.workers++
	e.busy++
	if e.closed {
		e.late++
	}
}

// callEnds is called, without the lock, when the hooks have been told of all that the call has ended.
func (e *engine) callEnds() {
	e.mu.Lock()
	e.workers--
	e.gone.Signal()
	e.mu.Unlock()
}

func (e *engine) admitGroup(records []int) {
	admissions := make([]Admission, len(records))
	returned := false
	defer func() {
		if !returned {
			err := caughtError(recover())
			for k := range admissions {
				admissions[k] = Admission{Outcome: Failed, Err: err}
			}
		}
		e.admissionsAnswered(records, admissions)
	}()
	e.stages.Admit(e.handlers, records, admissions)
	returned = true
}

func (e *engine) admissionsAnswered(records []int, admissions []Admission) {
	defer e.callEnds()
	for k := range admissions {
		if err := admissions[k].Err; err != nil {
			admissions[k].Err = sound(err)
		}
	}
	var ended []int32
	e.mu.Lock()
	e.tick()
	e.letGo()
	e.admitting.calls--
	e.answered = true
	for k, i := range records {
		if by := admissions[k].StartBy; !by.IsZero() {
			e.startIn = max(time.Until(by), 1)
		}
		ended = e.admissionAnswered(ended, i, &admissions[k])
	}
	if e.idle > 0 {
		e.ready.Broadcast() // there may be room for all of them to work
	}
	e.send()
	e.mu.Unlock()
	e.tell(ended)
}

// admissionAnswered lets the record go on to where its admission sends it.
func (e *engine) admissionAnswered(ended []int32, i int, a *Admission) []int32 {
	runs := a.Outcome == 0 || e.wantsSink(a)
	switch {
	case runs && !e.closed && e.stopped == nil:
		e.items[i].phase = phaseAdmitted
		e.admissions[i] = a
		e.admitted.push(i)
		return ended // and it is ahead
	case a.Outcome == 0:
		// The answer came when nothing starts any more, or when the batch's own answer has gone out already: the claim
		// is given back.
		err := e.stopped
		if err == nil {
			err = ErrDeadlineNear
		}
		e.addToSettle(i, Settlement{Outcome: Skipped, Err: err}, false)
	case !a.RetryAt.IsZero():
		e.admissions[i] = nil
		if !e.closed {
			ended = e.holdLocked(ended, i, a)
		}
	default:
		e.addToSettle(i, Settlement{Outcome: a.Outcome, Err: a.Err}, a.Stop)
	}
	e.ahead--
	return ended
}

// wantsSink reports whether a record that is not admitted is given up, which a worker does.
func (e *engine) wantsSink(a *Admission) bool {
	return a.Outcome == Failed && IsPermanent(a.Err) && e.options.DeadLetter != nil
}

func (e *engine) settleGroup(records []int, settlements []Settlement) {
	returned := false
	defer func() {
		if !returned {
			err := caughtError(recover())
			for k := range settlements {
				settlements[k] = Settlement{Outcome: Failed, Err: errors.Join(settlements[k].Err, err)}
			}
		}
		e.settlementsAnswered(records, settlements)
	}()
	e.stages.Settle(e.detached, records, settlements)
	returned = true
}

func (e *engine) settlementsAnswered(records []int, settlements []Settlement) {
	defer e.callEnds()
	for k := range settlements {
		if err := settlements[k].Err; err != nil {
			settlements[k].Err = sound(err)
		}
	}
	var ended []int32
	e.mu.Lock()
	e.tick()
	e.letGo()
	e.settling.calls--
	if !e.closed {
		ended = make([]int32, 0, len(records))
		for k, i := range records {
			ended = e.endLocked(ended, i, settlements[k])
			if e.stops(settlements[k], e.items[i].stop) {
				ended = e.stopLocked(ended, ErrOrder)
			}
		}
	}
	e.send()
	e.mu.Unlock()
	e.tell(ended)
}

// stopGroups ends what is collected and what is admitted when the batch stops. What holds a claim is settled, so that
// its claim is released.
func (e *engine) stopGroups(err error) {
	queued := e.admitting.records
	e.admitting.records = nil
	for _, i := range queued {
		e.items[i].phase = phaseStarting
		e.addToSettle(i, Settlement{Outcome: Skipped, Err: err}, false)
	}
	for _, i := range e.admitted {
		e.items[i].phase = phaseStarting
		s := Settlement{Outcome: Skipped, Err: err}
		if a := e.admissions[i]; a.Outcome != 0 { // it was on its way to the sink
			s = Settlement{Outcome: a.Outcome, Err: a.Err}
		}
		e.addToSettle(int(i), s, false)
	}
	e.ahead -= len(e.admitted)
	e.admitted = nil
}
