package dynamotest

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// Client returns a client for the endpoint of Start, with the SDK's default retries.
func Client(t testing.TB, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	t.Helper()
	return ClientFor(t, Start(t), optFns...)
}

// ClientFor returns a client for the endpoint at url: a Proxy's, or a stub's. Its connections are closed when the
// test ends. Its Region and credentials are those of the environment variables AWS_REGION, AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or made up where these are not set.
func ClientFor(t testing.TB, url string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url),
		Region:       cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
		Credentials:  aws.CredentialsProviderFunc(credentials),
		HTTPClient:   &http.Client{Transport: transport},
	}, optFns...)
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
		SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
	}, nil
}

// ShortRetries makes a client retry as often as by default, but without the delays.
func ShortRetries(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
		so.MaxAttempts = 4
		so.MaxBackoff = time.Millisecond
	})
}

// NoRetries makes a client return the first error.
func NoRetries(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
}

// Table creates a table that dynamostore can use with the same options, and returns its name. It is deleted when the
// test ends.
func Table(t testing.TB, client *dynamodb.Client, optFns ...func(*dynamostore.Options)) string {
	t.Helper()
	name := "oncekit-test-" + rand.Text()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := dynamostore.CreateTable(ctx, client, name, optFns...); err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	t.Cleanup(func() {
		// t.Context is done when cleanups run.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			t.Errorf("dynamotest: delete table: %v", err)
		}
	})
	return name
}
