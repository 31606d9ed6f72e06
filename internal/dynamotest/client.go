package dynamotest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/localserver"
)

// Client returns a client for the endpoint of Start, with the SDK's default retries.
func Client(t testing.TB, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	t.Helper()
	return ClientFor(t, Start(t), optFns...)
}

// ClientFor returns a client for the endpoint at url: a Proxy's, or a stub's. Its connections are closed when the
// test ends. Its Region and credentials are those of localserver.
func ClientFor(t testing.TB, url string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url),
		Region:       localserver.Region(),
		Credentials:  localserver.Credentials,
		HTTPClient:   localserver.HTTPClient(t),
	}, optFns...)
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
	deleteAfter(t, client, name)
	return name
}

// deleteAfter deletes a table when the test ends.
func deleteAfter(t testing.TB, client *dynamodb.Client, table string) {
	t.Cleanup(func() {
		// t.Context is done when cleanups run.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
			t.Errorf("dynamotest: delete table: %v", err)
		}
	})
}
