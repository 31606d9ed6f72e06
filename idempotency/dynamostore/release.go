package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Release implements idempotency.Store with one DeleteItem, or one UpdateItem where attempts are counted.
func (s *Store) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	if s.err != nil {
		return s.err
	}
	var e *idempotency.Entry
	var err error
	if r.CountAttempts {
		e, err = s.keep(ctx, r)
	} else {
		e, err = s.remove(ctx, r)
	}
	if err != nil || e == nil {
		return err
	}
	return s.judgeRelease(r, e)
}

// judgeRelease returns the answer to a release that e has refused.
func (s *Store) judgeRelease(r idempotency.ReleaseRequest, e *idempotency.Entry) error {
	switch {
	case e.Status == idempotency.Absent || isReleased(*e):
		return nil // released by an earlier copy of the request whose reply was lost
	case e.Status == idempotency.Completed && e.Owner == r.Owner:
		return s.alreadyCompleted(r.Key)
	case e.Status == idempotency.InProgress && e.Owner == r.Owner:
		return s.contradiction(r.Key)
	default:
		return s.lost(r.Key, *e, r.Owner)
	}
}

// remove deletes the item. It returns the entry that stands in its way, nil if none does.
func (s *Store) remove(ctx context.Context, r idempotency.ReleaseRequest) (*idempotency.Entry, error) {
	_, err := call(ctx, s, s.client.DeleteItem, &dynamodb.DeleteItemInput{
		TableName:                s.table,
		Key:                      s.key(r.Key),
		ConditionExpression:      s.statements.release.condition,
		ExpressionAttributeNames: s.statements.release.names,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner":      text(r.Owner),
			":inProgress": inProgress,
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		return nil, nil
	}
	return s.refused(ctx, "DeleteItem", r.Key, err)
}

// keep frees the item and keeps it for its count.
func (s *Store) keep(ctx context.Context, r idempotency.ReleaseRequest) (*idempotency.Entry, error) {
	statement := &s.statements.releaseKeep
	values := map[string]types.AttributeValue{
		":owner":      text(r.Owner),
		":inProgress": inProgress,
		":zero":       zero,
	}
	if r.Unstarted {
		statement = &s.statements.releaseUndo
		values[":one"] = one
	}
	return s.update(ctx, r.Key, statement, values)
}

// isReleased reports whether e is what keep leaves.
func isReleased(e idempotency.Entry) bool {
	return e.Status == idempotency.InProgress && e.Owner == "" && !e.Lease.IsZero() && e.Lease.UnixMilli() == 0
}
