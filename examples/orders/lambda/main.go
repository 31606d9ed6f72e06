// Command lambda is the orders function as it is deployed. ../template.yaml says with what around it.
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

	"github.com/oncekit/oncekit/examples/orders/orders"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/sources/sqs"
)

func main() {
	log.SetFlags(0) // Lambda adds the time
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The SDK waits for a reply without end. A call that hangs is ended by dynamostore's CallTimeout (3 s), and then nobody
	// knows whether it was applied. With a shorter timeout for each attempt the SDK sends it again before that, and the
	// store recognises what the first attempt wrote as its own.
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	guard, err := idempotency.New("orders", dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME")))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := orders.NewHandler(shop.FakeProvider{}, guard, reserve)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}

// reserve sets Options.Reserve from the environment variable RESERVE, a duration such as 2s. A negative one lets Lambda
// kill the function at its timeout, which is of use only to show what happens then.
func reserve(o *sqs.Options) {
	text, ok := os.LookupEnv("RESERVE")
	if !ok {
		return
	}
	var err error
	if o.Reserve, err = time.ParseDuration(text); err != nil {
		log.Fatalf("environment variable RESERVE: %v", err)
	}
}
