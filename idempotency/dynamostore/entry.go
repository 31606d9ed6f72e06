package dynamostore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// found returns the entry that made a condition fail. Older servers and DAX leave it out of the refusal; then one
// consistent read tells. What that finds can be later than the refusal: the entry may have been released or completed
// in between.
func (s *Store) found(
	ctx context.Context, key string, refusal *types.ConditionalCheckFailedException,
) (idempotency.Entry, error) {
	item, err := s.foundItem(ctx, key, refusal)
	if err != nil || len(item) == 0 {
		return idempotency.Entry{}, err
	}
	e, err := s.entry(item)
	if err != nil {
		return idempotency.Entry{}, fmt.Errorf("dynamostore: %s: %w", s.where(key), err)
	}
	return e, nil
}

// foundItem is found as DynamoDB has it, empty if there is none.
func (s *Store) foundItem(
	ctx context.Context, key string, refusal *types.ConditionalCheckFailedException,
) (map[string]types.AttributeValue, error) {
	if len(refusal.Item) > 0 {
		return refusal.Item, nil
	}
	out, err := call(ctx, s, s.client.GetItem, &dynamodb.GetItemInput{
		TableName:      s.table,
		Key:            s.key(key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		// Undecided, even if the read is denied: the write before it may have been applied.
		return nil, fmt.Errorf("dynamostore: %s: GetItem: %w", s.where(key), err)
	}
	return out.Item, nil
}

// entry reads an item. An item that is not of the layout is an error, so that it is neither claimed nor replayed.
func (s *Store) entry(item map[string]types.AttributeValue) (idempotency.Entry, error) {
	r := reader{item: item}
	e := idempotency.Entry{
		Owner:       r.text(s.options.OwnerAttribute),
		Fingerprint: r.text(s.options.FingerprintAttribute),
		Attempts:    r.attempts(s.options.AttemptsAttribute),
	}
	if r.has(s.options.LeaseAttribute) {
		e.Lease = r.lease(s.options.LeaseAttribute, s.options.LeaseUnit)
	}
	if r.has(s.options.ExpiryAttribute) {
		e.Expiry = time.Unix(r.number(s.options.ExpiryAttribute), 0).UTC()
	}
	if r.has(s.options.DataAttribute) {
		e.Data = r.data(s.options.DataAttribute)
	}
	switch status := r.text(s.options.StatusAttribute); {
	case r.err != nil:
	case status == inProgress.Value:
		e.Status = idempotency.InProgress
	case status == completed.Value:
		e.Status = idempotency.Completed
	default:
		r.err = fmt.Errorf("attribute %q is %q; want %q or %q",
			s.options.StatusAttribute, status, inProgress.Value, completed.Value)
	}
	if r.err == nil && e.Expiry.IsZero() && (e.Status == idempotency.Completed || e.Lease.IsZero()) {
		r.err = fmt.Errorf("status is %s and attribute %q is missing; want epoch seconds", e.Status, s.options.ExpiryAttribute)
	}
	if r.err != nil {
		return idempotency.Entry{}, r.err
	}
	return e, nil
}

// reader reads attributes and keeps the first error.
type reader struct {
	item map[string]types.AttributeValue
	err  error
}

func (r *reader) has(name string) bool {
	_, ok := r.item[name]
	return ok
}

// text returns the string called name, "" if there is none.
func (r *reader) text(name string) string {
	switch v := r.item[name].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		r.wrongType(name, v, "S")
		return ""
	}
}

// number returns the whole number called name, 0 if there is none.
func (r *reader) number(name string) int64 {
	switch v := r.item[name].(type) {
	case nil:
		return 0
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("attribute %q is %s; want a whole number", name, v.Value)
		}
		return n
	default:
		r.wrongType(name, v, "N")
		return 0
	}
}

// lease returns the moment called name, which is in the given unit since the epoch.
func (r *reader) lease(name string, unit time.Duration) time.Time {
	n := r.number(name)
	const otherUnit = 1e11 // in seconds the year 5138, in milliseconds 1973
	if unit == time.Second && n >= otherUnit && r.err == nil {
		r.err = fmt.Errorf("attribute %q is %d; want epoch seconds", name, n)
	}
	return time.UnixMilli(n * unit.Milliseconds()).UTC()
}

// data returns the result called name, as JSON.
func (r *reader) data(name string) []byte {
	data, err := decode(r.item[name])
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("attribute %q is %w", name, err)
	}
	return data
}

// attempts reads a count, and takes what can be none for the nearest that can.
func (r *reader) attempts(name string) int {
	return int(min(max(r.number(name), 0), math.MaxInt32))
}

func (r *reader) wrongType(name string, v types.AttributeValue, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %q has type %s; want %s", name, typeOf(v), want)
	}
}

// typeOf returns DynamoDB's name for the type of v.
func typeOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// expired reports whether the entry's expiry is before now, both in whole seconds.
func expired(e idempotency.Entry, now time.Time) bool { return e.Expiry.Unix() < now.Unix() }

// free reports whether claimCondition would let r have e.
func free(e idempotency.Entry, r idempotency.ClaimRequest) bool {
	switch {
	case e.Status == idempotency.Absent:
		return true
	case e.Status == idempotency.InProgress && !e.Lease.IsZero():
		return e.Lease.UnixMilli() < leaseLimit(r)
	default:
		return expired(e, r.Now)
	}
}

// leaseLimit returns the epoch milliseconds before which a lease has run out for r.
func leaseLimit(r idempotency.ClaimRequest) int64 { return r.Now.UnixMilli() - r.Skew.Milliseconds() }
