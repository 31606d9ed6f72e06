package dynamostore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// clientCall calls one of the operations of Client, on the item k of a table.
type clientCall struct {
	name string
	do   func(ctx context.Context, client dynamostore.Client, table string, optFns ...func(*dynamodb.Options)) (any, error)
}

func clientCalls() []clientCall {
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "k"}}
	item := maps.Clone(key)
	item["data"] = &types.AttributeValueMemberS{Value: `é"<\`}
	return []clientCall{
		{"PutItem", func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
			return c.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item, ReturnValues: types.ReturnValueAllOld}, o...)
		}},
		{"GetItem", func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
			return c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)}, o...)
		}},
		{"UpdateItem", func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
			return c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &table, Key: key, UpdateExpression: aws.String("ADD n :one"), ReturnValues: types.ReturnValueAllNew,
				ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
			}, o...)
		}},
		{"BatchGetItem", func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
			return c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				table: {Keys: []map[string]types.AttributeValue{key}, ConsistentRead: aws.Bool(true)}}}, o...)
		}},
		{"BatchExecuteStatement",
			func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
				return c.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{
					Statements: []types.BatchStatementRequest{{
						Statement:  aws.String(`INSERT INTO "` + table + `" VALUE {'id': ?}`),
						Parameters: []types.AttributeValue{&types.AttributeValueMemberS{Value: "k"}},
					}}}, o...)
			}},
		{"DeleteItem", func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
			return c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: key, ReturnValues: types.ReturnValueAllOld}, o...)
		}},
		{"TransactWriteItems",
			func(ctx context.Context, c dynamostore.Client, table string, o ...func(*dynamodb.Options)) (any, error) {
				return c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: &table, Item: item}}}}, o...)
			}},
	}
}

// stub answers each request and keeps it. It is an HTTP client.
type stub struct {
	answer func(n int, r *http.Request) *http.Response // nil: {}

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (s *stub) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	if s.answer != nil {
		return s.answer(len(s.requests), r), nil
	}
	return stubReply(r, http.StatusOK, "{}"), nil
}

func stubReply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"R"},
			"X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10)},
			"Date":        {time.Now().UTC().Format(http.TimeFormat)},
		},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

var stubCredentials = aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"}

func provide(c aws.Credentials) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })
}

func (s *stub) client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: provide(stubCredentials), HTTPClient: s}, optFns...)
}

// wantSigned checks, as AWS does, that the signature is that of the request.
func wantSigned(t *testing.T, r *http.Request, body string, credentials aws.Credentials, region string) {
	t.Helper()
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Error(err)
	}
	again := r.Clone(context.Background())
	// What is not in SignedHeaders may have been added on the way.
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	for name := range again.Header {
		if !slices.Contains(strings.Split(signed, ";"), strings.ToLower(name)) {
			delete(again.Header, name)
		}
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, again, hash, "dynamodb", region, at); err != nil {
		t.Error(err)
	}
	if want, got := again.Header.Get("Authorization"), r.Header.Get("Authorization"); got != want {
		t.Errorf("Authorization is %s; want %s", got, want)
	}
}

// TestClientOptionsStack compares the middleware with the SDK's own. It fails when the SDK has other names for what is
// replaced, and then lists what it has.
func TestClientOptionsStack(t *testing.T) {
	errListed := errors.New("listed")
	for _, call := range clientCalls() {
		var before, after []string
		list := func(to *[]string, err error) func(*dynamodb.Options) {
			return dynamodb.WithAPIOptions(func(stack *middleware.Stack) error {
				*to = stack.List()
				return err
			})
		}
		client := new(stub).client(list(&before, nil), dynamostore.ClientOptions, list(&after, errListed))
		if _, err := call.do(t.Context(), client, "t"); !errors.Is(err, errListed) {
			t.Fatal(err)
		}
		var want []string
		replaced := 0
		for _, id := range before {
			switch id {
			case "ClientRequestID":
				replaced++
			case "UserAgent":
				replaced++
				want = append(want, "oncekit:UserAgent")
			default:
				want = append(want, id)
			}
		}
		if replaced != 2 {
			t.Errorf("%s: the SDK's middleware is\n%s\nwant ClientRequestID and UserAgent in it", call.name, strings.Join(before, "\n"))
		}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Errorf("%s: middleware (-want +got):\n%s", call.name, diff)
		}
	}
}

// TestClientOptionsRequests compares what is sent with what the SDK sends, in Lambda and for each operation: the first
// call and one after it.
func TestClientOptionsRequests(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
	t.Setenv("_X_AMZN_TRACE_ID", "Root=1-2;Parent=3")
	configure := func(o *dynamodb.Options) {
		o.AppID = "app"
		o.APIOptions = append(o.APIOptions, awsmiddleware.AddUserAgentKeyValue("user", "1"))
	}
	var ours, sdk stub
	oursClient, sdkClient := ours.client(configure, dynamostore.ClientOptions), sdk.client(configure)
	for _, call := range append(clientCalls(), clientCalls()...) {
		for _, client := range []*dynamodb.Client{oursClient, sdkClient} {
			if _, err := call.do(t.Context(), client, "t"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, r := range ours.requests {
		wantSigned(t, r, ours.bodies[i], stubCredentials, "us-east-1")
		want, got := sdk.requests[i].Header.Clone(), r.Header.Clone()
		for _, name := range []string{"Amz-Sdk-Invocation-Id", "Amz-Sdk-Request"} {
			if len(want[name]) == 0 {
				t.Errorf("the SDK does not send %s; want it out of the documentation of ClientOptions", name)
			}
			delete(want, name)
		}
		for _, name := range []string{"Authorization", "X-Amz-Date"} {
			delete(want, name)
			delete(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("headers of request %d (-want +got):\n%s", i, diff)
		}
		if want := sdk.requests[i]; r.URL.String() != want.URL.String() || r.Method != want.Method {
			t.Errorf("request %d is %s %s; want %s %s", i, r.Method, r.URL, want.Method, want.URL)
		}
		if len(r.Header) > 8 {
			t.Errorf("request %d has %d headers; want 8: the ninth costs, see attemptHeader", i, len(r.Header))
		}
	}
}

// TestClientOptionsConfigured compares where requests go, and by whose key they are signed, with the SDK's, for what users
// configure: for the client, and for single calls between calls without.
func TestClientOptionsConfigured(t *testing.T) {
	other := aws.Credentials{AccessKeyID: "OTHER", SecretAccessKey: "other", AccountID: "111122223333"}
	for _, test := range []struct {
		name        string
		option      func(*dynamodb.Options)
		host        string
		credentials aws.Credentials
		region      string
	}{
		{"nothing", func(*dynamodb.Options) {}, "https://dynamodb.us-east-1.amazonaws.com/", stubCredentials, "us-east-1"},
		{"FIPS", func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled },
			"https://dynamodb-fips.us-east-1.amazonaws.com/", stubCredentials, "us-east-1"},
		{"dual stack", func(o *dynamodb.Options) {
			o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled
		}, "https://dynamodb.us-east-1.api.aws/", stubCredentials, "us-east-1"},
		{"Region", func(o *dynamodb.Options) { o.Region = "eu-west-1" },
			"https://dynamodb.eu-west-1.amazonaws.com/", stubCredentials, "eu-west-1"},
		{"endpoint", func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:8000") },
			"http://127.0.0.1:8000/", stubCredentials, "us-east-1"},
		{"endpoint with a path", func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("https://h/a/b") },
			"https://h/a/b", stubCredentials, "us-east-1"},
		{"no HTTPS", func(o *dynamodb.Options) { o.EndpointOptions.DisableHTTPS = true },
			"http://dynamodb.us-east-1.amazonaws.com/", stubCredentials, "us-east-1"},
		{"account", func(o *dynamodb.Options) { o.Credentials = provide(other) },
			"https://111122223333.ddb.us-east-1.amazonaws.com/", other, "us-east-1"},
		{"account, disabled", func(o *dynamodb.Options) {
			o.Credentials, o.AccountIDEndpointMode = provide(other), aws.AccountIDEndpointModeDisabled
		}, "https://dynamodb.us-east-1.amazonaws.com/", other, "us-east-1"},
		{"middleware", func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("X-User", "a  value"),
				awsmiddleware.AddUserAgentKey("late"))
		}, "https://dynamodb.us-east-1.amazonaws.com/", stubCredentials, "us-east-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(s *stub) {
				t.Helper()
				n := len(s.requests) - 1
				r := s.requests[n]
				if r.URL.String() != test.host {
					t.Errorf("request goes to %s; want %s", r.URL, test.host)
				}
				wantSigned(t, r, s.bodies[n], test.credentials, test.region)
				if test.name == "middleware" && (r.Header.Get("X-User") == "" || !strings.Contains(r.UserAgent(), "late")) {
					t.Errorf("headers are %v; want those of the middleware", r.Header)
				}
			}
			put := clientCalls()[0].do
			for _, order := range [][]func(*dynamodb.Options){
				{test.option}, // what is expected is what the SDK does
				{test.option, dynamostore.ClientOptions},
				{dynamostore.ClientOptions, test.option},
			} {
				var s stub
				client := s.client(order...)
				for range 2 {
					if _, err := put(t.Context(), client, "t"); err != nil {
						t.Fatal(err)
					}
					check(&s)
				}
			}
			var s stub
			client := s.client(dynamostore.ClientOptions)
			for range 2 {
				if _, err := put(t.Context(), client, "t"); err != nil {
					t.Fatal(err)
				}
				if _, err := put(t.Context(), client, "t", test.option); err != nil {
					t.Fatal(err)
				}
				check(&s)
			}
		})
	}
}

// TestClientOptionsUserAgent has middleware of the user's that sets the header, differently in each call. The SDK adds its
// part to it.
func TestClientOptionsUserAgent(t *testing.T) {
	var ours, sdk stub
	calls := 0
	configure := dynamodb.WithAPIOptions(func(stack *middleware.Stack) error {
		calls++
		value := "call/" + strconv.Itoa((calls+1)/2)
		return stack.Build.Add(middleware.BuildMiddlewareFunc("user's", func(
			ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
		) (middleware.BuildOutput, middleware.Metadata, error) {
			in.Request.(*smithyhttp.Request).Header.Set("User-Agent", value)
			return next.HandleBuild(ctx, in)
		}), middleware.Before)
	})
	oursClient, sdkClient := ours.client(configure, dynamostore.ClientOptions), sdk.client(configure)
	for range 3 {
		for _, client := range []*dynamodb.Client{oursClient, sdkClient} {
			if _, err := clientCalls()[0].do(t.Context(), client, "t"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, r := range ours.requests {
		if want, got := sdk.requests[i].UserAgent(), r.UserAgent(); got != want || !strings.Contains(got, "call/"+strconv.Itoa(i+1)) {
			t.Errorf("User-Agent of call %d is %q; want %q", i+1, got, want)
		}
	}
}

// TestClientOptionsAnonymous has a client without credentials.
func TestClientOptionsAnonymous(t *testing.T) {
	var s stub
	client := s.client(func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} }, dynamostore.ClientOptions)
	if _, err := clientCalls()[0].do(t.Context(), client, "t"); err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0].Header.Get("Authorization"); got != "" {
		t.Errorf("Authorization is %q; want none", got)
	}
}

// TestClientOptionsParallel has calls of two kinds to two Regions at a time, for the race detector and for mixed-up
// buffers.
func TestClientOptionsParallel(t *testing.T) {
	var s stub
	client := s.client(dynamostore.ClientOptions)
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for range 50 {
				call := clientCalls()[i%2]
				table := "table-" + strconv.Itoa(i)
				_, err := call.do(t.Context(), client, table, func(o *dynamodb.Options) {
					if i%4 < 2 {
						o.Region = "eu-west-1"
					}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	for i, r := range s.requests {
		region := strings.Split(r.URL.Host, ".")[1]
		wantSigned(t, r, s.bodies[i], stubCredentials, region)
		_, after, _ := strings.Cut(s.bodies[i], `"table-`)
		number, err := strconv.Atoi(after[:1])
		if err != nil {
			t.Fatalf("body %d is %s", i, s.bodies[i])
		}
		if target := r.Header.Get("X-Amz-Target"); !strings.HasSuffix(target, clientCalls()[number%2].name) ||
			(region == "eu-west-1") != (number%4 < 2) {
			t.Errorf("table %d got %s in %s", number, target, region)
		}
	}
}

