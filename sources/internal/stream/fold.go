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
	// ItemIdentifier is that of Source.
	ItemIdentifier(i int) (id, name string)
	// Len returns how many records there are.
	Len() int
}

// fold is a Source that folds its records into a state, one after the other.
//
// The state that is answered must have exactly the records that are told as done. It can have too much: a fold that failed
// may have left its mark in maps and slices, and one that succeeded may be told as failed or dead-lettered, by its
// middleware, or because the answer went before it ended. Then the state is made again, from the JSON of an earlier one.
// How much there is to make again is bounded: there may be no time for more when the answer has to go.
type fold[S any] struct {
	Folded[S]
	initial string // JSON, which the event brought
	shares  bool   // whether a failed fold may show in the state

	turn chan struct{} // of the one that folds: middleware may call its handler twice, on two goroutines

	mu      sync.Mutex
	base    string        // JSON of an earlier state
	based   int           // how many of done are in it
	spent   time.Duration // on folding since then
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
		turn: make(chan struct{}, 1),
	}, err
}

var errAnswered = errors.New("window was answered without this record")

// Handle folds one record. The engine calls it for one at a time, but a straggler may come here after the answer has gone.
func (f *fold[S]) Handle(ctx context.Context, i int) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if n := len(f.done); n > 0 && f.done[n-1] == i {
		return nil // by an earlier call of the same middleware
	}
	spoiled, ok := f.begin(ctx)
	if !ok {
		return errAnswered
	}
	if spoiled { // by a record that was given up
		if err := f.restore(ctx); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := f.next(ctx, i); err != nil {
		return err
	}
	return f.remember(i, time.Since(begin))
}

func (f *fold[S]) next(ctx context.Context, i int) error {
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

// snapshotAfter is how long records are folded before the state's JSON is kept, or longer where that takes more than a
// tenth of it. When the answer goes at the end of the default reserve, there are 250 milliseconds to make a state again.
const snapshotAfter = 50 * time.Millisecond

// remember keeps the state's JSON from time to time, but not in the middle of an aggregate, whose records come again
// together. A state that cannot be encoded now is an error later.
func (f *fold[S]) remember(i int, took time.Duration) error {
	if f.spent += took; f.spent < snapshotAfter || !f.endsAggregate(i) {
		return nil
	}
	begin := time.Now()
	text, err := encodeJSON(f.state)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errAnswered
	}
	f.base, f.based, f.spent = string(text), len(f.done), -9*time.Since(begin)
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

// restore makes the state again after a fold that failed.
func (f *fold[S]) restore(ctx context.Context) error {
	state, err := f.again(ctx, f.base, f.done[f.based:])
	if err != nil {
		// Not with %w: what another record's error says about trying again is not about this one.
		return fmt.Errorf("window's state could not be made again after a failure: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errAnswered
	}
	f.state = state
	if text, err := encodeJSON(state); err == nil && (len(f.done) == 0 || f.endsAggregate(f.done[len(f.done)-1])) {
		f.base, f.based, f.spent = string(text), len(f.done), 0 // so that the next time begins here
	}
	return nil
}

// endsAggregate reports whether the record behind record i, if there is one, comes again without it.
func (f *fold[S]) endsAggregate(i int) bool {
	return i+1 >= f.Len() || !f.together(i, i+1)
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

// close returns the state that tells what the report says, and the index of the first record that is told as failed (-1:
// none). That is the first that failed, or an earlier one and errNotAgain, if the state could not be made again. No
// straggler changes that state any more.
func (f *fold[S]) close(ctx context.Context, report *batch.Report) (state S, first int, err error) {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	first = FirstFailed(report)
	kept := f.kept(report, first)
	if len(kept) == len(f.done) && !(f.spoiled && f.shares) {
		return f.state, first, nil
	}
	base, based := f.base, f.based // which nobody changes any more
	if !slices.Equal(kept[:min(based, len(kept))], f.done[:based]) {
		base, based = f.initial, 0 // it has a record that must not be in it
	}
	if state, ok := f.inTime(ctx, base, kept[based:]); ok {
		return state, first, nil
	}
	state, err = decodeState[S](base)
	if err == nil && based < len(kept) {
		first, err = f.comesAgain(kept[based]), errNotAgain
	}
	return state, first, err
}

// kept returns the records in the state that belong there: those before the checkpoint, but for those that were
// dead-lettered.
func (f *fold[S]) kept(report *batch.Report, failed int) []int {
	end := len(report.Results)
	if failed >= 0 {
		end = f.comesAgain(failed)
	}
	kept := make([]int, 0, len(f.done))
	for _, i := range f.done {
		if i < end && report.Results[i].Outcome == batch.Succeeded {
			kept = append(kept, i)
		}
	}
	return kept
}

// comesAgain returns the first record that comes again with record i.
func (f *fold[S]) comesAgain(i int) int {
	for i > 0 && f.together(i-1, i) {
		i--
	}
	return i
}

// together reports whether records i and k come again together, as those of an aggregate do: they have one identifier.
func (f *fold[S]) together(i, k int) bool {
	a, _ := f.ItemIdentifier(i)
	b, _ := f.ItemIdentifier(k)
	return a != "" && a == b
}

var errNotAgain = errors.New("window's state could not be made again, and is an earlier one")

// inTime is again with half of the time that is left, so that there is some for the answer. User code that hangs or
// panics is as one that fails; one that heeds its context is waited for.
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
	case <-time.After(left * 3 / 4):
	}
	return state, ok
}
