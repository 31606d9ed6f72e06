package batch

// Outcome is what became of a record. Its zero value means that nothing has become of it yet, and is in no Report.
type Outcome uint8

const (
	// Succeeded: the handler ran and returned nil.
	Succeeded Outcome = iota + 1
	// Replayed: an earlier delivery, or a twin in this batch, finished the record already; the handler did not run.
	Replayed
	// DeadLettered: the record was given up for good and the configured sink took it.
	DeadLettered
	// Ignored: the record needs no work, by an explicit option or by a rule of the platform.
	Ignored
	// Failed: the handler failed, or the record could not be handed to it.
	Failed
	// InProgress: another worker holds a live claim on the record's key.
	InProgress
	// Skipped: the handler was never started, because the deadline was near or an earlier record of the lane failed.
	Skipped
	// Abandoned: the handler was started, ignored its cancelled context, and was still running when the answer had to go;
	// or it had returned, and storing that took too long.
	Abandoned

	outcomes = iota + 1
)

var outcomeNames = [outcomes]string{
	"pending", "succeeded", "replayed", "dead-lettered", "ignored", "failed", "in progress", "skipped", "abandoned",
}

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown outcome"
}

// Done reports whether the record is told to its source as done, so that it does not come back. Whatever is not done
// is told as failed.
func (o Outcome) Done() bool { return o >= Succeeded && o <= Ignored }
