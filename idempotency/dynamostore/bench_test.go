package dynamostore_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// BenchmarkClaimComplete compares what a record costs in the store with the same two requests made by hand, against a
// server on loopback that answers at once. The server's work is in both. Target: cpu-ns/op of oncekit at most 1.10 times
// that of bare.
func BenchmarkClaimComplete(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	client := dynamotest.ClientFor(b, server.URL)
	data := []byte(`{"order":"4711","total":129900}`)

	b.Run("oncekit", func(b *testing.B) {
		store := dynamostore.New(client, "idempotency")
		b.ReportAllocs()
		defer reportCPU(b)()
		for i := range b.N {
			at := time.Now()
			key, owner := "orders#"+strconv.Itoa(i), "2QZ5KTBTSZ5BXNTPZW4OB4PQQU"
			result, err := store.Claim(b.Context(), idempotency.ClaimRequest{
				Key: key, Owner: owner, Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour), Skew: time.Second,
			})
			if err != nil || !result.Claimed {
				b.Fatalf("Claim = %+v, %v", result, err)
			}
			err = store.Complete(b.Context(), idempotency.CompleteRequest{
				Key: key, Owner: owner, Now: at, Expiry: at.Add(time.Hour), Data: data,
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		defer reportCPU(b)()
		for i := range b.N {
			at := time.Now()
			key, owner := "orders#"+strconv.Itoa(i), "2QZ5KTBTSZ5BXNTPZW4OB4PQQU"
			if err := bareClaim(b.Context(), client, key, owner, at); err != nil {
				b.Fatal(err)
			}
			if err := bareComplete(b.Context(), client, key, owner, at, data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// reportCPU returns a function that reports the processor time spent since: time on the clock tells more of the machine's
// other work than of this.
func reportCPU(b *testing.B) func() {
	used := func() int64 {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return r.Utime.Nano() + r.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

// bareClaim is a claim as written by hand, with the same condition and the same reply.
func bareClaim(ctx context.Context, client *dynamodb.Client, key, owner string, at time.Time) error {
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("idempotency"),
		Item: map[string]types.AttributeValue{
			"id": s(key), "status": s("INPROGRESS"), "owner": s(owner),
			"in_progress_expiration": n(at.Add(time.Minute).UnixMilli()), "expiration": n(at.Add(time.Hour).Unix()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR (#status = :done AND #expiry < :now) OR " +
			"(#status = :busy AND (#lease < :free OR (attribute_not_exists(#lease) AND #expiry < :now)))"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#status": "status", "#expiry": "expiration", "#lease": "in_progress_expiration",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":busy": s("INPROGRESS"), ":done": s("COMPLETED"), ":now": n(at.Unix()), ":free": n(at.Add(-time.Second).UnixMilli()),
		},
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// bareComplete is a completion as written by hand.
func bareComplete(ctx context.Context, client *dynamodb.Client, key, owner string, at time.Time, data []byte) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String("idempotency"),
		Key:                 map[string]types.AttributeValue{"id": s(key)},
		ConditionExpression: aws.String("#owner = :owner AND #status = :busy AND #expiry >= :now"),
		UpdateExpression:    aws.String("SET #status = :done, #expiry = :expiry, #data = :data REMOVE #lease, #attempts"),
		ExpressionAttributeNames: map[string]string{
			"#owner": "owner", "#status": "status", "#expiry": "expiration", "#data": "data", "#lease": "in_progress_expiration",
			"#attempts": "attempts",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner": s(owner), ":busy": s("INPROGRESS"), ":done": s("COMPLETED"), ":data": s(string(data)),
			":now": n(at.Unix()), ":expiry": n(at.Add(time.Hour).Unix()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}
