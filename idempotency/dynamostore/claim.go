package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Claim implements idempotency.Store with one PutItem, or one UpdateItem where attempts are counted or the table has
// a sort key. TookOver is false for a claim whose reply was lost and which the SDK sent again: the second reply does
// not tell what the first one replaced.
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	if s.err != nil {
		return idempotency.ClaimResult{}, s.err
	}
	if r.CountAttempts {
		s.bulk.counted.Store(true)
	}
	if r.AskFirst {
		if result, decided := s.ask(ctx, r); decided {
			return result, nil
		}
	}
	write, operation := s.put, "PutItem"
	if r.CountAttempts || s.options.sorted() {
		// A put to a table that has no such sort key would take it for any other attribute, and make one item of all
		// keys. An update is refused.
		write, operation = s.updateItem, "UpdateItem"
	}
	for again := false; ; again = true {
		result, err := write(ctx, r)
		if err == nil {
			return result, nil
		}
		var refusal *types.ConditionalCheckFailedException
		if !errors.As(err, &refusal) {
			return idempotency.ClaimResult{}, s.failure(operation, r.Key, err)
		}
		e, err := s.found(ctx, r.Key, refusal)
		switch {
		case err != nil:
			return idempotency.ClaimResult{}, err
		case e.Status == idempotency.InProgress && e.Owner == r.Owner:
			// The SDK sent the request twice: the first one was applied and its reply was lost.
			return idempotency.ClaimResult{Claimed: true, Entry: e}, nil
		case !free(e, r):
			return idempotency.ClaimResult{Entry: e}, nil
		case again:
			return idempotency.ClaimResult{}, fmt.Errorf("dynamostore: %s: the claim was refused twice, but the key is free",
				s.where(r.Key))
		}
		// The key was held when the claim was refused and free when found read it, or it is an expired claim, which
		// a claim that counts leaves to fresh. Once more, and once only: a key that others claim and release all the
		// time must not keep this record here. To go on without a claim is no choice.
		if r.CountAttempts && e.Status == idempotency.InProgress && expired(e, r.Now) {
			write, operation = s.fresh, "PutItem"
		}
	}
}

// put claims with a new item.
func (s *Store) put(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return s.putItem(ctx, r, &s.statements.claim, map[string]types.AttributeValue{
		":completed":  completed,
		":inProgress": inProgress,
		":now":        seconds(r.Now),
		":free":       s.freeLease(r),
	})
}

// fresh claims an expired claim, with a new item that counts from 1.
func (s *Store) fresh(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	return s.putItem(ctx, r, &s.statements.fresh, map[string]types.AttributeValue{
		":inProgress": inProgress,
		":now":        seconds(r.Now),
		":free":       s.freeLease(r),
	})
}

func (s *Store) putItem(
	ctx context.Context, r idempotency.ClaimRequest, statement *statement, values map[string]types.AttributeValue,
) (idempotency.ClaimResult, error) {
	item := s.key(r.Key)
	item[s.options.StatusAttribute] = inProgress
	item[s.options.OwnerAttribute] = text(r.Owner)
	item[s.options.LeaseAttribute] = s.lease(r.Lease)
	item[s.options.ExpiryAttribute] = seconds(r.Expiry)
	if r.Fingerprint != "" {
		item[s.options.FingerprintAttribute] = text(r.Fingerprint)
	}
	attempts := 0
	if r.CountAttempts {
		item[s.options.AttemptsAttribute] = one
		attempts = 1
	}
	out, err := call(ctx, s, s.client.PutItem, &dynamodb.PutItemInput{
		TableName:                           s.table,
		Item:                                item,
		ConditionExpression:                 statement.condition,
		ExpressionAttributeNames:            statement.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return idempotency.ClaimResult{}, err
	}
	return s.claimed(r, out.Attributes, attempts), nil
}

// updateItem claims by updating the item. It has the old item returned rather than the new one, which is known but
// for the count: only the old one tells of a takeover.
func (s *Store) updateItem(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	statement := s.statements.updates[updateClaim{counted: r.CountAttempts, fingerprint: r.Fingerprint != ""}]
	values := map[string]types.AttributeValue{
		":completed":  completed,
		":inProgress": inProgress,
		":now":        seconds(r.Now),
		":free":       s.freeLease(r),
		":owner":      text(r.Owner),
		":lease":      s.lease(r.Lease),
		":expiry":     seconds(r.Expiry),
	}
	if r.CountAttempts {
		values[":zero"], values[":one"] = zero, one
	}
	if r.Fingerprint != "" {
		values[":fingerprint"] = text(r.Fingerprint)
	}
	out, err := call(ctx, s, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           s.table,
		Key:                                 s.key(r.Key),
		ConditionExpression:                 statement.condition,
		UpdateExpression:                    statement.update,
		ExpressionAttributeNames:            statement.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return idempotency.ClaimResult{}, err
	}
	attempts := 0
	if r.CountAttempts {
		read := reader{item: out.Attributes}
		attempts = read.attempts(s.options.AttemptsAttribute) + 1
	}
	return s.claimed(r, out.Attributes, attempts), nil
}

// claimed returns the result of a claim that replaced old and counted attempts.
func (s *Store) claimed(
	r idempotency.ClaimRequest, old map[string]types.AttributeValue, attempts int,
) idempotency.ClaimResult {
	read := reader{item: old}
	return idempotency.ClaimResult{
		Claimed: true,
		// A claim that was released has its lease at the epoch. Nothing was taken from anyone then.
		TookOver: read.text(s.options.StatusAttribute) == inProgress.Value && read.number(s.options.LeaseAttribute) != 0,
		Entry:    s.claimEntry(&r, attempts),
	}
}

// claimEntry returns the entry that a granted claim leaves.
func (s *Store) claimEntry(r *idempotency.ClaimRequest, attempts int) idempotency.Entry {
	return idempotency.Entry{
		Status:      idempotency.InProgress,
		Owner:       r.Owner,
		Fingerprint: r.Fingerprint,
		Lease:       s.options.storedLease(r.Lease),
		Expiry:      time.Unix(r.Expiry.Unix(), 0).UTC(),
		Attempts:    attempts,
	}
}
