package audit

import (
	"context"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Log is where the rows go.
type Log interface {
	Append(ctx context.Context, e Entry) error
}

// DeadLetter takes a change that is given up, see batch.Options.
type DeadLetter func(ctx context.Context, r *batch.Record, cause error) error

// MaxAttempts is how often a change is tried before it goes to the dead-letter queue. The mapping's MaximumRetryAttempts
// in ../template.yaml must be more: when those run out, Lambda discards the batch, the good changes with it. How much more
// is written there.
const MaxAttempts = 3

// NewHandler returns a handler that appends a row to the log for each change of an order: the changes of one order in
// their order, those of different orders at once. The guard has idempotency.Options.CountAttempts, and deadLetter takes
// what has failed MaxAttempts times.
//
// A change that cannot be logged holds up the later ones of its order alone. Lambda delivers everything behind it again,
// and the guard sees to it that what is in the log already is not appended once more.
func NewHandler(
	log Log, guard *idempotency.Guard, deadLetter DeadLetter, optFns ...func(*dynamodbstream.Options),
) (*dynamodbstream.Handler[Order], error) {
	write := func(ctx context.Context, c *dynamodbstream.Change[Order]) error {
		e, err := NewEntry(c)
		if err != nil {
			return err
		}
		return log.Append(ctx, e)
	}
	options := append([]func(*dynamodbstream.Options){func(o *dynamodbstream.Options) {
		o.Idempotency, o.MaxAttempts, o.DeadLetter = guard, MaxAttempts, deadLetter
	}}, optFns...)
	return dynamodbstream.NewHandler(write, options...)
}
