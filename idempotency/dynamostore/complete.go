package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/oncekit/oncekit/idempotency"
)

// Complete implements idempotency.Store with one UpdateItem. A result that DynamoDB cannot hold is left out, at the
// cost of a second one if only the server can tell that the item is too large.
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	if s.err != nil {
		return s.err
	}
	notStored := s.unfit(r)
	data := r.Data
	if notStored != nil {
		data = nil
	}
	err := s.complete(ctx, r, data)
	if data != nil && isItemTooLarge(err) {
		// The work is done. That its result cannot be replayed is no reason to do it again.
		notStored = s.tooLarge(r)
		err = s.complete(ctx, r, nil)
	}
	if err != nil {
		return err
	}
	return notStored
}

func (s *Store) complete(ctx context.Context, r idempotency.CompleteRequest, data []byte) error {
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
		values[":data"] = text(string(data))
	}
	e, err := s.update(ctx, r.Key, statement, values)
	switch {
	case err != nil:
		return err
	case e == nil:
		return nil
	case e.Status == idempotency.Completed && e.Owner == r.Owner:
		// The SDK sent the request twice: the first one was applied and its reply was lost.
		return nil
	case e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(*e, r.Now):
		return s.contradiction(r.Key)
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}

// unfit returns why r.Data cannot be stored, as far as that can be told without a request.
func (s *Store) unfit(r idempotency.CompleteRequest) error {
	if r.Data == nil {
		return nil
	}
	if !utf8.Valid(r.Data) {
		return fmt.Errorf("%w: %s: the result's %d bytes are not valid UTF-8, which attribute %q (S) must be",
			idempotency.ErrResultNotStored, s.where(r.Key), len(r.Data), s.options.DataAttribute)
	}
	if s.leastItemSize(r) > maxItem {
		return s.tooLarge(r)
	}
	return nil
}

// leastItemSize returns how large the completed item is at least: without the fingerprint, which is not known here,
// and without the expiry's digits. Names and values count, in bytes of UTF-8 ("DynamoDB item sizes and formats",
// DynamoDB Developer Guide). What is just above the limit is the server's to refuse.
func (s *Store) leastItemSize(r idempotency.CompleteRequest) int {
	o := &s.options
	size := len(o.KeyAttribute) + len(r.Key) + len(o.StatusAttribute) + len(completed.Value) + len(o.ExpiryAttribute) +
		len(o.OwnerAttribute) + len(r.Owner) + len(o.DataAttribute) + len(r.Data)
	if s.partition != nil {
		size += len(o.SortKeyAttribute) + len(o.PartitionValue)
	}
	return size
}

func (s *Store) tooLarge(r idempotency.CompleteRequest) error {
	return fmt.Errorf("%w: %s: the result has %d bytes, and an item with all its attributes at most %d; "+
		"return less, or keep the result elsewhere and return a reference to it",
		idempotency.ErrResultNotStored, s.where(r.Key), len(r.Data), maxItem)
}

// isItemTooLarge reports whether DynamoDB refused an item for its size. There is no code for it, only the texts "Item
// size has exceeded the maximum allowed size" and "Item size to update has exceeded the maximum allowed size".
func isItemTooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException" &&
		strings.Contains(api.ErrorMessage(), "Item size") && strings.Contains(api.ErrorMessage(), "exceeded")
}

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
