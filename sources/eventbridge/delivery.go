package eventbridge

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// delivery is the events of one invocation on their way through the pipeline: a pipeline.Source.
type delivery[T any] struct {
	handler *Handler[T]
	events  []event
	values  []Event[T]
}

// oneLane is the lane of all events where that of one is not known.
const oneLane = "\x00all"

// engineRecords returns the events as the engine sees them.
func (d *delivery[T]) engineRecords() []batch.Record {
	options := &d.handler.options
	d.values = make([]Event[T], len(d.events))
	records := make([]batch.Record, len(d.events))
	serial := false
	for i := range records {
		e, v, r := &d.events[i], &d.values[i], &records[i]
		v.View = View{e}
		e.own = options.keyOfRun(e, e.ownKey())
		*r = batch.Record{ID: e.own, Source: e.source, Value: v}
		if len(records) == 1 {
			break // alone it is in order
		}
		var known bool
		r.Lane, known = d.lane(e)
		serial = serial || !known
	}
	if serial {
		for i := range records {
			records[i].Lane = oneLane
		}
	}
	return records
}

// lane returns the event's lane, and whether it is known. A panic of the user's function is the event's failure.
func (d *delivery[T]) lane(e *event) (lane string, known bool) {
	of := d.handler.options.Lane
	if of == nil {
		return View{e}.Group(), true
	}
	if e.problem != nil {
		return "", true // it is never going to be handled
	}
	defer func() {
		if !known {
			e.unordered = &batch.PanicError{Value: recover(), Stack: debug.Stack()}
		}
	}()
	return of(View{e}), true
}

// Prepare names the event.
func (d *delivery[T]) Prepare(i int) (pipeline.Identity, error) {
	h, e, v := d.handler, &d.events[i], &d.values[i]
	guard := h.options.Idempotency
	if guard == nil {
		return h.naming.Prepare(v, &e.problem)
	}
	if h.age.Wanted() {
		h.age.Check(h.options.Logger, e.own, e.at())
	}
	if e.own != "" || (e.problem == nil && h.naming.Key != nil) {
		return h.naming.Prepare(v, &e.problem)
	}
	err := e.problem
	if err == nil {
		if guard.Options().MissingKey == idempotency.MissingKeyRunsUnprotected {
			return pipeline.Identity{}, nil
		}
		err = fmt.Errorf("eventbridge: event %.200q: %w", e.id, e.keyMissing())
	}
	if h.options.DeadLetter != nil {
		err = batch.Permanent(err) // nobody can count it, and it will not get better
	}
	return pipeline.Identity{}, err
}

// Decode decodes an event that was claimed without being decoded.
func (d *delivery[T]) Decode(i int) {
	if e := &d.events[i]; d.handler.options.tooOld(e) == nil {
		d.handler.naming.DecodeClaimed(&d.values[i], &e.problem)
	}
}

// Handle calls the user's function.
func (d *delivery[T]) Handle(ctx context.Context, i int) error {
	e := &d.events[i]
	if e.problem != nil {
		return e.problem
	}
	if e.unordered != nil {
		return e.unordered
	}
	if err := d.handler.options.tooOld(e); err != nil {
		return err
	}
	return d.handler.fn(ctx, &d.values[i])
}
