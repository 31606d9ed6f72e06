//go:build unix

package dynamostore_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// instant answers at once. It is a transport, so that what net/http's client does is in the measurement.
type instant struct {
	reply *http.Response
	body  string
}

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	reply := *i.reply
	reply.Request, reply.Body = r, io.NopCloser(strings.NewReader(i.body))
	return &reply, r.Body.Close()
}

// measuredClients returns a client with ClientOptions and one without. Both have credentials as Lambda has them, with a
// token of some 800 bytes.
func measuredClients(status int, body string) (ours, sdk *dynamodb.Client) {
	o := dynamodb.Options{
		Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(provide(aws.Credentials{
			AccessKeyID: "ASIAIOSFODNN7EXAMPLE", SecretAccessKey: strings.Repeat("s", 40), SessionToken: strings.Repeat("t", 800)})),
		HTTPClient: &http.Client{Transport: instant{stubReply(nil, status, body), body}},
	}
	return dynamodb.New(o, dynamostore.ClientOptions), dynamodb.New(o)
}

// recorder is a client that keeps what the store sends.
type recorder struct {
	dynamostore.Client
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
}

func (r *recorder) PutItem(
	_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	r.put = in
	return &dynamodb.PutItemOutput{}, nil
}

func (r *recorder) UpdateItem(
	_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	r.update = in
	return &dynamodb.UpdateItemOutput{}, nil
}

// measuredCall is a call as the store makes it, and its reply.
type measuredCall struct {
	name   string
	status int
	reply  string
	share  float64 // of the memory of the SDK's call that it may take, the race detector's part included
	do     func(*dynamodb.Client) error
}

func measuredCalls(tb testing.TB) []measuredCall {
	const key, owner = "orders#059f36b4-87a3-44ab-83d2-661975830a7d", "4ZHKJ2QY5SXVIEQ4R7AC4MIAVU"
	r := new(recorder)
	store := dynamostore.New(r, "idempotency")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_, err := store.Claim(tb.Context(), idempotency.ClaimRequest{
		Key: key, Owner: owner, Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour), Skew: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	err = store.Complete(tb.Context(), idempotency.CompleteRequest{Key: key, Owner: owner, Now: at, Expiry: at.Add(time.Hour)})
	if err != nil {
		tb.Fatal(err)
	}
	item := `{"id":{"S":"` + key + `"},"status":{"S":"COMPLETED"},"owner":{"S":"` + owner + `"},"expiration":{"N":"1767326645"}}`
	get := &dynamodb.GetItemInput{
		TableName: aws.String("idempotency"), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}},
	}
	batch := new(dynamodb.BatchExecuteStatementInput)
	for i := range 25 {
		batch.Statements = append(batch.Statements, types.BatchStatementRequest{
			Statement: aws.String(`INSERT INTO "idempotency" VALUE {'id': ?, 'status': ?, 'owner': ?, ` +
				`'in_progress_expiration': ?, 'expiration': ?}`),
			Parameters: []types.AttributeValue{
				&types.AttributeValueMemberS{Value: fmt.Sprint(key, i)}, &types.AttributeValueMemberS{Value: "INPROGRESS"},
				&types.AttributeValueMemberS{Value: owner}, &types.AttributeValueMemberN{Value: "1767323105000"},
				&types.AttributeValueMemberN{Value: "1767326645"},
			},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
	}
	return []measuredCall{
		{"PutItem", http.StatusOK, "{}", 0.72, func(c *dynamodb.Client) error {
			_, err := c.PutItem(context.Background(), r.put)
			return err
		}},
		{"UpdateItem", http.StatusOK, "{}", 0.72, func(c *dynamodb.Client) error {
			_, err := c.UpdateItem(context.Background(), r.update)
			return err
		}},
		{"GetItem", http.StatusOK, `{"Item":` + item + `}`, 0.72, func(c *dynamodb.Client) error {
			_, err := c.GetItem(context.Background(), get)
			return err
		}},
		{"refused", http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",` +
			`"message":"The conditional request failed","Item":` + item + `}`, 0.8, func(c *dynamodb.Client) error {
			if _, err := c.PutItem(context.Background(), r.put); err == nil {
				return fmt.Errorf("PutItem succeeded")
			}
			return nil
		}},
		{"batch", http.StatusOK, `{"Responses":[` + strings.Repeat(`{"TableName":"idempotency"},`, 24) + `{"TableName":"idempotency"}]}`,
			0.6, func(c *dynamodb.Client) error {
				_, err := c.BatchExecuteStatement(context.Background(), batch)
				return err
			}},
	}
}

func lambda(tb testing.TB) {
	tb.Setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
	tb.Setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
}

// TestClientOptionsMemory holds what a call allocates, which is what it costs for the most part, to a share of the SDK's.
func TestClientOptionsMemory(t *testing.T) {
	lambda(t)
	for _, call := range measuredCalls(t) {
		ours, sdk := measuredClients(call.status, call.reply)
		bytes := func(client *dynamodb.Client) float64 {
			const calls = 1000                               // under the race detector pools lose what is put there, by chance
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which empties the pools when it likes
			var before, after runtime.MemStats
			for i := range calls + 1 {
				if i == 1 { // the first one fills what is kept
					runtime.ReadMemStats(&before)
				}
				if err := call.do(client); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / calls
		}
		if ours, sdk := bytes(ours), bytes(sdk); ours > call.share*sdk {
			t.Errorf("%s allocates %.0f bytes; want at most %.2f of the SDK's %.0f", call.name, ours, call.share, sdk)
		}
	}
}

// BenchmarkClientOptions measures the CPU time of a call with ClientOptions and without. The two take turns, so that
// what else the machine does meets both; of the turns the medians are reported.
func BenchmarkClientOptions(b *testing.B) {
	lambda(b)
	for _, call := range measuredCalls(b) {
		ours, sdk := measuredClients(call.status, call.reply)
		b.Run(call.name, func(b *testing.B) {
			const calls = 100 // a turn; the clock of the CPU time is coarse
			turn := func(client *dynamodb.Client) float64 {
				start := cpuTime(b)
				for range calls {
					if err := call.do(client); err != nil {
						b.Fatal(err)
					}
				}
				return float64(cpuTime(b)-start) / calls
			}
			var withOptions, without []float64
			for b.Loop() {
				withOptions, without = append(withOptions, turn(ours)), append(without, turn(sdk))
			}
			median := func(turns []float64) float64 {
				slices.Sort(turns)
				return turns[len(turns)/2]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(withOptions), "cpu-ns/call")
			b.ReportMetric(median(without), "sdk-cpu-ns/call")
			b.ReportMetric(median(withOptions)/median(without), "ratio")
		})
	}
}

// cpuTime returns the CPU time of this process, the garbage collector's included.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
