package batch

import (
	"context"
	"time"
)

// Stages is what a source does with the records of one batch, which it names by their index. The engine calls the
// stages of a record in order, each at most once unless said otherwise, and never two of one record at the same time.
// It does so for several records at once. A stage that panics or calls runtime.Goexit fails its record, or all those it
// was called for.
//
// Process is RunStages with little more than Run. Of this package it is the part that is most likely to change.
type Stages interface {
	// Prepare decodes the record and returns the key of its work. Records of one batch with the same key are twins: the
	// first that gets here leads, and the others share its outcome. An empty key means that only Record.ID makes twins.
	Prepare(ctx context.Context, i int) (key string, err error)

	// Twin returns nil if follower is the same work as leader, whose key it has, and otherwise the error it fails with.
	// Both are prepared.
	Twin(leader, follower int) error

	// Groups returns how many records Admit and Settle take best in one call. It is called once, before all others.
	Groups() Groups

	// Admit decides whether each of the records may run, and sets the Admission of each, which is the zero one before.
	// It is called again for a record after an Admission with RetryAt, and after one whose StartBy has passed.
	Admit(ctx context.Context, records []int, admissions []Admission)

	// Begin is called for an admitted record that is about to run, outside of the middleware, which sees what it does. Its
	// error fails the record, without the middleware. If no time is left when it returns, the record does not run.
	Begin(i int) error

	// Run calls the user's function. It is not called if Admit says so, or if no time is left.
	Run(ctx context.Context, i int) error

	// Settle makes the outcomes last, and changes them to those that hold in the end. It is called after Run returned,
	// or after runtime.Goexit ended it, once for every record for which Prepare was called, but not for followers and
	// not for one that was to be admitted again when its time ran out. Its context is cancelled neither with the
	// batch's nor with the handler's, but ends at the batch's deadline. The outcomes it is given are Succeeded,
	// DeadLettered, Failed, Skipped and what Admit set.
	Settle(ctx context.Context, records []int, settlements []Settlement)
}

// Groups is how many records a call of Stages.Admit or Stages.Settle takes best. Zero means that no groups are formed: the
// worker that has a record makes the calls for that one, and waits. Otherwise workers only prepare and run, and calls for
// groups of records are made beside them: see group.go for when.
type Groups struct {
	Admit, Settle int
}

// Admission is the answer of Stages.Admit. Its zero value admits the record.
type Admission struct {
	// Context is the handler's context, derived from the one given to Admit. Nil means that one itself.
	Context context.Context
	// Deadline is when the handler's context ends if it does not end before that, and Cause is the cause it ends with
	// then. Zero means none.
	Deadline time.Time
	Cause    error
	// End is when the dead-letter sink's context ends if it does not end before that. Zero means none.
	End time.Time
	// Attempt is the number of this attempt, if the store counted it. Zero leaves Record.Attempt as it is.
	Attempt int

	// Outcome is the record's outcome if it is not admitted, and Err the reason. A Failed record is handed to the
	// dead-letter sink only if its error is Permanent, since what stands in the way is not its own fault otherwise.
	Outcome Outcome
	Err     error
	// RetryAt asks for another call of Admit at that time, if the batch still runs then. The record holds no worker
	// while it waits. If the batch ends before, Outcome and Err hold.
	RetryAt time.Time
	// StartBy is until when the record may start. One that waited for a worker for longer is admitted once more. Zero
	// means that it does not matter.
	StartBy time.Time
	// Stop makes a failure stop all records that are not started yet.
	Stop bool
}

// Settlement is an outcome on its way to the Report.
type Settlement struct {
	Outcome Outcome
	Err     error
	// Unrecorded is whether a record that is done could not be recorded as done.
	Unrecorded bool
}

// handlerStages makes Stages of a Handler.
type handlerStages struct {
	records []Record
	handler Handler
}

func (s *handlerStages) Prepare(_ context.Context, i int) (string, error) {
	return s.records[i].Key, nil
}
func (s *handlerStages) Twin(int, int) error                         { return nil }
func (s *handlerStages) Groups() Groups                              { return Groups{} }
func (s *handlerStages) Admit(context.Context, []int, []Admission)   {}
func (s *handlerStages) Begin(int) error                             { return nil }
func (s *handlerStages) Run(ctx context.Context, i int) error        { return s.handler(ctx, &s.records[i]) }
func (s *handlerStages) Settle(context.Context, []int, []Settlement) {}
