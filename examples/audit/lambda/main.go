// Command lambda is the audit function as it is deployed. ../template.yaml says with what around it.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

func main() {
	log.SetFlags(0) // Lambda adds the time
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}

func newHandler() (*dynamodbstream.Handler[audit.Order], error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// With a timeout for each attempt the SDK sends a request that hangs again, before dynamostore's CallTimeout (3 s) and
	// the sink's (3 s) are over.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(time.Second)))
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg)
	store := dynamostore.New(client, os.Getenv("IDEMPOTENCY_TABLE"))
	guard, err := idempotency.New("audit", store, func(o *idempotency.Options) { o.CountAttempts = true })
	if err != nil {
		return nil, err
	}
	sink, err := deadletter.New(sqs.NewFromConfig(cfg), os.Getenv("DEAD_LETTER_QUEUE_URL"))
	if err != nil {
		return nil, err
	}
	rows := audit.TableLog{Client: client, Table: os.Getenv("AUDIT_TABLE")}
	return audit.NewHandler(rows, guard, sink.DeadLetter)
}
