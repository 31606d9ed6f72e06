package sqs_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/sqs"
)

// The adapter that VisibilityFunc's documentation shows, against the SDK: what SQS is asked for.
func TestVisibilityThroughTheSDK(t *testing.T) {
	var target, body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		target, body = r.Header.Get("X-Amz-Target"), string(read)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	}))
	defer server.Close()
	queue := server.URL + "/123456789012/orders"
	client := awssqs.New(awssqs.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
	visibility := sqs.VisibilityFunc(func(ctx context.Context, c sqs.VisibilityChange) error {
		_, err := client.ChangeMessageVisibility(ctx, &awssqs.ChangeMessageVisibilityInput{
			QueueUrl: &queue, ReceiptHandle: &c.ReceiptHandle, VisibilityTimeout: int32(c.Timeout / time.Second)})
		return err
	})
	err := visibility.ChangeVisibility(t.Context(), sqs.VisibilityChange{ReceiptHandle: "handle", Timeout: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"AmazonSQS.ChangeMessageVisibility", `"ReceiptHandle":"handle"`, `"VisibilityTimeout":90`, `"QueueUrl":"` + queue + `"`}
	var got []string
	for _, part := range want {
		if strings.Contains(target+" "+body, part) {
			got = append(got, part)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request %s %s, parts of it (-want +got):\n%s", target, body, diff)
	}
}
