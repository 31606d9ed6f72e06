// Command lambda is the payments function as it is deployed. ../template.yaml says with what around it.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/examples/payments/bank"
	"github.com/oncekit/oncekit/examples/payments/payments"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// expiry is how long a client may send its request again and get the same response.
const expiry = 24 * time.Hour

func main() {
	log.SetFlags(0) // Lambda adds the time
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// A reply that hangs is waited for this long, and then the SDK sends the request again. The store recognises what the
	// first attempt wrote as its own.
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME"))
	guard, err := idempotency.New("payments", store, func(o *idempotency.Options) {
		o.Expiry = expiry
		o.Hooks = []idempotency.Hook{idempotency.HookFunc(logUnusual)}
	})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(payments.NewHandler(bank.FakeProvider{}, guard, slog.Default()))
}

// logUnusual logs what happens to a key beyond a payment that is claimed, made and completed. Metrics count the same way.
func logUnusual(ctx context.Context, e idempotency.Event) {
	switch e.Kind {
	case idempotency.EventClaimed, idempotency.EventCompleted:
	default:
		slog.InfoContext(ctx, "idempotency", "kind", e.Kind.String(), "key", e.Key, "error", e.Err)
	}
}
