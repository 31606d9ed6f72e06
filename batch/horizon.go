package batch

import "time"

// admitHorizon is for how long handlers may be busy with what is admitted. What is admitted and waits holds a claim that
// others may wait for.
const admitHorizon = 500 * time.Millisecond

// nextInGroups returns the record that a worker should take, -1 if there is none, and whether it is admitted. Preparing
// comes first while too little is admitted to keep all workers busy until the next group is.
func (e *engine) nextInGroups() (i int, admitted bool) {
	if e.wantsMore() {
		if i := e.queue.pop(e.items); i >= 0 {
			e.preparing++
			return i, false
		}
	}
	if len(e.admitted) == 0 {
		return -1, false
	}
	i = e.admitted.pop()
	e.ahead--
	e.busy++ // take counts the worker after send
	e.send()
	e.busy--
	if e.idle > 0 && e.wantsMore() && e.queue.ready(e.items) {
		e.ready.Signal()
	}
	return i, true
}

// wantsMore reports whether another record should be prepared.
func (e *engine) wantsMore() bool {
	return e.mayRunAhead(len(e.admitting.records)+e.preparing+1) && len(e.admitting.records) < e.admitLimit()
}

// mayRunAhead reports whether n more records may be admitted. Where a handler takes longer than what is admitted should
// wait, it is no more than there are workers without one.
func (e *engine) mayRunAhead(n int) bool {
	workers := e.options.concurrency()
	if e.pace > e.horizon() {
		return e.ahead+n <= workers-e.running()
	}
	return e.ahead <= workers
}

// running is how many records are past their admission and not in a group to be settled.
func (e *engine) running() int {
	return e.busy - e.admitting.calls - e.settling.calls - e.preparing
}

// maySendAdmission reports whether the answer of another call for admissions cannot bring records out of order where they
// run one at a time: the one sent last may be answered first.
func (e *engine) maySendAdmission() bool {
	return e.admitting.calls == 0 || e.options.concurrency() > 1
}

// horizon is for how long what is admitted should wait at most. Half of what it may wait leaves as much for those that
// begin before it: it need not be admitted once more, which costs a write.
func (e *engine) horizon() time.Duration {
	if e.startIn > 0 {
		return min(admitHorizon, e.startIn/2)
	}
	return admitHorizon
}

// admitLimit is how many records the next group to be admitted has at most: as many as there are workers, which can all
// start at once if they are free, or more if those that wait begin within the horizon.
func (e *engine) admitLimit() int {
	size, concurrency := e.admitting.size, e.options.concurrency()
	switch {
	case e.pace > 0:
		size = min(size, max(int(e.horizon()*time.Duration(concurrency)/e.pace), concurrency))
	case e.ran || !e.answered: // nobody knows yet how fast handlers are
		size = min(size, max(e.settling.size, concurrency))
	}
	return size
}
