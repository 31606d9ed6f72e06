package dynamostore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

var client *dynamodb.Client // of dynamodb.NewFromConfig

func Example() {
	guard, err := idempotency.New("orders", dynamostore.New(client, "idempotency"))
	if err != nil {
		log.Fatal(err)
	}
	result, err := idempotency.Do(context.Background(), guard, "order-4711", func(context.Context) (string, error) {
		return "receipt-1", nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Value, result.Replayed)
}

// A table whose key has two attributes is shared with its other items: the keys of a namespace are one partition of it,
// idempotency#orders for example.
func ExampleNew_sortKey() {
	store := dynamostore.New(client, "application", func(o *dynamostore.Options) {
		o.KeyAttribute = "pk"
		o.SortKeyAttribute = "sk"
		o.ExpiryAttribute = "ttl"
	})
	if err := store.Validate(); err != nil {
		log.Fatal(err)
	}
}

// A table that functions with Mayfly use as well.
func ExampleMayfly() {
	store := dynamostore.New(client, "idempotency", dynamostore.Mayfly)
	if err := store.Validate(); err != nil {
		log.Fatal(err)
	}
}
