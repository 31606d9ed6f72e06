// Command byhand is the orders function as it is written without oncekit: a loop over the records, and two conditional
// writes. The size of ../../lambda is measured against it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/examples/orders/shop"
)

type function struct {
	client   *dynamodb.Client
	table    string
	provider shop.Provider
}

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	f := &function{dynamodb.NewFromConfig(cfg), os.Getenv("TABLE_NAME"), shop.FakeProvider{}}
	lambda.Start(f.handle)
}

func (f *function) handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, record := range event.Records {
		if err := f.place(ctx, record); err != nil {
			log.Printf("record %s: %v", record.MessageId, err)
			response.BatchItemFailures = append(response.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return response, nil
}

func (f *function) place(ctx context.Context, record events.SQSMessage) error {
	var order shop.Order
	if err := json.Unmarshal([]byte(record.Body), &order); err != nil {
		return err
	}
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "orders#" + order.ID}}
	now := time.Now()
	lease := now.Add(time.Minute)
	if deadline, ok := ctx.Deadline(); ok {
		lease = deadline
	}
	_, err := f.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &f.table,
		Item: map[string]types.AttributeValue{
			"id": key["id"], "status": &types.AttributeValueMemberS{Value: "INPROGRESS"},
			"in_progress_expiration": number(lease.UnixMilli()),
			"expiration":             number(now.Add(15 * 24 * time.Hour).Unix()),
		},
		ConditionExpression: aws.String("attribute_not_exists(id) OR expiration < :now OR " +
			"(#status = :inprogress AND in_progress_expiration < :ms)"),
		ExpressionAttributeNames: map[string]string{"#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": number(now.Unix()), ":ms": number(now.UnixMilli()),
			":inprogress": &types.AttributeValueMemberS{Value: "INPROGRESS"},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		if status, ok := refused.Item["status"].(*types.AttributeValueMemberS); ok && status.Value == "COMPLETED" {
			return nil
		}
		return errors.New("in progress elsewhere")
	}
	if err != nil {
		return err
	}
	if err := f.provider.Charge(ctx, order); err != nil {
		_, deleteErr := f.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &f.table, Key: key})
		return errors.Join(err, deleteErr)
	}
	_, err = f.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &f.table, Key: key,
		UpdateExpression:         aws.String("SET #status = :completed REMOVE in_progress_expiration"),
		ConditionExpression:      aws.String("#status = :inprogress"),
		ExpressionAttributeNames: map[string]string{"#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":completed":  &types.AttributeValueMemberS{Value: "COMPLETED"},
			":inprogress": &types.AttributeValueMemberS{Value: "INPROGRESS"},
		},
	})
	return err
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