// TestClientOptionsWrongClock has AWS refuse the first request as signed an hour ago. The second one has the right time.
func TestClientOptionsWrongClock(t *testing.T) {
	ahead := time.Now().Add(time.Hour)
	s := stub{answer: func(n int, r *http.Request) *http.Response {
		reply := stubReply(r, http.StatusOK, "{}")
		if n == 1 {
			reply = stubReply(r, http.StatusBadRequest, `{"__type":"com.amazon.coral.service#InvalidSignatureException"}`)
		}
		reply.Header.Set("Date", ahead.UTC().Format(http.TimeFormat))
		return reply
	}}
	if _, err := clientCalls()[0].do(t.Context(), s.client(dynamostore.ClientOptions), "t"); err != nil {
		t.Fatal(err)
	}
	if len(s.requests) != 2 {
		t.Fatalf("%d requests; want 2", len(s.requests))
	}
	got, err := time.Parse("20060102T150405Z", s.requests[1].Header.Get("X-Amz-Date"))
	if err != nil || got.Sub(ahead).Abs() > time.Minute {
		t.Errorf("the second request is of %v (%v); want of about %v", got, err, ahead)
	}
}

// TestClientOptionsDamagedReply has a reply that is not the one of its checksum. The SDK logs it, and so it stays.
func TestClientOptionsDamagedReply(t *testing.T) {
	s := stub{answer: func(_ int, r *http.Request) *http.Response {
		reply := stubReply(r, http.StatusOK, "{}")
		reply.Header.Set("X-Amz-Crc32", "1")
		return reply
	}}
	var logged strings.Builder
	client := s.client(dynamostore.ClientOptions, func(o *dynamodb.Options) { o.Logger = logging.NewStandardLogger(&logged) })
	if _, err := clientCalls()[0].do(t.Context(), client, "t"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged.String(), "did not match expected checksum") {
		t.Errorf("logged %q; want that the checksum is wrong", logged.String())
	}
}

