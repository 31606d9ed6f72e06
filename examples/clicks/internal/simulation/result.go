package simulation

import (
	"cmp"
	"fmt"
	"strings"
)

// Result is what has happened in a simulation.
type Result struct {
	Clicks  int // sent
	Records int // of the stream, that they were sent in

	Deliveries int // of clicks, each time that the record they are in was delivered; the sum of the three that follow
	Runs       int // calls of the handler
	Replays    int // of what was done before
	NotRun     int // behind a failure, or a crash came first

	Appended     int // clicks, each counted once
	Appends      int // all that were made
	Repeats      []Repeat
	OutOfOrder   []string
	DeadLettered []DeadLetter
	Lost         []string // clicks that were neither appended nor are in the dead-letter queue

	// Of the redelivered segment, whose appends are all repeats: how many it made, and how many of them were out of order.
	// They are not in Repeats and OutOfOrder.
	Redelivered, RedeliveredOutOfOrder int
	// Segment is what of the deliveries the redelivered segment has added.
	Segment Segment

	Invocations int
	Crashes     int // invocations that crashed
	Discarded   int // records that Lambda gave up
}

// Segment is the part of a shard that was delivered again after all was done.
type Segment struct{ Clicks, Runs, Replays int }

// Repeat is a click that was appended once more, other than by the redelivered segment.
type Repeat struct {
	Click, Visitor string
	Shard          string
	// First and Again are the deliveries of the shard, counted from 1, that appended it.
	First, Again int
	// Cause is what the first append lacked, so that nobody could know of it: never more than what was seen to happen.
	Cause string
	// Unexplained is whether the guard had no excuse.
	Unexplained bool
}

// String names the click, the cause and the deliveries.
func (r Repeat) String() string {
	return fmt.Sprintf("%s of %s: %s (appended by delivery %d of %s, again by %d)",
		r.Click, r.Visitor, r.Cause, r.First, shortened(r.Shard), r.Again)
}

// shortened makes "shard 7" of "shardId-000000000007".
func shortened(shardID string) string {
	return "shard " + cmp.Or(strings.TrimLeft(strings.TrimPrefix(shardID, "shardId-"), "0"), "0")
}

// DeadLetter is a click that is in the dead-letter queue.
type DeadLetter struct {
	Click, Visitor string
	Attempts       int // with which it was given up
	Err            string
	Appended       bool // although it was given up
}

// GivenUp returns how many clicks are in the dead-letter queue and were never appended.
func (r *Result) GivenUp() int {
	n := 0
	for _, d := range r.DeadLettered {
		if !d.Appended {
			n++
		}
	}
	return n
}

// Unexplained returns how many repeats the guard had no excuse for. For those of the redelivered segment there is none.
func (r *Result) Unexplained() int {
	n := r.Redelivered
	for _, repeat := range r.Repeats {
		if repeat.Unexplained {
			n++
		}
	}
	return n
}
