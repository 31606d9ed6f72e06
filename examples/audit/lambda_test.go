//go:build unix

package main

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/rietest"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
)

// TestLambda runs the function as it is deployed, and hands it the same event twice.
func TestLambda(t *testing.T) {
	client, endpoint := dynamotest.Client(t), dynamotest.Start(t)
	auditTable, _ := dynamotest.StreamTable(t, client, audit.PartitionKey, audit.SortKey)
	function := rietest.Start(t, rietest.Build(t, "./lambda"), func(o *rietest.Options) {
		o.Timeout = 20 * time.Second
		o.Env = []string{
			"AUDIT_TABLE=" + auditTable,
			"IDEMPOTENCY_TABLE=" + dynamotest.Table(t, client),
			"DEAD_LETTER_QUEUE_URL=https://sqs.us-east-1.amazonaws.com/123456789012/audit-dead", // nothing is given up
			"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint,
			"AWS_REGION=" + cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
			"AWS_ACCESS_KEY_ID=" + cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
			"AWS_SECRET_ACCESS_KEY=" + cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
			"AWS_SESSION_TOKEN=" + os.Getenv("AWS_SESSION_TOKEN"),
		}
	})
	put := func(version, status string) func(*dynamodbstreamtest.Table) error {
		return func(table *dynamodbstreamtest.Table) error {
			_, err := table.Put(dynamodbstreamtest.Item{
				"id": events.NewStringAttribute("order-1"), "version": events.NewNumberAttribute(version),
				"customer": events.NewStringAttribute("ada"), "status": events.NewStringAttribute(status),
				"total": events.NewNumberAttribute("8900"),
			})
			return err
		}
	}
	event := dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"}, put("1", "placed"), put("2", "paid"))
	for delivery := range 2 {
		answer, err := function.Post(t.Context(), dynamodbstreamtest.Payload(event))
		if want := `{"batchItemFailures":[]}`; err != nil || string(answer) != want {
			t.Fatalf("delivery %d: answer %s, error %v; want %s", delivery+1, answer, err, want)
		}
		want := map[string][]string{
			"order-1": {line(dynamodbstream.Insert, 1, "placed"), line(dynamodbstream.Modify, 2, "paid")},
		}
		if diff := gocmp.Diff(want, logged(t, client, auditTable, want)); diff != "" {
			t.Errorf("delivery %d: log (-want +got):\n%s", delivery+1, diff)
		}
	}
}
