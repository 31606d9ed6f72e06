package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/oncekit/oncekit/idempotency"
)

// Complete implements idempotency.Store with one UpdateItem. A result that DynamoDB cannot hold is left out, at the
// cost of a second one if only the server can tell that.
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if s.err != nil {
		return s.err
	}
	return s.withResult(r, func(data types.AttributeValue) error { return s.complete(ctx, r, data) })
}

// withResult calls write with the result of r, and again without it if DynamoDB does not take it.
func (s *Store) withResult(r idempotency.CompleteRequest, write func(data types.AttributeValue) error) error {
	data, notStored := s.result(r)
	err := write(data)
	if data != nil && err != nil {
		if refusal := s.resultRefused(r, err); refusal != nil {
			// The work is done. That its result cannot be replayed is no reason to do it again.
			notStored = refusal
			err = write(nil)
		}
	}
	if err != nil {
		return err
	}
	return notStored
}

func (s *Store) complete(ctx context.Context, r idempotency.CompleteRequest, data types.AttributeValue) error {
	statement, values := s.completion(r, data)
	e, err := s.update(ctx, r.Key, statement, values)
	if err != nil || e == nil {
		return err
	}
	return s.judgeComplete(r, e)
}

// completion returns the update that completes the claim, with the result data unless it is nil.
func (s *Store) completion(
	r idempotency.CompleteRequest, data types.AttributeValue,
) (*statement, map[string]types.AttributeValue) {
	statement := &s.statements.complete
	values := map[string]types.AttributeValue{
		":owner":      text(r.Owner),
		":inProgress": inProgress,
		":completed":  completed,
		":now":        seconds(r.Now),
		":expiry":     seconds(r.Expiry),
	}
	if data != nil {
		statement = &s.statements.completeData
		values[":data"] = data
	}
	return statement, values
}

// judgeComplete returns the answer to a completion that e has refused.
func (s *Store) judgeComplete(r idempotency.CompleteRequest, e *idempotency.Entry) error {
	switch {
	case e.Status == idempotency.Completed && e.Owner == r.Owner:
		// The SDK sent the request twice: the first one was applied and its reply was lost.
		return nil
	case e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(*e, r.Now):
		return s.contradiction(r.Key)
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}

// leastItemSize returns how large the completed item is at least, with a result of so many bytes: without the fingerprint,
// which is not known here, and without the expiry's digits. Names and values count, in bytes of UTF-8 ("DynamoDB item
// sizes and formats", DynamoDB Developer Guide). What is just above the limit is the server's to refuse.
func (s *Store) leastItemSize(r idempotency.CompleteRequest, result int) int {
	o := &s.options
	size := len(o.KeyAttribute) + len(r.Key) + len(o.StatusAttribute) + len(completed.Value) + len(o.ExpiryAttribute) +
		len(o.OwnerAttribute) + len(r.Owner) + len(o.DataAttribute) + result
	if o.sorted() {
		size += len(o.SortKeyAttribute) + len(o.partitionValue(r.Key))
	}
	return size
}

func (s *Store) tooLarge(r idempotency.CompleteRequest) error {
	return fmt.Errorf("%w: %s: the result has %d bytes, and an item with all its attributes at most %d; "+
		"return less, or keep the result elsewhere and return a reference to it",
		idempotency.ErrResultNotStored, s.where(r.Key), len(r.Data), maxItem)
}

// resultRefused returns an ErrResultNotStored if err says that DynamoDB does not take a completion because of its result.
func (s *Store) resultRefused(r idempotency.CompleteRequest, err error) error {
	switch {
	case isItemTooLarge(err):
		return s.tooLarge(r)
	case isInvalid(err) && !isUnusable(err):
		// Nobody but the server knows all that it refuses of a value: how deep it may be, for one.
		return fmt.Errorf("%w: %s: DynamoDB does not take the result: %w", idempotency.ErrResultNotStored, s.where(r.Key), err)
	default:
		return nil
	}
}

// isItemTooLarge reports whether DynamoDB refused an item for its size. There is no code for it, only the texts "Item
// size has exceeded the maximum allowed size" and "Item size to update has exceeded the maximum allowed size".
func isItemTooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException" &&
		strings.Contains(api.ErrorMessage(), "Item size") && strings.Contains(api.ErrorMessage(), "exceeded")
}

// isInvalid reports whether DynamoDB refused a request as one that it would refuse from anyone.
func isInvalid(err error) bool { return errorCode(err) == "ValidationException" }

// update writes one transition with UpdateItem. It returns nil if it was applied, and the entry that stands in its
// way if it was refused.
func (s *Store) update(
	ctx context.Context, key string, statement *statement, values map[string]types.AttributeValue,
) (*idempotency.Entry, error) {
	_, err := call(ctx, s, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           s.table,
		Key:                                 s.key(key),
		ConditionExpression:                 statement.condition,
		UpdateExpression:                    statement.update,
		ExpressionAttributeNames:            statement.names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		return nil, nil
	}
	return s.refused(ctx, "UpdateItem", key, err)
}

// refused returns the entry because of which a write was refused, if that is what err says.
func (s *Store) refused(ctx context.Context, operation, key string, err error) (*idempotency.Entry, error) {
	var refusal *types.ConditionalCheckFailedException
	if !errors.As(err, &refusal) {
		return nil, s.failure(operation, key, err)
	}
	e, err := s.found(ctx, key, refusal)
	if err != nil {
		return nil, err
	}
	return &e, nil
}
