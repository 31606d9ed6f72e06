package batch

import (
	"fmt"
	"strings"
	"time"
)

// Result is what became of one record.
type Result struct {
	Record  *Record
	Outcome Outcome
	// Err is why a record that is not done is not done, and why a DeadLettered one was given up. A Succeeded record has
	// one only if it is Unrecorded.
	Err error
	// Unrecorded is whether the record is done, but could not be recorded as done, so that a redelivery would run
	// again. The rest of its lane was not started.
	Unrecorded bool
	// Duration is how long the record took from the start of its decoding to its outcome, waits included. It is zero
	// for a record that was not started.
	Duration time.Duration
}

// Report is what became of a batch. The caller of Process owns it.
type Report struct {
	// Results are in input order, one for each record.
	Results []Result
	// Duration is how long the batch took.
	Duration time.Duration

	counts     [outcomes]int
	unrecorded int
}

// Count returns how many records have the outcome.
func (r *Report) Count(o Outcome) int {
	if int(o) < len(r.counts) {
		return r.counts[o]
	}
	return 0
}

// Unrecorded returns how many records are done, but not recorded as done.
func (r *Report) Unrecorded() int { return r.unrecorded }

// Failed returns how many records are told to the source as failed.
func (r *Report) Failed() int {
	n := 0
	for o, count := range r.counts {
		if !Outcome(o).Done() {
			n += count
		}
	}
	return n
}

// Err returns the error that on asks for, a *FailedError, or nil.
func (r *Report) Err(on ErrorOn) error {
	failed := r.Failed()
	switch {
	case on == ErrorOnAnyFailure && failed > 0:
	case on == ErrorOnTotalFailure && failed > 0 && failed == len(r.Results):
	default:
		return nil
	}
	e := &FailedError{Failed: failed, Records: len(r.Results)}
	for i := range r.Results {
		if result := &r.Results[i]; !result.Outcome.Done() {
			e.First, e.ID = result.Err, result.Record.ID
			break
		}
	}
	return e
}

// String returns a sentence such as "5 records in 12ms: 3 succeeded, 1 replayed, 1 failed".
func (r *Report) String() string {
	var b strings.Builder
	noun := "records"
	if len(r.Results) == 1 {
		noun = "record"
	}
	fmt.Fprintf(&b, "%d %s in %v", len(r.Results), noun, r.Duration.Round(time.Microsecond))
	separator := ": "
	for o, count := range r.counts {
		if count > 0 {
			fmt.Fprintf(&b, "%s%d %s", separator, count, Outcome(o))
			separator = ", "
		}
	}
	if r.unrecorded > 0 {
		fmt.Fprintf(&b, " (%d unrecorded)", r.unrecorded)
	}
	return b.String()
}
