package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// stage is what a worker is at with its record.
type stage uint8

const (
	stageNone stage = iota // it has no record
	stagePrepare
	stageAdmit
	stageBegin // with a record that was admitted in a group
	stageRun
	stageDeadLetter
	stageSettle
)

// worker takes one record after the other through the stages. User code runs on its goroutine and may panic or end it,
// so where it stands is kept here and not on the stack.
type worker struct {
	*engine
	i          int
	stage      stage
	preparing  bool            // it may be about to add its record to a group
	admission  *Admission      // of a record that was admitted in a group, or is about to run
	context    context.Context // the handler's
	cancel     context.CancelFunc
	sinkEnd    time.Time // when the sink's context ends
	ranAt      time.Time // when the handler began, where that matters
	settlement Settlement
	stop       bool // the failure stops the whole batch
	finished   bool

	// What a call of a stage for one record takes.
	one           [1]int
	oneAdmission  [1]Admission
	oneSettlement [1]Settlement
}

// loop works until no record is left.
func (w *worker) loop() {
	defer w.leave()
	for {
		if w.stage == stageNone {
			if w.i, w.admission = w.take(); w.i < 0 {
				w.finished = true
				return
			}
			w.settlement, w.stop, w.context, w.sinkEnd, w.ranAt = Settlement{}, false, nil, time.Time{}, time.Time{}
			if w.admission != nil {
				w.stage = stageBegin
			} else {
				w.stage, w.preparing = stagePrepare, w.grouped()
			}
		}
		w.work()
	}
}

// leave accounts for the end of the worker's goroutine. If runtime.Goexit ended it, another goroutine goes on where it
// stood. The handler has ended by then, and so have its deferred functions, which lie deeper in the stack: whoever goes
// on may settle its claim.
func (w *worker) leave() {
	if !w.finished {
		go w.loop()
		return
	}
	w.mu.Lock()
	w.workers--
	w.gone.Signal()
	w.mu.Unlock()
}

// work takes the record from the stage it is at to its end, or to a panic.
func (w *worker) work() {
	defer w.caught()
	for w.stage != stageNone {
		switch w.stage {
		case stagePrepare:
			w.prepare()
		case stageAdmit:
			w.admit()
		case stageBegin:
			w.beginAdmitted()
		case stageRun:
			w.runHandler()
		case stageDeadLetter:
			w.deadLetter()
		case stageSettle:
			w.settle()
		}
	}
}

// caught turns a panic into the failure of the record. After Goexit, which recover does not stop, it does the same
// before the goroutine ends.
func (w *worker) caught() {
	if w.stage == stageNone {
		return // all is well
	}
	err := caughtError(recover())
	switch w.stage {
	case stagePrepare, stageRun:
		w.conclude(err)
	case stageAdmit, stageBegin:
		w.settlement, w.stage = Settlement{Outcome: Failed, Err: err}, stageSettle
	case stageDeadLetter:
		w.settlement, w.stage = Settlement{Outcome: Failed, Err: errors.Join(w.settlement.Err, sinkError(err))}, stageSettle
	case stageSettle:
		w.stage = stageNone
		w.end(w.i, Settlement{Outcome: Failed, Err: errors.Join(w.settlement.Err, err)}, w.stop)
	}
}

// caughtError is the error of a stage that panicked with value, or that called runtime.Goexit if that is nil. It is called
// by a deferred function while the stack is the panic's.
func caughtError(value any) error {
	err := &PanicError{Value: value}
	if value != nil {
		err.Stack = debug.Stack()
	}
	if e, ok := value.(error); ok {
		err.Value = sound(e)
	}
	return err
}

func (w *worker) prepare() {
	if w.items[w.i].prepared {
		w.stage = stageAdmit
		return
	}
	key, err := w.stages.Prepare(w.handlers, w.i)
	if err != nil {
		w.conclude(err)
		return
	}
	leader, ok := w.leader(w.i, key)
	if !ok {
		w.skip(ErrDeadlineNear)
		return
	}
	if leader < 0 {
		w.stage = stageAdmit
		return
	}
	if err := w.stages.Twin(leader, w.i); err != nil {
		w.conclude(err)
		return
	}
	w.stage = stageNone
	w.follow(leader)
}

func (w *worker) admit() {
	if w.handlers.Err() != nil {
		w.skip(ErrDeadlineNear) // decoding took too long to claim anything now
		return
	}
	if w.grouped() {
		w.stage = stageNone
		w.queueAdmission()
		return
	}
	w.admitAlone()
}

func (w *worker) admitAlone() {
	w.one[0], w.oneAdmission[0] = w.i, Admission{}
	w.stages.Admit(w.handlers, w.one[:], w.oneAdmission[:])
	a := &w.oneAdmission[0]
	if a.Err != nil {
		a.Err = sound(a.Err)
	}
	switch {
	case a.Outcome == 0:
		w.begin(a)
	case !a.RetryAt.IsZero():
		w.stage = stageNone
		w.hold(w.i, a)
	default:
		w.refuse(a)
	}
}

