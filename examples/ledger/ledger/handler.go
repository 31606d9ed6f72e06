// Package ledger is the function of the example: the handler of the queue of transfers, as it runs on Lambda, in the
// example's own processes and in the tests.
package ledger

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/sources/sqs"
)

// NewHandler returns a handler that books the transfers of a queue. Debit, credit and entry of a transfer are stored in the
// transaction that stores that it is done: all of it happens, once, or nothing does. The guard's store must be a
// *dynamostore.Store.
func NewHandler(book Book, guard *idempotency.Guard, optFns ...func(*sqs.Options)) (*sqs.Handler[Transfer], error) {
	return newHandler(guard, optFns, func(ctx context.Context, t Transfer) error {
		tx := dynamostore.Tx(ctx)
		return errors.Join(tx.Update(book.debit(t)), tx.Update(book.credit(t)), tx.Put(book.entry(t)))
	})
}

// NewHandlerWithoutTx returns a handler that makes the same writes itself, one after the other, to show what Tx is for. A
// process that dies between two of them leaves a transfer that is booked in part, and that another process begins anew.
func NewHandlerWithoutTx(
	book Book, guard *idempotency.Guard, optFns ...func(*sqs.Options),
) (*sqs.Handler[Transfer], error) {
	return newHandler(guard, optFns, func(ctx context.Context, t Transfer) error {
		for _, u := range []types.Update{book.debit(t), book.credit(t)} {
			_, err := book.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
				ConditionExpression: u.ConditionExpression, ExpressionAttributeValues: u.ExpressionAttributeValues,
			})
			if err != nil {
				return err
			}
		}
		p := book.entry(t)
		_, err := book.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: p.TableName, Item: p.Item})
		return err
	})
}

func newHandler(
	guard *idempotency.Guard, optFns []func(*sqs.Options), book func(context.Context, Transfer) error,
) (*sqs.Handler[Transfer], error) {
	handle := func(ctx context.Context, m *sqs.Message[Transfer]) error {
		if err := m.Body.check(); err != nil {
			return err
		}
		return book(ctx, m.Body)
	}
	options := append([]func(*sqs.Options){func(o *sqs.Options) { o.Idempotency = guard }}, optFns...)
	return sqs.NewHandler(handle, options...)
}
