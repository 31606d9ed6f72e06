// Command lambda is the ledger function as it is deployed. ../template.yaml says with what around it.
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

	"github.com/oncekit/oncekit/examples/ledger/ledger"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

func main() {
	log.SetFlags(0) // Lambda adds the time
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// A reply that hangs is waited for this long, and then the SDK sends the request again. A transaction that is sent
	// again is applied once: its client token says that it is the same.
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	guard, err := idempotency.New("ledger", dynamostore.New(client, os.Getenv("TABLE_NAME")))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := ledger.NewHandler(ledger.Book{Client: client, Table: os.Getenv("BOOK_TABLE")}, guard)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}
