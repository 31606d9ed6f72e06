package lambdatest

import (
	"fmt"
	"strconv"
	"sync"
)

// A Moment is a kind of Point.
type Moment int

const (
	// BeforeInvoke: the handler is about to be invoked. A crash here means that it never sees the event.
	BeforeInvoke Moment = iota + 1
	// StoreCall: a store call was made and is about to be applied. A crash here means that it never arrives.
	StoreCall
	// StoreReply: a store call was applied. A crash here means that the function never sees the reply.
	StoreReply
	// AtCheckpoint: the function called Checkpoint.
	AtCheckpoint
	// AfterInvoke: the handler has returned its answer. A crash here means that the answer never arrives.
	AfterInvoke
)

// String returns the name of the constant.
func (m Moment) String() string {
	switch m {
	case BeforeInvoke:
		return "BeforeInvoke"
	case StoreCall:
		return "StoreCall"
	case StoreReply:
		return "StoreReply"
	case AtCheckpoint:
		return "AtCheckpoint"
	case AfterInvoke:
		return "AfterInvoke"
	default:
		return fmt.Sprintf("Moment(%d)", int(m))
	}
}

// Point is a place in an invocation at which it can crash.
type Point struct {
	Moment Moment
	// Name is the store's method (Claim, Complete, Release or Renew, or one for many, such as ClaimAll), or the name given
	// to Function.Call, or the checkpoint's, and otherwise empty.
	Name string
	// Key is the key of the call, as stored, the first one of a call for many, and otherwise empty.
	Key string
	// Keys are those of all requests of a call that has several, in their order, and otherwise nil. They must not be
	// changed.
	Keys []string
	// Invocation counts the function's invocations, from 1.
	Invocation int
	// RecordIDs are those of the batch, in its order: what the answer would name a failed record by. They must not be
	// changed.
	RecordIDs []string
	// Attempt counts how often the batch was delivered, this time included: 1 if all its records come for the first
	// time. Where records have counts of their own, it is the highest in the batch.
	Attempt int
}

// Randomly returns a function that is true with the given probability, to be used as FunctionOptions.Crash or in
// FunctionOptions.StoreFault. The decision about the nth point of one moment, name and key is the same for the same
// seed, in whatever order goroutines get there; that about BeforeInvoke and AfterInvoke goes by the invocation. A
// checkpoint's name should therefore say which record it is about. Seeds that are alike, such as 1 and 2, give unrelated
// decisions.
//
// With the kit's seed set too, a run in a testing/synctest bubble is the same every time as long as no two goroutines race:
// what happens at one moment in overlapping invocations is ordered by the scheduler, and so are the records that share a
// call of a store that takes many.
func Randomly(seed uint64, probability float64) func(Point) bool {
	type place struct {
		moment     Moment
		name, key  string
		invocation int
	}
	var mu sync.Mutex
	visits := make(map[place]int)
	return func(p Point) bool {
		at := place{moment: p.Moment, name: p.Name, key: p.Key}
		if p.Moment == BeforeInvoke || p.Moment == AfterInvoke {
			at.invocation = p.Invocation
		}
		mu.Lock()
		visits[at]++
		n := visits[at]
		mu.Unlock()
		return Seed(seed).Fraction("point", at.moment.String(), at.name, at.key, strconv.Itoa(at.invocation),
			strconv.Itoa(n)) < probability
	}
}
