package handwritten

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is a table of keys, in the layout of dynamostore.
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// Claim makes one PutItem. It returns a *types.ConditionalCheckFailedException with the item where the key is taken.
func (t *Table) Claim(ctx context.Context, key, owner string, now time.Time) error {
	_, err := t.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: t.name(),
		Item: map[string]types.AttributeValue{
			"id": text(key), "status": text("INPROGRESS"), "owner": text(owner),
			"expiration": number(now.Add(time.Hour).Unix()), "in_progress_expiration": number(now.Add(time.Minute).UnixMilli()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR (#s = :done AND #x < :now) OR " +
			"(#s = :busy AND #l < :free) OR (#s = :busy AND attribute_not_exists(#l) AND #x < :now)"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#s": "status", "#x": "expiration", "#l": "in_progress_expiration",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":done": text("COMPLETED"), ":busy": text("INPROGRESS"),
			":now": number(now.Unix()), ":free": number(now.UnixMilli() - 1000),
		},
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// Complete makes one UpdateItem.
func (t *Table) Complete(ctx context.Context, key, owner string, now time.Time) error {
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           t.name(),
		Key:                 map[string]types.AttributeValue{"id": text(key)},
		ConditionExpression: aws.String("#o = :owner AND #s = :busy AND #x >= :now"),
		UpdateExpression:    aws.String("SET #s = :done, #x = :expiry REMOVE #l, #a, #d"),
		ExpressionAttributeNames: map[string]string{
			"#o": "owner", "#s": "status", "#x": "expiration", "#l": "in_progress_expiration", "#a": "attempts", "#d": "data",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner": text(owner), ":busy": text("INPROGRESS"), ":done": text("COMPLETED"),
			":now": number(now.Unix()), ":expiry": number(now.Add(time.Hour).Unix()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// Release makes one DeleteItem.
func (t *Table) Release(ctx context.Context, key, owner string) error {
	_, err := t.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 t.name(),
		Key:                       map[string]types.AttributeValue{"id": text(key)},
		ConditionExpression:       aws.String("attribute_not_exists(#id) OR (#o = :owner AND #s = :busy)"),
		ExpressionAttributeNames:  map[string]string{"#id": "id", "#o": "owner", "#s": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":owner": text(owner), ":busy": text("INPROGRESS")},
	})
	return err
}

func (t *Table) name() *string { return aws.String(t.Name) }

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
