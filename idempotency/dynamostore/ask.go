package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
)

// ask reads the entry of a key that is to be claimed, and reports whether that decides the claim. A read that fails
// decides nothing: it is only cheaper than the write that follows.
func (s *Store) ask(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, bool) {
	out, err := call(ctx, s, s.client.GetItem, &dynamodb.GetItemInput{
		TableName:      s.table,
		Key:            s.key(r.Key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil || len(out.Item) == 0 {
		return idempotency.ClaimResult{}, false
	}
	e, err := s.entry(out.Item)
	mine := e.Status == idempotency.InProgress && e.Owner == r.Owner
	if err != nil || mine || free(e, r) {
		return idempotency.ClaimResult{}, false
	}
	return idempotency.ClaimResult{Entry: e}, true
}