// TestClientOptionsServer makes all calls to a server, and compares the answers with those to the SDK's own client.
func TestClientOptionsServer(t *testing.T) {
	t.Parallel()
	answers := func(optFns ...func(*dynamodb.Options)) map[string]any {
		client := dynamotest.Client(t, optFns...)
		table := dynamotest.Table(t, client)
		got := make(map[string]any)
		for _, call := range clientCalls() {
			out, err := call.do(t.Context(), client, table)
			if err != nil {
				t.Fatalf("%s: %v", call.name, err)
			}
			if batch, ok := out.(*dynamodb.BatchGetItemOutput); ok { // the tables have names of their own
				batch.Responses = map[string][]map[string]types.AttributeValue{"table": batch.Responses[table]}
			}
			if batch, ok := out.(*dynamodb.BatchExecuteStatementOutput); ok {
				for i := range batch.Responses {
					batch.Responses[i].TableName = nil
				}
			}
			got[call.name] = out
		}
		return got
	}
	want, got := answers(), answers(dynamostore.ClientOptions)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(middleware.Metadata{}),
		cmpopts.IgnoreUnexported(outputs()...)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func outputs() []any {
	return []any{
		dynamodb.PutItemOutput{}, dynamodb.GetItemOutput{}, dynamodb.UpdateItemOutput{}, dynamodb.BatchGetItemOutput{},
		dynamodb.BatchExecuteStatementOutput{}, dynamodb.DeleteItemOutput{}, dynamodb.TransactWriteItemsOutput{},
		types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.BatchStatementResponse{}, types.BatchStatementError{},
	}
}

// TestClientOptionsConformance runs the store's conformance tests over such a client, in the default layout. Names of
// attributes, in which layouts differ, are TestEncoding's.
func TestClientOptionsConformance(t *testing.T) {
	t.Parallel()
	p := newPlanter(t, dynamotest.Client(t, dynamostore.ClientOptions), layouts()[0].options)
	storetest.Test(t, func(testing.TB) idempotency.Store { return p })
}

// TestClientOptionsFaults compares what becomes of a call whose first request meets a fault with what becomes of it in the
// SDK's own client.
func TestClientOptionsFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"none":            nil,
		"throttled":       dynamotest.Throttle("TableWriteKeyRangeThroughputExceeded"),
		"server error":    dynamotest.ServerError,
		"connection lost": dynamotest.Drop,
		"reply lost":      dynamotest.LoseReply,
		"expired token":   dynamotest.Fail("ExpiredTokenException", "The security token included in the request is expired"),
		"condition":       dynamotest.Fail("ConditionalCheckFailedException", "The conditional request failed"),
		"unknown":         dynamotest.Fail("NewException", "new"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := func(optFns ...func(*dynamodb.Options)) string {
				proxy := dynamotest.NewProxy(t)
				client := proxy.Client(t, append(optFns, dynamotest.ShortRetries)...)
				table := dynamotest.Table(t, client)
				proxy.Script("PutItem", fault)
				_, err := clientCalls()[0].do(t.Context(), client, table)
				var api smithy.APIError
				if errors.As(err, &api) {
					err = fmt.Errorf("%T %s: %s", api, api.ErrorCode(), api.ErrorMessage())
				}
				return fmt.Sprintf("%d requests, error %v", proxy.Requests()["PutItem"], err)
			}
			want, got := outcome(), outcome(dynamostore.ClientOptions)
			if got != want {
				t.Errorf("%s; want %s", got, want)
			}
			retried := map[string]int{"throttled": 2, "server error": 2, "connection lost": 2, "reply lost": 2}
			if n := max(retried[name], 1); !strings.HasPrefix(got, strconv.Itoa(n)+" requests") {
				t.Errorf("%s; want %d requests", got, n)
			}
			if name == "expired token" && !strings.Contains(got, "ExpiredTokenException: The security token") {
				t.Errorf("%s; want the error of AWS", got)
			}
		})
	}
}

// TestClientOptionsCancelled cancels a call whose reply does not come.
func TestClientOptionsCancelled(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t, dynamostore.ClientOptions)
	table := dynamotest.Table(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	proxy.Script("PutItem", func(x *dynamotest.Exchange) {
		cancel()
		x.Wait(time.Minute)
	})
	start := time.Now()
	if _, err := clientCalls()[0].do(ctx, client, table); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v; want context.Canceled", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v; want no wait for the reply", took)
	}
	if got := proxy.Requests()["PutItem"]; got != 1 {
		t.Errorf("%d requests; want 1", got)
	}
}
