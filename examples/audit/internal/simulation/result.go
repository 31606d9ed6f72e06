package simulation

import "fmt"

// Result is what has happened in a simulation.
type Result struct {
	Changes     int // records of the stream
	Redelivered int // records that came again because the mapping had lost its checkpoint
	Retries     int // deliveries of a record that came back
	Deliveries  int // the sum of the three

	Logged int // changes, each counted once
	Rows   int // all that were appended
	// Repeats are the rows of a change beyond its first.
	Repeats []Repeat
	// OutOfOrder are the changes whose first row came after a row of a later change of the same order.
	OutOfOrder   []string
	DeadLettered []DeadLetter
	// Lost are the changes that are neither in the log nor in the dead-letter queue.
	Lost []string

	Replays      int // deliveries of what was done before
	Crashes      int // invocations that crashed
	LogThrottled int // appends that the log refused
	Throttled    int // store calls that were refused
	RepliesLost  int // store calls that were applied without anyone knowing
}

// Repeat is a change that was logged once more.
type Repeat struct {
	Change string
	// First and Again are the invocations that logged it.
	First, Again int
	// Cause is what the first row lacked, so that nobody could know of it: never more than what was seen to happen.
	Cause string
	// Unexplained is whether the guard had no excuse.
	Unexplained bool
}

// String names the change, the cause and the invocations.
func (r Repeat) String() string {
	return fmt.Sprintf("%s: %s (logged by invocation %d, and again by %d)", r.Change, r.Cause, r.First, r.Again)
}

// DeadLetter is a change that the function has moved to the dead-letter queue.
type DeadLetter struct {
	Change string
	Err    error // of its last attempt
	Logged bool  // although it was logged
}

// Moved returns how many changes are in the dead-letter queue and were never logged.
func (r *Result) Moved() int {
	n := 0
	for _, d := range r.DeadLettered {
		if !d.Logged {
			n++
		}
	}
	return n
}

// Unexplained returns how many repeats the guard had no excuse for.
func (r *Result) Unexplained() int {
	n := 0
	for _, repeat := range r.Repeats {
		if repeat.Unexplained {
			n++
		}
	}
	return n
}
