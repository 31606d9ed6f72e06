package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

var _ idempotency.Marker = (*Store)(nil)

// FindAll implements idempotency.Marker with consistent reads: one GetItem for a single request, and BatchGetItem, 100 keys
// to a call, for more.
func (s *Store) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	answers := make([]idempotency.FindAnswer, len(requests))
	if s.err != nil {
		for i := range answers {
			answers[i].Err = s.err
		}
		return answers
	}
	one := func(i int) { answers[i] = s.find(ctx, &requests[i]) }
	for _, pass := range passes(len(requests), func(i int) string { return requests[i].Key }) {
		if len(pass) == 1 || s.oneByOne(finds) {
			s.each(pass, one)
			continue
		}
		var together, alone []int
		var keys []string
		for _, i := range pass {
			if key := requests[i].Key; s.keyFits(key) {
				together, keys = append(together, i), append(keys, key)
			} else {
				alone = append(alone, i)
			}
		}
		for j, result := range s.read(ctx, finds, keys) {
			i := together[j]
			switch {
			case result.outcome == single:
				alone = append(alone, i)
			case result.err != nil:
				answers[i].Err = result.err
			default:
				answers[i].Entry = inTheWay(result.Entry, &requests[i])
			}
		}
		s.each(alone, one)
	}
	return answers
}

// find is FindAll for one request.
func (s *Store) find(ctx context.Context, r *idempotency.FindRequest) idempotency.FindAnswer {
	out, err := call(ctx, s, s.client.GetItem, &dynamodb.GetItemInput{
		TableName:      s.table,
		Key:            s.key(r.Key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return idempotency.FindAnswer{Err: s.failure("GetItem", r.Key, err)}
	}
	s.bulk.hasKey.Store(true)
	if len(out.Item) == 0 {
		return idempotency.FindAnswer{}
	}
	result := s.see(r.Key, out.Item)
	if result.err != nil {
		return idempotency.FindAnswer{Err: result.err}
	}
	return idempotency.FindAnswer{Entry: inTheWay(result.Entry, r)}
}

// inTheWay returns the entry, or an absent one if a claim could have it.
func inTheWay(e idempotency.Entry, r *idempotency.FindRequest) idempotency.Entry {
	if free(e, idempotency.ClaimRequest{Now: r.Now, Skew: r.Skew}) {
		return idempotency.Entry{}
	}
	return e
}

// MarkAll implements idempotency.Marker: one UpdateItem for a single request, and an INSERT for each key, 25 to a call, for
// more. Keys that exist are read, 100 to a call, and those of them that are free are marked by an UpdateItem each. Results
// that do not fit are left out as by Complete.
func (s *Store) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	if len(requests) == 1 {
		return []error{s.mark(ctx, requests[0])}
	}
	return settleAll(ctx, s, requests, transition[idempotency.MarkRequest]{
		kind: marks,
		key:  func(r *idempotency.MarkRequest) string { return r.Key },
		write: func(v *parameters, r *idempotency.MarkRequest, w *write) error {
			if s.options.sorted() && !s.bulk.hasKey.Load() {
				return nil // an INSERT into a table without the key makes one item of all: see bulkClaim.run
			}
			data, note := s.result(r.CompleteRequest)
			start := len(v.list)
			v.key(&s.options, r.Key)
			v.add(v.text(r.Owner), v.expiry(r.Expiry))
			if r.Fingerprint != "" {
				v.add(v.text(r.Fingerprint))
			}
			if data != nil {
				v.add(data)
				w.size = len(r.Data)
			}
			w.text = s.bulk.texts.mark[index(r.Fingerprint != "")][index(data != nil)]
			w.parameters = v.since(start)
			return note
		},
		would: func(r *idempotency.MarkRequest, e *idempotency.Entry) bool { return free(*e, markClaim(r)) },
		judge: s.judgeMark,
		one:   s.mark,
	})
}

// mark is MarkAll for one request.
func (s *Store) mark(ctx context.Context, r idempotency.MarkRequest) error {
	if s.err != nil {
		return s.err
	}
	return s.withResult(r.CompleteRequest, func(data types.AttributeValue) error {
		values := map[string]types.AttributeValue{
			":completed":  completed,
			":inProgress": inProgress,
			":now":        seconds(r.Now),
			":free":       s.freeLease(markClaim(&r)),
			":owner":      text(r.Owner),
			":expiry":     seconds(r.Expiry),
		}
		if r.Fingerprint != "" {
			values[":fingerprint"] = text(r.Fingerprint)
		}
		if data != nil {
			values[":data"] = data
		}
		e, err := s.update(ctx, r.Key, &s.statements.mark[index(r.Fingerprint != "")][index(data != nil)], values)
		switch {
		case err != nil || e == nil:
			return err
		case free(*e, markClaim(&r)):
			// It was held when the mark was refused, and free when found read it: where the refusal does not tell.
			return s.contradiction(r.Key)
		default:
			return s.judgeMark(&r, e)
		}
	})
}

// judgeMark returns the answer to a mark that e has refused.
func (s *Store) judgeMark(r *idempotency.MarkRequest, e *idempotency.Entry) error {
	err := r.RefusedBy(e)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: it is %v", err, s.where(r.Key), e.Status)
}

// markClaim is a claim that would have what the mark may have.
func markClaim(r *idempotency.MarkRequest) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{Now: r.Now, Skew: r.Skew}
}
