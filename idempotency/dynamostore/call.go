package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxConflictRetries = 4
	conflictBackoff    = 25 * time.Millisecond // before the first retry at most, doubled for each further one
)

// operation is a method of Client.
type operation[In, Out any] func(context.Context, In, ...func(*dynamodb.Options)) (Out, error)

// call makes one call to DynamoDB. It retries a conflict with a transaction or with another Region's write: such a
// request was not applied, and the SDK does not retry it.
func call[In, Out any](ctx context.Context, s *Store, op operation[In, Out], in In) (Out, error) {
	for retry := 0; ; retry++ {
		out, err := callOnce(ctx, s, op, in)
		if err == nil || retry == maxConflictRetries || !isConflict(err) {
			return out, err
		}
		// Full jitter: those who met in a conflict must not meet again.
		if !sleep(ctx, rand.N(conflictBackoff<<retry)) {
			return out, err
		}
	}
}

func callOnce[In, Out any](ctx context.Context, s *Store, op operation[In, Out], in In) (out Out, err error) {
	select {
	case s.inFlight <- struct{}{}: // also where ctx is done: the SDK says so then, and what it says is known
	default:
		select {
		case s.inFlight <- struct{}{}:
		case <-ctx.Done():
			return out, fmt.Errorf("wait for one of %d calls in flight to end: %w", s.options.MaxInFlight, ctx.Err())
		}
	}
	defer func() { <-s.inFlight }()
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	return op(ctx, in)
}

func isConflict(err error) bool {
	var transaction *types.TransactionConflictException
	var replica *types.ReplicatedWriteConflictException
	return errors.As(err, &transaction) || errors.As(err, &replica)
}

// sleep waits for d, and reports false instead of waiting if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
