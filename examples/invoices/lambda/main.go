// Command lambda is the invoices function as it is deployed. ../template.yaml says with what around it.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

func main() {
	log.SetFlags(0) // Lambda adds the time
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The SDK waits for a reply without end. With a timeout for each attempt it sends a request again before the call's
	// own timeout (3 s) is over, and the store recognises what the first attempt wrote as its own.
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	guard, err := invoices.NewGuard(dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME")))
	if err != nil {
		log.Fatal(err)
	}
	sink, err := deadletter.New(sqs.NewFromConfig(cfg), os.Getenv("DEAD_LETTER_QUEUE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	runReplays, err := strconv.ParseBool(os.Getenv("RUN_REPLAYS"))
	if err != nil {
		log.Fatalf("environment variable RUN_REPLAYS: %v", err)
	}
	handler, err := invoices.NewHandler(billing.FakeSystem{}, guard, func(o *invoices.Options) {
		o.DeadLetter = sink.DeadLetter
		o.RunReplays = runReplays
	})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}