// beginAdmitted goes on with a record that was admitted in a group and has waited for a worker since.
func (w *worker) beginAdmitted() {
	switch a := w.admission; {
	case a.Outcome != 0:
		w.refuse(a)
	case !a.StartBy.IsZero() && time.Now().After(a.StartBy):
		// By this worker, and not in a group: it would be overtaken there, and one worker alone would have all claims
		// renewed that wait, most of which must wait on.
		w.admitAlone()
	default:
		w.begin(a)
	}
}

// refuse goes on with a record that is not admitted.
func (w *worker) refuse(a *Admission) {
	w.stop = a.Stop
	w.settlement, w.stage = Settlement{Outcome: a.Outcome, Err: a.Err}, stageSettle
	if w.wantsSink(a) {
		w.stage = stageDeadLetter
	}
}

// begin lets the record go on to its handler, if it is not too late already, after a claim whose reply took long.
func (w *worker) begin(a *Admission) {
	if w.tooLate(a.Deadline) {
		w.skip(ErrDeadlineNear)
		return
	}
	w.stage, w.admission = stageRun, a
	w.context, w.sinkEnd = a.Context, a.End
	if w.context == nil {
		w.context = w.handlers
	}
}

// limit gives the handler's context its end.
func (w *worker) limit() {
	a := w.admission
	end, cause := a.Deadline, a.Cause
	if timeout := w.options.Timeout; timeout > 0 {
		if t := time.Now().Add(timeout); end.IsZero() || t.Before(end) {
			end, cause = t, ErrTimeout
		}
	}
	if !end.IsZero() {
		w.context, w.cancel = context.WithDeadlineCause(w.context, end, cause)
	}
}

// skip leaves the record unstarted.
func (w *worker) skip(err error) {
	w.prepared()
	w.settlement, w.stage = Settlement{Outcome: Skipped, Err: err}, stageSettle
}

func (w *worker) runHandler() {
	if w.grouped() {
		w.ranAt = time.Now()
	}
	err := w.stages.Begin(w.i)
	// After a Begin that took long the handler does not start: another worker may have the claim by now, and run.
	if late := w.beginHandler(w.i, w.admission.Attempt, w.admission.Deadline); late != nil {
		w.skip(late)
		return
	}
	if err != nil {
		w.conclude(err)
		return
	}
	w.limit()
	if len(w.options.Middleware) == 0 {
		err = w.stages.Run(w.context, w.i)
	} else {
		err = w.runMiddleware()
	}
	w.conclude(err)
}

// runMiddleware returns after both the middleware and the handler have returned. A middleware that gives up on a handler
// and leaves it running must not free its claim: the next delivery would run beside it.
func (w *worker) runMiddleware() error {
	defer w.gates[w.i].close()
	return w.run(w.context, &w.records[w.i])
}

// conclude decides what the handler's return, or a failure before it, makes of the record.
func (w *worker) conclude(err error) {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	w.prepared()
	w.stage = stageSettle
	if err == nil {
		w.settlement.Outcome = Succeeded
		return
	}
	err = sound(err)
	w.settlement = Settlement{Outcome: Failed, Err: err}
	attempt, limit := w.records[w.i].Attempt, w.options.MaxAttempts
	if w.options.DeadLetter != nil && (IsPermanent(err) || (limit > 0 && attempt >= limit)) {
		w.stage = stageDeadLetter
	}
}

// deadLetter hands a record that is given up to the sink. A worker that comes here after the answer has gone out only
// lets go of its claim: the record is told as failed and comes back.
func (w *worker) deadLetter() {
	if w.beginSink(w.i) {
		ctx, cancel := w.sinkContext()
		defer cancel()
		if err := w.options.DeadLetter(ctx, &w.records[w.i], w.settlement.Err); err != nil {
			w.settlement.Err = errors.Join(w.settlement.Err, sinkError(err))
		} else {
			w.settlement.Outcome = DeadLettered
		}
	}
	w.stage = stageSettle
}

// sinkContext returns a context with the values of the handler's that ends with the claim or with the batch's deadline,
// whichever is first, and not when the handler's does.
func (w *worker) sinkContext() (context.Context, context.CancelFunc) {
	if w.context == nil {
		return w.detached, func() {} // the record never got to its handler
	}
	end, limited := w.detached.Deadline()
	if !w.sinkEnd.IsZero() && (!limited || w.sinkEnd.Before(end)) {
		end, limited = w.sinkEnd, true
	}
	ctx := context.WithoutCancel(w.context)
	if !limited {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end)
}

func (w *worker) settle() {
	if w.grouped() {
		w.stage = stageNone
		w.queueSettlement()
		return
	}
	w.one[0], w.oneSettlement[0] = w.i, w.settlement
	w.stages.Settle(w.detached, w.one[:], w.oneSettlement[:])
	settled := w.oneSettlement[0]
	if settled.Err != nil {
		settled.Err = sound(settled.Err)
	}
	w.stage = stageNone
	w.end(w.i, settled, w.stop)
}

func sinkError(err error) error { return fmt.Errorf("batch: dead-letter sink: %w", sound(err)) }
