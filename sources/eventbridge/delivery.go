package eventbridge

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

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
	for i := range records {
		e, v := &d.events[i], &d.values[i]
		v.View = View{e}
		own, _ := e.ownKey()
		e.own = options.keyOfRun(e, own)
		records[i] = batch.Record{ID: e.own, Source: e.source, Value: v}
	}
	if len(records) > 1 && !d.setLanes(records) {
		for i := range records {
			records[i].Lane = oneLane
		}
	}
	return records
}

// setLanes sets the records' lanes, and reports whether all are known. The user's function runs on a goroutine of its own,
// which runtime.Goexit in it ends; another one goes on behind that event.
func (d *delivery[T]) setLanes(records []batch.Record) bool {
	if d.handler.options.Lane == nil {
		for i := range records {
			records[i].Lane = View{&d.events[i]}.Group()
		}
		return true
	}
	for next := 0; next < len(records); {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for next < len(records) {
				e, r := &d.events[next], &records[next]
				next++
				d.setLane(e, r)
			}
		}()
		<-ended
	}
	return !slices.ContainsFunc(d.events, func(e event) bool { return e.unordered != nil })
}

// setLane asks for an event's lane. A panic of the user's function is the event's failure.
func (d *delivery[T]) setLane(e *event, r *batch.Record) {
	if e.none {
		return // it is nothing that anybody knows the order of
	}
	known := false
	defer func() {
		if known {
			return
		}
		err := &batch.PanicError{Value: recover()}
		if err.Value != nil {
			err.Stack = debug.Stack()
		}
		e.unordered = err
	}()
	r.Lane = d.handler.options.Lane(View{e})
	known = true
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
		_, missing := e.ownKey()
		err = fmt.Errorf("eventbridge: event %.200q: %w", e.id, missing)
	}
	if h.options.DeadLetter != nil {
		err = batch.Permanent(err) // nobody can count it, and it will not get better
	}
	return pipeline.Identity{}, err
}

// Decode decodes an event that was claimed without being decoded.
func (d *delivery[T]) Decode(i int) error {
	e := &d.events[i]
	if d.handler.options.tooOld(e) == nil {
		d.handler.naming.DecodeClaimed(&d.values[i], &e.problem)
	}
	return e.problem
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
