package batch

import (
	"context"
	"fmt"
	"time"
)

// start starts the workers: fixed ones, so that a batch of ten thousand has no more goroutines than one of ten.
func (e *engine) start() {
	e.workers = min(e.options.concurrency(), len(e.records))
	for range e.workers {
		go (&worker{engine: e}).loop()
	}
}

// supervise returns when every record has ended or the answer has to go.
func (e *engine) supervise() {
	cut := e.handlers.Done()
	var answer, readmit, linger <-chan time.Time
	for {
		select {
		case <-e.done:
			return
		case <-cut:
			e.cut()
			cut = nil
			answer = time.After(time.Until(e.schedule.answerAfter(time.Now())))
		case <-answer:
			e.abandon()
			return
		case <-e.nudged:
		case <-linger:
		case <-readmit:
		}
		readmit = e.readmit()
		linger = e.sendLingering()
	}
}

// cut ends the starting of records, since the handlers' context has ended.
func (e *engine) cut() {
	err := ErrDeadlineNear
	if cause := context.Cause(e.handlers); cause != ErrDeadlineNear {
		err = fmt.Errorf("%w: %w", ErrDeadlineNear, cause)
	}
	e.mu.Lock()
	e.tick()
	ended := e.stopLocked(nil, err)
	e.mu.Unlock()
	e.tell(ended)
}

// abandon ends all records that are left, since the answer has to go.
func (e *engine) abandon() {
	var ended []int32
	e.mu.Lock()
	e.tick()
	for i := range e.items {
		switch e.items[i].phase {
		case phaseStarting:
			ended = e.endLocked(ended, i, e.unstarted(i, ErrDeadlineNear))
		case phaseRunning:
			ended = e.endLocked(ended, i, Settlement{Outcome: Abandoned, Err: ErrAbandoned})
		}
	}
	e.closed, e.late = true, e.busy
	e.mu.Unlock()
	e.tell(ended)
}

// readmit makes held records ready whose time has come, and returns a channel that fires at the next one's time.
func (e *engine) readmit() <-chan time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for {
		i, at := e.queue.nextHeld()
		if i < 0 || e.stopped != nil {
			return nil
		}
		if at.After(now) {
			return time.After(at.Sub(now))
		}
		e.queue.unhold()
		if e.items[i].phase == phaseHeld {
			e.items[i].phase = phasePending
			e.makeReady(i)
		}
	}
}

// join waits for all workers but the late ones, whose handlers ignore their context.
func (e *engine) join() {
	e.mu.Lock()
	e.ready.Broadcast()
	for e.workers > e.late {
		e.gone.Wait()
	}
	late := e.late
	e.mu.Unlock()
	e.cancelHandlers()
	if late == 0 {
		e.cancelDetached() // otherwise it lives until the deadline, for the late workers to settle
	}
}

func (e *engine) report() *Report {
	report := &Report{Results: e.results, Duration: time.Since(e.begin)}
	for i := range e.results {
		report.counts[e.results[i].Outcome]++
		if e.results[i].Unrecorded {
			report.unrecorded++
		}
	}
	return report
}
