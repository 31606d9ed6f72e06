package dynamostore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

const (
	records     = 400
	deliveries  = 3
	losePercent = 5
)

// loseReplies makes a proxy lose some replies to writes, after they were applied.
func loseReplies(proxy *dynamotest.Proxy, lost *atomic.Int64) {
	proxy.Random(11, func(chance *rand.Rand, operation string) dynamotest.Fault {
		if operation != "GetItem" && chance.IntN(100) < losePercent {
			lost.Add(1)
			return dynamotest.LoseReply
		}
		return nil
	})
}

// deliver calls handle for every record, three times, some at a time.
func deliver(handle func(record int)) {
	for range deliveries {
		var group errgroup.Group
		group.SetLimit(16)
		for record := range records {
			group.Go(func() error {
				handle(record)
				return nil
			})
		}
		_ = group.Wait()
	}
}

// TestLostReplies delivers records three times while the replies to 5 % of the writes get lost, with the SDK's default
// retries. Every record is processed, and once. Deliveries may fail: replays do not fill the SDK's retry quota.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	guard, err := idempotency.New("orders", p)
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int64
	loseReplies(proxy, &lost)

	var runs, running, unrecorded [records]atomic.Int64
	var failed, replayed atomic.Int64
	deliver(func(record int) {
		result, err := idempotency.Do(t.Context(), guard, strconv.Itoa(record), func(context.Context) (int, error) {
			if running[record].Add(1) != 1 {
				t.Errorf("record %d: two handlers at a time", record)
			}
			defer running[record].Add(-1)
			if runs[record].Add(1) > 1+unrecorded[record].Load() {
				t.Errorf("record %d: processed again after its completion was stored", record)
			}
			return record, nil
		})
		switch {
		case err != nil:
			failed.Add(1)
		case result.Value != record:
			t.Errorf("record %d: result is %d", record, result.Value)
		case result.Unrecorded:
			unrecorded[record].Add(1)
		case result.Replayed:
			replayed.Add(1)
		}
	})

	unprocessed := 0
	for record := range records {
		if runs[record].Load() == 0 {
			unprocessed++
		}
	}
	t.Logf("%d replies lost, %d deliveries failed, %d replayed, %d records unprocessed",
		lost.Load(), failed.Load(), replayed.Load(), unprocessed)
	if unprocessed > 0 {
		t.Errorf("%d records were never processed", unprocessed)
	}
	if lost.Load() < records*losePercent/100 {
		t.Errorf("%d replies were lost; the test wants many more", lost.Load())
	}
}

// TestLostRepliesWithoutOwner does the same as code without owner tokens does it, to show that the faults are the
// ones that matter: the SDK's retry meets the claim that its first request made, and takes it for another worker's.
func TestLostRepliesWithoutOwner(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	table := dynamotest.Table(t, client)
	var lost atomic.Int64
	loseReplies(proxy, &lost)

	var processed sync.Map
	deliver(func(record int) {
		key := strconv.Itoa(record)
		at := time.Now()
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String(table),
			Item: map[string]types.AttributeValue{
				"id": s(key), "status": s("INPROGRESS"), "in_progress_expiration": n(at.Add(time.Minute).UnixMilli()),
				"expiration": n(at.Add(time.Hour).Unix()),
			},
			ConditionExpression: aws.String("attribute_not_exists(id) OR expiration < :now OR " +
				"(#status = :busy AND in_progress_expiration < :ms)"),
			ExpressionAttributeNames:  map[string]string{"#status": "status"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":now": n(at.Unix()), ":ms": n(at.UnixMilli()), ":busy": s("INPROGRESS")},
		})
		var refused *types.ConditionalCheckFailedException
		switch {
		case errors.As(err, &refused):
			return // done, or in progress elsewhere: the record comes back
		case err != nil:
			return
		}
		processed.Store(record, true)
		_, _ = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"id": s(key)},
			UpdateExpression:          aws.String("SET #status = :done"),
			ExpressionAttributeNames:  map[string]string{"#status": "status"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":done": s("COMPLETED")},
		})
	})

	unprocessed := records
	processed.Range(func(any, any) bool {
		unprocessed--
		return true
	})
	t.Logf("%d replies lost, %d records unprocessed", lost.Load(), unprocessed)
	if unprocessed == 0 {
		t.Error("no record was left unprocessed, so the test of the store shows nothing")
	}
}
