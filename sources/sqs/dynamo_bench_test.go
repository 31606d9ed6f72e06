//go:build unix

package sqs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// BenchmarkInvokeDynamoDB is a record with everything that DynamoDB costs the client, in CPU time, beside a loop that
// decodes by hand and makes the same two calls with the SDK. The server answers at once, and does as little as one can.
func BenchmarkInvokeDynamoDB(b *testing.B) {
	const n = 100
	payload := benchEvent(b, n)
	client := dynamotest.ClientFor(b, answerAtOnce(b))
	b.Run("bare", func(b *testing.B) {
		benchCPU(b, n, func(ctx context.Context) error { return bareBatch(ctx, client, payload) })
	})
	b.Run("oncekit", func(b *testing.B) {
		// The server knows no statements; what calls for many cost is for `make bench`.
		store := dynamostore.New(client, "idempotency", func(o *dynamostore.Options) { o.SingleCalls = true })
		guard, err := idempotency.New("orders", store)
		if err != nil {
			b.Fatal(err)
		}
		h, err := sqs.NewHandler(func(context.Context, *sqs.Message[benchOrder]) error { return nil }, func(o *sqs.Options) {
			o.Concurrency = 1
			o.Logger = discard()
			o.Idempotency = guard
			o.ErrorOn = batch.ErrorOnAnyFailure
		})
		if err != nil {
			b.Fatal(err)
		}
		benchCPU(b, n, func(ctx context.Context) error {
			_, err := h.Invoke(ctx, payload)
			return err
		})
	})
}

func benchCPU(b *testing.B, n int, batch func(context.Context) error) {
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := batch(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/record")
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bareBatch is what someone writes who wants the same two requests a record.
func bareBatch(ctx context.Context, client *dynamodb.Client, payload []byte) error {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return err
	}
	for i := range event.Records {
		var order benchOrder
		if err := json.Unmarshal([]byte(event.Records[i].Body), &order); err != nil {
			return err
		}
		key, owner, now := "orders#"+event.Records[i].MessageId, "7GQX3MVJ5PZ2KD4TLA6RCWNEHY", time.Now()
		if err := bareClaim(ctx, client, key, owner, now); err != nil {
			return err
		}
		if err := bareComplete(ctx, client, key, owner, now); err != nil {
			return err
		}
	}
	return nil
}

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

func bareClaim(ctx context.Context, client *dynamodb.Client, key, owner string, now time.Time) error {
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("idempotency"),
		Item: map[string]types.AttributeValue{
			"id": str(key), "status": str("INPROGRESS"), "owner": str(owner),
			"expiration": num(now.Add(time.Hour).Unix()), "in_progress_expiration": num(now.Add(time.Minute).UnixMilli()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR (#s = :done AND #x < :now) OR " +
			"(#s = :busy AND #l < :free) OR (#s = :busy AND attribute_not_exists(#l) AND #x < :now)"),
		ExpressionAttributeNames: map[string]string{"#id": "id", "#s": "status", "#x": "expiration", "#l": "in_progress_expiration"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":done": str("COMPLETED"), ":busy": str("INPROGRESS"), ":now": num(now.Unix()), ":free": num(now.UnixMilli() - 1000),
		},
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func bareComplete(ctx context.Context, client *dynamodb.Client, key, owner string, now time.Time) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String("idempotency"),
		Key:                 map[string]types.AttributeValue{"id": str(key)},
		ConditionExpression: aws.String("#o = :owner AND #s = :busy AND #x >= :now"),
		UpdateExpression:    aws.String("SET #s = :done, #x = :expiry REMOVE #l, #a, #d"),
		ExpressionAttributeNames: map[string]string{
			"#o": "owner", "#s": "status", "#x": "expiration", "#l": "in_progress_expiration", "#a": "attempts", "#d": "data",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner": str(owner), ":busy": str("INPROGRESS"), ":done": str("COMPLETED"),
			":now": num(now.Unix()), ":expiry": num(now.Add(time.Hour).Unix()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// answerAtOnce returns the URL of a server that reads requests and answers each with {}. It is no httptest.Server, whose
// work would be a third of what is measured.
func answerAtOnce(b *testing.B) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(conn)
		}
	}()
	return "http://" + listener.Addr().String()
}

func answerAll(conn net.Conn) {
	defer conn.Close()
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}"
	for r := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
