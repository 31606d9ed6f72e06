package ledger

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is what a Book needs of a *dynamodb.Client.
type Client interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Book is a table of accounts and of the transfers between them. Its partition key is id, of type S. An account is the item
// account/NAME, with its balance in cents, and how often it was debited and credited. A transfer is the item transfer/ID.
type Book struct {
	Client Client
	Table  string
}

// Account is what the book says of an account.
type Account struct {
	Balance         int64 // cents
	Debits, Credits int
}

// Open opens an account with a balance.
func (b Book) Open(ctx context.Context, account string, balance int64) error {
	_, err := b.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.Table, Item: map[string]types.AttributeValue{
		"id": text(accountPrefix + account), "balance": number(balance), "debits": number(0), "credits": number(0),
	}})
	if err != nil {
		return fmt.Errorf("open account %s: %w", account, err)
	}
	return nil
}

// Account returns an account.
func (b Book) Account(ctx context.Context, account string) (Account, error) {
	out, err := b.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &b.Table, Key: accountKey(account), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Account{}, fmt.Errorf("account %s: %w", account, err)
	}
	var numbers [3]int64
	for i, name := range []string{"balance", "debits", "credits"} {
		n, ok := out.Item[name].(*types.AttributeValueMemberN)
		if !ok {
			return Account{}, fmt.Errorf("account %s has the %s %v, want a number", account, name, out.Item[name])
		}
		if numbers[i], err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return Account{}, fmt.Errorf("account %s: %s: %w", account, name, err)
		}
	}
	return Account{Balance: numbers[0], Debits: int(numbers[1]), Credits: int(numbers[2])}, nil
}

const accountPrefix = "account/"

func accountKey(account string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": text(accountPrefix + account)}
}

// debit takes the amount from an account that has it.
func (b Book) debit(t Transfer) types.Update {
	return types.Update{
		TableName: &b.Table, Key: accountKey(t.From),
		UpdateExpression:    aws.String("SET balance = balance - :amount ADD debits :one"),
		ConditionExpression: aws.String("balance >= :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":amount": number(t.Amount), ":one": number(1),
		},
	}
}

// credit gives the amount to an account that is there.
func (b Book) credit(t Transfer) types.Update {
	return types.Update{
		TableName: &b.Table, Key: accountKey(t.To),
		UpdateExpression:    aws.String("SET balance = balance + :amount ADD credits :one"),
		ConditionExpression: aws.String("attribute_exists(id)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":amount": number(t.Amount), ":one": number(1),
		},
	}
}

// entry is the transfer itself.
func (b Book) entry(t Transfer) types.Put {
	return types.Put{TableName: &b.Table, Item: map[string]types.AttributeValue{
		"id": text("transfer/" + t.ID), "from": text(t.From), "to": text(t.To), "amount": number(t.Amount),
	}}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
