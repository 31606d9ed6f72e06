package stream

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Folded is the records of one event of a window.
type Folded[S any] interface {
	// Prepare decodes the record.
	Prepare(i int) (pipeline.Identity, error)
	// Fold returns the state with the record in it. If it was folded before, it has to be decoded anew, since what it was
	// decoded into may be a part of a state, and have changed with that.
	Fold(ctx context.Context, state S, i int, again bool) (S, error)
	// SequenceNumber is that of Source.
	SequenceNumber(i int) string
}

// fold is a Source that folds its records into a state, one after the other.
//
// The state that is answered must have exactly the records that are told as done. It can have too much: a fold that failed
// may have left its mark in maps and slices, and one that succeeded may be told as failed, by its middleware, or because
// the answer went before it ended. Then the state is made again, from the JSON of an earlier one.
type fold[S any] struct {
	Folded[S]
	initial string // JSON, which the event brought
	shares  bool   // whether a failed fold may show in the state

	mu      sync.Mutex
	base    string // JSON of an earlier state
	based   int    // how many of done are in it
	state   S
	done    []int           // the records in state
	spoiled bool            // a fold has begun and not succeeded
	closed  bool            // what a straggler does is not heard any more
	handler context.Context // of the last handler, for what middleware has put into it
}

func newFold[S any](records Folded[S], initial string) (*fold[S], error) {
	state, err := decodeState[S](initial)
	return &fold[S]{
		Folded: records, initial: initial, base: initial, state: state, shares: sharesMemory(reflect.TypeFor[S]()),
	}, err
}

var errAnswered = errors.New("window was answered without this record")

// Handle folds one record. The engine calls it for one at a time, but a straggler may come here after the answer has gone.
func (f *fold[S]) Handle(ctx context.Context, i int) error {
	spoiled, ok := f.begin(ctx)
	if !ok {
		return errAnswered
	}
	if spoiled { // by a record that was given up
		if err := f.restore(ctx); err != nil {
			return err
		}
	}
	state, err := f.Fold(ctx, f.state, i, false)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errAnswered
	}
	f.state, f.spoiled = state, false
	f.done = append(f.done, i)
	return nil
}

// begin notes that a fold begins. It reports whether one that failed may have left its mark on the state, and is not ok
// once the answer has gone: the state is being encoded then.
func (f *fold[S]) begin(ctx context.Context) (spoiled, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false, false
	}
	spoiled = f.spoiled && f.shares
	f.spoiled, f.handler = true, ctx
	return spoiled, true
}

// restore makes the state again, and keeps its JSON, so that the next time begins there.
func (f *fold[S]) restore(ctx context.Context) error {
	state, err := f.again(ctx, f.base, f.done[f.based:])
	if err != nil {
		return fmt.Errorf("window's state could not be made again after a failure: %w", err)
	}
	text, err := encodeJSON(state)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errAnswered
	}
	f.state, f.base, f.based = state, string(text), len(f.done)
	return nil
}

// again folds records once more.
func (f *fold[S]) again(ctx context.Context, base string, records []int) (S, error) {
	state, err := decodeState[S](base)
	for _, i := range records {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			break
		}
		state, err = f.Fold(ctx, state, i, true)
	}
	return state, err
}

// close returns the state of the records before the checkpoint that makes record failed come again (-1: of all), and the
// index of the first that is told as failed. That is the one that failed, or an earlier one and errNotAgain, if the state
// could not be made again. No straggler changes that state any more.
func (f *fold[S]) close(ctx context.Context, failed int) (state S, first int, err error) {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	done, base, based := f.done, f.base, f.based // which nobody changes any more
	if failed >= 0 {
		k, _ := slices.BinarySearch(done, f.comesAgain(failed))
		done = done[:k]
	}
	if len(done) == len(f.done) && !(f.spoiled && f.shares) {
		return f.state, failed, nil
	}
	if based > len(done) {
		base, based = f.initial, 0
	}
	if state, ok := f.inTime(ctx, base, done[based:]); ok {
		return state, failed, nil
	}
	state, err = decodeState[S](f.initial)
	if err == nil && len(done) > 0 {
		failed, err = done[0], errNotAgain
	}
	return state, failed, err
}

// comesAgain returns the first record that comes again with record i: the records of an aggregate have one sequence
// number, and come again together.
func (f *fold[S]) comesAgain(i int) int {
	for number := f.SequenceNumber(i); i > 0 && number != "" && f.SequenceNumber(i-1) == number; {
		i--
	}
	return i
}

var errNotAgain = errors.New("window's state could not be made again, and is the one that came with the event")

// inTime is again with half of the time that is left, so that there is some for the answer. User code that hangs or
// panics is as one that fails.
func (f *fold[S]) inTime(ctx context.Context, base string, records []int) (state S, ok bool) {
	left := batch.DefaultReserve
	if deadline, limited := ctx.Deadline(); limited {
		left = time.Until(deadline)
	}
	if f.handler != nil {
		ctx = context.WithoutCancel(f.handler)
	}
	ctx, cancel := context.WithTimeout(ctx, left/2)
	defer cancel()
	made := make(chan S, 1)
	go func() {
		defer close(made)
		defer func() { _ = recover() }()
		if state, err := f.again(ctx, base, records); err == nil {
			made <- state
		}
	}()
	select {
	case state, ok = <-made:
	case <-ctx.Done():
	}
	return state, ok
}
