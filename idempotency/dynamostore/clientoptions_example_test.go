package dynamostore_test

import (
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

var cfg aws.Config // of config.LoadDefaultConfig

// A store's client with cheaper calls.
func ExampleClientOptions() {
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 3
	}, dynamostore.ClientOptions)
	if _, err := idempotency.New("orders", dynamostore.New(client, "idempotency")); err != nil {
		log.Fatal(err)
	}
}
