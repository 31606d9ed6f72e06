package dynamostore_test

import (
	"context"
	"errors"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// Money is moved once for each transfer, whatever happens to the function that does it: both accounts change together with
// the completion of the transfer's key, or nothing does.
func ExampleTx() {
	guard, err := idempotency.New("transfers", dynamostore.New(client, "idempotency"))
	if err != nil {
		log.Fatal(err)
	}
	change := func(id, expression, condition, amount string) types.Update {
		return types.Update{
			TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
			UpdateExpression: aws.String(expression), ConditionExpression: aws.String(condition),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: amount}},
		}
	}
	_, err = idempotency.Do(context.Background(), guard, "transfer-1", func(ctx context.Context) (struct{}, error) {
		tx := dynamostore.Tx(ctx)
		return struct{}{}, errors.Join(
			tx.Update(change("alice", "SET balance = balance - :amount", "balance >= :amount", "10")),
			tx.Update(change("bob", "SET balance = balance + :amount", "attribute_exists(id)", "10")),
		)
	})
	if cancelled, ok := errors.AsType[*dynamostore.CancelledError](err); ok {
		for _, reason := range cancelled.Reasons {
			log.Print(reason.Name, ": ", reason.Code) // action 1, Update on table "accounts": ConditionalCheckFailed
		}
	}
}
