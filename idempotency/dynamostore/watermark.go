package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

var (
	_ watermark.Store       = (*Watermarks)(nil)
	_ idempotency.Validator = (*Watermarks)(nil)
)

// Watermarks is a watermark.Store on a DynamoDB table, of the layout that a Store has: the two can share one. It is safe
// for concurrent use. Its errors are those of a Store. An item is, under the names that Options can change:
//
//	id                      S  the key; with a sort key, the partition's value, and the key is the sort key
//	status                  S  WATERMARK
//	expiration              N  epoch seconds, the TTL attribute
//	in_progress_expiration  N  epoch milliseconds: the end of the lease; 0: nobody has the shard
//	owner                   S  the token of the last claim; absent: none since the position was set by hand
//	data                    S  the position; absent: nothing is done
//
// A position is three digits that count those of the sequence number, a colon, the sequence number without leading zeros,
// a slash, and the sub-sequence number in ten digits, 2147483647 for a whole record: DynamoDB compares text only, and
// its numbers have 38 digits. "003:496/0000000002" is an example.
//
// No claim of a guard takes such an item for its own, and none of Powertools before it has expired, nor do Watermarks
// take one of theirs: a status that is not expected is an error that names it.
//
// A claim, an advance and a rewind are one UpdateItem each; a refused one returns what stands in its way in the same
// reply. A claim that meets an expired position adds a PutItem, and an advance that gives back a shard whose position is
// further on already adds an UpdateItem. Faults add what they add in a Store. The IAM actions that are needed are
// dynamodb:UpdateItem, dynamodb:PutItem, and dynamodb:GetItem for refusals without the item.
type Watermarks struct {
	store                   *Store
	claim, fresh            statement
	advance, advanceRelease statement
	keep, release           statement
	rewind, forget          statement
}

// NewWatermarks returns Watermarks that are kept in table, a name or an ARN. It makes no request. Whether its arguments
// can work is what Validate tells. Of the options, FingerprintAttribute, AttemptsAttribute, LeaseUnit and NativeData are
// not used.
func NewWatermarks(client Client, table string, optFns ...func(*Options)) *Watermarks {
	w := &Watermarks{store: New(client, table, optFns...)}
	w.prepare(&w.store.options)
	return w
}

// Validate returns an error that names the first argument of NewWatermarks that cannot work, its value and its limit. It
// makes no request. The methods of such Watermarks return that error.
func (w *Watermarks) Validate() error { return w.store.err }

// check returns why a request is not sent.
func (w *Watermarks) check(r interface{ Validate() error }) error {
	if w.store.err != nil {
		return w.store.err
	}
	return r.Validate()
}

// Claim implements watermark.Store.
func (w *Watermarks) Claim(ctx context.Context, r watermark.ClaimRequest) (watermark.Position, error) {
	if err := w.check(r); err != nil {
		return watermark.Position{}, err
	}
	write, operation := w.take, "UpdateItem"
	for again := false; ; again = true {
		old, err := write(ctx, r)
		if err == nil {
			// A claim does not change the position. Its condition has checked the status.
			read := reader{item: old}
			position := w.position(&read)
			if read.err != nil {
				return watermark.Position{}, fmt.Errorf("dynamostore: %s: %w", w.store.where(r.Key), read.err)
			}
			return position, nil
		}
		m, err := w.refused(ctx, operation, r.Key, err)
		switch {
		case err != nil:
			return watermark.Position{}, err
		case m.owner == r.Owner && m.lease == 0:
			return watermark.Position{}, w.lost(r.Key, "it was given back before the claim arrived")
		case m.owner == r.Owner:
			// The SDK sent the request twice: the first one was applied and its reply was lost.
			return m.position, nil
		case !m.free(r):
			return watermark.Position{}, r.InProgress(time.UnixMilli(m.lease))
		case again:
			return watermark.Position{}, fmt.Errorf("dynamostore: %s: the claim was refused twice, but the shard is free",
				w.store.where(r.Key))
		}
		// The shard was held when the claim was refused and free when it was read, or its position has expired, which an
		// update would keep. Once more, and once only.
		if m.expired(r.Now) {
			write, operation = w.begin, "PutItem"
		}
	}
}

