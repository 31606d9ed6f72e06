// Command lambda is the clicks function as it is deployed. ../template.yaml says with what around it.
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
	"github.com/oncekit/oncekit/examples/clicks/clicks"
	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// maxAttempts takes as many retries of a batch, less one, for each click that is given up. The mapping's
// MaximumRetryAttempts, at which Lambda drops what is left of the batch, good clicks included, is large enough for all.
const maxAttempts = 6

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
	guard, err := idempotency.New("clicks", dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME")),
		func(o *idempotency.Options) { o.CountAttempts = true }) // Kinesis does not count them
	if err != nil {
		log.Fatal(err)
	}
	sink, err := deadletter.New(sqs.NewFromConfig(cfg), os.Getenv("DEAD_LETTER_QUEUE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := clicks.NewHandler(site.FakeJourneys{}, guard, func(o *kinesis.Options) {
		// After a crash the shard waits for the clicks that were in flight, until their claims have run out. That is at the
		// dead invocation's deadline, or some seconds after Timeout if that is sooner.
		o.Timeout = 5 * time.Second
		o.MaxAttempts = maxAttempts
		o.DeadLetter = sink.DeadLetter
	})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}
