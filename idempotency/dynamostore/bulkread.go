package dynamostore

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// keysPerRead is how many keys a BatchGetItem may have (DynamoDB API Reference).
const keysPerRead = 100

// seen is what a read found for a key.
type seen struct {
	idempotency.Entry      // Absent if there is no item
	counted           bool // whether it has a count of attempts, be it 0

	outcome outcome // applied: it was read
	err     error   // where the outcome is failed, or the item that was read is not of the layout
}

// attemptsBefore returns the count that a claim of the free entry goes on from. It ends with the entry's life.
func (f *seen) attemptsBefore(r *idempotency.ClaimRequest) int {
	if f.Status == idempotency.InProgress && !expired(f.Entry, r.Now) {
		return f.Attempts
	}
	return 0
}

// tookOver reports whether a claim of the entry takes it from someone. A claim that was released has its lease at the
// epoch.
func (f *seen) tookOver() bool {
	return f.Status == idempotency.InProgress && !f.Lease.IsZero() && f.Lease.UnixMilli() != 0
}

// read reads the entries of keys, of which none may be there twice, with consistent reads of up to 100 keys each.
func (s *Store) read(ctx context.Context, kind bulkKind, keys []string) []seen {
	results := make([]seen, len(keys))
	parallel((len(keys)+keysPerRead-1)/keysPerRead, bulkCalls, func(i int) {
		start, end := i*keysPerRead, min((i+1)*keysPerRead, len(keys))
		s.readCall(ctx, kind, keys[start:end], results[start:end])
	})
	return results
}

// readCall is read for what goes into one call. Keys that come back unprocessed, because the reply would have more than
// 16 MB or the table is throttled, are asked for again.
func (s *Store) readCall(ctx context.Context, kind bulkKind, keys []string, results []seen) {
	places := make(map[string]int, len(keys))
	items := make([]map[string]types.AttributeValue, len(keys))
	for i, key := range keys {
		places[key] = i
		items[i] = s.key(key)
	}
	// what says what became of keys that were not read.
	what := func(items []map[string]types.AttributeValue, result outcome, err error) {
		for _, item := range items {
			if i, ok := s.place(places, item); ok {
				results[i].outcome = result
				if result == failed {
					results[i].err = s.failure("BatchGetItem", keys[i], err)
				}
			}
		}
	}
	for retry := 0; ; {
		out, err := call(ctx, s, s.client.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{*s.table: {Keys: items, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			what(items, s.outcomeOf(ctx, kind, "BatchGetItem", err), err)
			return
		}
		s.bulk.hasKey.Store(true)
		for _, read := range out.Responses {
			for _, item := range read {
				if i, ok := s.place(places, item); ok {
					results[i] = s.see(keys[i], item)
				}
			}
		}
		asked := len(items)
		items = nil
		for _, unprocessed := range out.UnprocessedKeys {
			items = append(items, unprocessed.Keys...)
		}
		switch {
		case len(items) == 0:
			return
		case len(items) < asked:
			retry = 0 // it goes on
		default:
			retry++
		}
		if retry > maxStatementRetries || !sleep(ctx, rand.N(statementBackoff<<retry)) {
			what(items, failed, fmt.Errorf("%d of %d keys remain unprocessed: the table is throttled", len(items), len(keys)))
			return
		}
	}
}

// place returns where the key of an item is.
func (s *Store) place(places map[string]int, item map[string]types.AttributeValue) (int, bool) {
	name := s.options.KeyAttribute
	if s.options.sorted() {
		name = s.options.SortKeyAttribute
	}
	key, _ := item[name].(*types.AttributeValueMemberS)
	if key == nil {
		return 0, false
	}
	i, ok := places[key.Value]
	return i, ok
}

func (s *Store) see(key string, item map[string]types.AttributeValue) seen {
	e, err := s.entry(item)
	if err != nil {
		return seen{err: fmt.Errorf("dynamostore: %s: %w", s.where(key), err)}
	}
	_, counted := item[s.options.AttemptsAttribute]
	return seen{Entry: e, counted: counted}
}