// take claims and keeps the position. It returns the item as it was.
func (w *Watermarks) take(
	ctx context.Context, r watermark.ClaimRequest,
) (map[string]types.AttributeValue, error) {
	out, err := w.update(ctx, r.Key, &w.claim, map[string]types.AttributeValue{
		":watermark": marked,
		":owner":     text(r.Owner),
		":lease":     milliseconds(r.Lease),
		":expiry":    seconds(r.Expiry),
		":now":       seconds(r.Now),
		":free":      number(r.Now.UnixMilli() - r.Skew.Milliseconds()),
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// begin claims a shard whose position has expired, with a new item. It returns no item.
func (w *Watermarks) begin(
	ctx context.Context, r watermark.ClaimRequest,
) (map[string]types.AttributeValue, error) {
	o := &w.store.options
	item := w.store.key(r.Key)
	item[o.StatusAttribute] = marked
	item[o.OwnerAttribute] = text(r.Owner)
	item[o.LeaseAttribute] = milliseconds(r.Lease)
	item[o.ExpiryAttribute] = seconds(r.Expiry)
	_, err := call(ctx, w.store, w.store.client.PutItem, &dynamodb.PutItemInput{
		TableName:                w.store.table,
		Item:                     item,
		ConditionExpression:      w.fresh.condition,
		ExpressionAttributeNames: w.fresh.names,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":watermark": marked,
			":owner":     text(r.Owner),
			":now":       seconds(r.Now),
			":free":      number(r.Now.UnixMilli() - r.Skew.Milliseconds()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return nil, err
}

// Advance implements watermark.Store.
func (w *Watermarks) Advance(ctx context.Context, r watermark.AdvanceRequest) error {
	if err := w.check(r); err != nil {
		return err
	}
	to := r.To
	for {
		m, err := w.move(ctx, r, to)
		if err != nil || m == nil {
			return err
		}
		switch reached := r.To.Compare(m.position) <= 0; {
		case m.owner != r.Owner:
			return w.lost(r.Key, m.holder())
		case m.lease == 0 && reached:
			return nil // the SDK sent the request twice: the first one was applied and its reply was lost
		case m.lease == 0:
			return w.lost(r.Key, "it was given back before that, at position "+m.position.String())
		case m.expired(r.Now):
			return w.lost(r.Key, "it has expired")
		case !reached || to.IsZero():
			return w.store.contradiction(r.Key)
		case !r.Release:
			return nil
		}
		// The position is further on already, so that only the release is left to do.
		to = watermark.Position{}
	}
}

// move writes an advance. It returns nil if it was applied, and what stands in its way if it was refused.
func (w *Watermarks) move(ctx context.Context, r watermark.AdvanceRequest, to watermark.Position) (*mark, error) {
	values := map[string]types.AttributeValue{
		":watermark": marked,
		":owner":     text(r.Owner),
		":now":       seconds(r.Now),
		":expiry":    seconds(r.Expiry),
		":zero":      zero,
	}
	statement := &w.keep
	switch {
	case to.IsZero() && r.Release:
		statement = &w.release
	case !to.IsZero() && r.Release:
		statement = &w.advanceRelease
	case !to.IsZero():
		statement = &w.advance
	}
	if !to.IsZero() {
		values[":to"] = text(ordered(to))
	}
	_, err := w.update(ctx, r.Key, statement, values)
	if err == nil {
		return nil, nil
	}
	m, err := w.refused(ctx, "UpdateItem", r.Key, err)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// Rewind implements watermark.Store.
func (w *Watermarks) Rewind(ctx context.Context, r watermark.RewindRequest) error {
	if err := w.check(r); err != nil {
		return err
	}
	values := map[string]types.AttributeValue{
		":watermark": marked,
		":zero":      zero,
		":expiry":    seconds(r.Expiry),
	}
	statement := &w.forget
	if !r.To.IsZero() {
		statement = &w.rewind
		values[":to"] = text(ordered(r.To))
	}
	_, err := w.update(ctx, r.Key, statement, values)
	if err == nil {
		return nil
	}
	if _, err = w.refused(ctx, "UpdateItem", r.Key, err); err != nil {
		return err
	}
	return w.store.contradiction(r.Key)
}

// update writes one transition. It returns the item as it was before.
func (w *Watermarks) update(
	ctx context.Context, key string, statement *statement, values map[string]types.AttributeValue,
) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, w.store, w.store.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                           w.store.table,
		Key:                                 w.store.key(key),
		ConditionExpression:                 statement.condition,
		UpdateExpression:                    statement.update,
		ExpressionAttributeNames:            statement.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

// refused returns what made a write fail, if that is what err says.
func (w *Watermarks) refused(ctx context.Context, operation, key string, err error) (mark, error) {
	var refusal *types.ConditionalCheckFailedException
	if !errors.As(err, &refusal) {
		return mark{}, w.store.failure(operation, key, err)
	}
	item, err := w.store.foundItem(ctx, key, refusal)
	if err != nil || len(item) == 0 {
		return mark{}, err
	}
	m, err := w.mark(item)
	if err != nil {
		return mark{}, fmt.Errorf("dynamostore: %s: %w", w.store.where(key), err)
	}
	return m, nil
}

func (w *Watermarks) lost(key, found string) error {
	return fmt.Errorf("%w: %s: %s", idempotency.ErrClaimLost, w.store.where(key), found)
}
