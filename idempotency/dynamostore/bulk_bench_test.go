//go:build unix

package dynamostore_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// BenchmarkBulk measures the client's CPU time and allocations a record for batches of 1,000: the bulk methods, and beside
// them the same writes by the SDK, one a call and 64 at once. The two take turns.
func BenchmarkBulk(b *testing.B) {
	const n = 1000
	ctx := context.Background()
	client := dynamotest.Client(b)
	batch := 0
	keys := func() []string {
		batch++
		keys := make([]string, n)
		for i := range keys {
			keys[i] = "orders#5f3c1a52-88b7-4d0e-9c55-" + strconv.Itoa(1_000_000*batch+i)
		}
		return keys
	}
	table := dynamotest.Table(b, client)
	store := dynamostore.New(client, table)
	claims := func(keys []string, askFirst bool) []idempotency.ClaimRequest {
		at := time.Now()
		requests := make([]idempotency.ClaimRequest, len(keys))
		for i, key := range keys {
			requests[i] = idempotency.ClaimRequest{
				Key: key, Owner: "0123456789abcdef012345" + strconv.Itoa(i), Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour),
				Skew: time.Second, AskFirst: askFirst}
		}
		return requests
	}
	bulkRun := func(keys []string) error {
		requests := claims(keys, false)
		completions := make([]idempotency.CompleteRequest, len(keys))
		for i, answer := range store.ClaimAll(ctx, requests) {
			if answer.Err != nil || !answer.Claimed {
				return errors.Join(answer.Err, errors.New("not claimed"))
			}
			r := requests[i]
			completions[i] = idempotency.CompleteRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, Expiry: r.Expiry}
		}
		return errors.Join(store.CompleteAll(ctx, completions)...)
	}
	bulkReplay := func(keys []string) error {
		for _, answer := range store.ClaimAll(ctx, claims(keys, true)) {
			if answer.Err != nil || answer.Entry.Status != idempotency.Completed {
				return errors.Join(answer.Err, errors.New("not completed"))
			}
		}
		return nil
	}
	byHand := func(do func(key, owner string) error) func(keys []string) error {
		return func(keys []string) error {
			var group errgroup.Group
			group.SetLimit(64)
			for i, key := range keys {
				group.Go(func() error { return do(key, "0123456789abcdef012345"+strconv.Itoa(i)) })
			}
			return group.Wait()
		}
	}
	hand := handWritten{client, table}
	handRun := byHand(func(key, owner string) error {
		return errors.Join(hand.claim(ctx, key, owner), hand.complete(ctx, key, owner))
	})
	handReplay := byHand(func(key, owner string) error {
		var refused *types.ConditionalCheckFailedException
		if err := hand.claim(ctx, key, owner); !errors.As(err, &refused) {
			return errors.Join(err, errors.New("not refused"))
		}
		return nil
	})

	for _, bench := range []struct {
		name           string
		prepare        func(keys []string) error
		bulk, handmade func(keys []string) error
	}{
		{"first run", func([]string) error { return nil }, bulkRun, handRun},
		{"replay", bulkRun, bulkReplay, handReplay},
	} {
		b.Run(bench.name, func(b *testing.B) {
			type cost struct{ cpu, allocations []float64 }
			turn := func(c *cost, do func([]string) error) {
				keys := keys()
				if err := bench.prepare(keys); err != nil {
					b.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				start := cpuTime(b)
				if err := do(keys); err != nil {
					b.Fatal(err)
				}
				c.cpu = append(c.cpu, float64((cpuTime(b)-start).Microseconds())/n)
				runtime.ReadMemStats(&after)
				c.allocations = append(c.allocations, float64(after.Mallocs-before.Mallocs)/n)
			}
			var bulk, handmade cost
			for b.Loop() {
				turn(&bulk, bench.bulk)
				turn(&handmade, bench.handmade)
			}
			median := func(turns []float64) float64 {
				slices.Sort(turns)
				return turns[len(turns)/2]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(bulk.cpu), "cpu-us/record")
			b.ReportMetric(median(handmade.cpu), "hand-cpu-us/record")
			b.ReportMetric(median(bulk.cpu)/median(handmade.cpu), "cpu-ratio")
			b.ReportMetric(median(bulk.allocations), "allocs/record")
			b.ReportMetric(median(bulk.allocations)/median(handmade.allocations), "allocs-ratio")
		})
	}
}

// handWritten is what someone writes who wants the same two writes a record.
type handWritten struct {
	client *dynamodb.Client
	table  string
}

func (h handWritten) claim(ctx context.Context, key, owner string) error {
	at := time.Now()
	_, err := h.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(h.table),
		Item: map[string]types.AttributeValue{
			"id": s(key), "status": s("INPROGRESS"), "owner": s(owner),
			"expiration": n(at.Add(time.Hour).Unix()), "in_progress_expiration": n(at.Add(time.Minute).UnixMilli()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR #expiration < :now OR " +
			"(#status = :inProgress AND #lease < :milliseconds)"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#expiration": "expiration", "#status": "status", "#lease": "in_progress_expiration"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": n(at.Unix()), ":inProgress": s("INPROGRESS"), ":milliseconds": n(at.UnixMilli())},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (h handWritten) complete(ctx context.Context, key, owner string) error {
	_, err := h.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(h.table),
		Key:                      map[string]types.AttributeValue{"id": s(key)},
		UpdateExpression:         aws.String("SET #status = :completed, #expiration = :expiration"),
		ConditionExpression:      aws.String("#owner = :owner AND #status = :inProgress"),
		ExpressionAttributeNames: map[string]string{"#status": "status", "#expiration": "expiration", "#owner": "owner"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":completed": s("COMPLETED"), ":expiration": n(time.Now().Add(time.Hour).Unix()), ":owner": s(owner),
			":inProgress": s("INPROGRESS")},
	})
	return err
}
