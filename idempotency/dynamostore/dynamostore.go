package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Client is what a Store needs of the SDK's *dynamodb.Client.
type Client interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(
		context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(
		context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(
		context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.BatchGetItemOutput, error)
	BatchExecuteStatement(
		context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options),
	) (*dynamodb.BatchExecuteStatementOutput, error)
	TransactWriteItems(
		context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

var (
	_ Client                = (*dynamodb.Client)(nil)
	_ idempotency.Store     = (*Store)(nil)
	_ idempotency.Validator = (*Store)(nil)
)

// Store is an idempotency.Store on a DynamoDB table. It is safe for concurrent use.
//
// The errors of its methods name the table, the IAM action and the key, with both attributes where there are two. They
// match idempotency.ErrStoreUnusable where no request can succeed before someone changes the configuration: the table
// does not exist, has another key, or access to it is denied.
type Store struct {
	client     Client
	table      *string
	options    Options
	err        error         // what Validate returns
	inFlight   chan struct{} // a token a call
	statements statements
	bulk       bulk
}

// New returns a Store that keeps its claims in table, a name or an ARN. If table is empty, it is that of the environment
// variable ONCEKIT_IDEMPOTENCY_TABLE, which is read now. New makes no request. Whether its arguments can work is what
// Validate tells; idempotency.New calls that.
func New(client Client, table string, optFns ...func(*Options)) *Store {
	options, err := resolve(optFns)
	table, tableErr := tableName(table)
	if tableErr != nil {
		err = tableErr
	}
	if isNil(client) {
		err = errors.New("dynamostore: client is nil; want a *dynamodb.Client")
	}
	s := &Store{
		client:     client,
		table:      aws.String(table),
		options:    options,
		err:        err,
		inFlight:   make(chan struct{}, options.MaxInFlight),
		statements: newStatements(options),
	}
	s.newBulk()
	return s
}

// Validate returns an error that names the first argument of New that cannot work, its value and its limit. It makes no
// request. The methods of such a Store return that error.
func (s *Store) Validate() error { return s.err }

// key returns the primary key of the item for key.
func (s *Store) key(key string) map[string]types.AttributeValue {
	partition := s.partition(key)
	if partition == nil {
		return map[string]types.AttributeValue{s.options.KeyAttribute: text(key)}
	}
	return map[string]types.AttributeValue{s.options.KeyAttribute: partition, s.options.SortKeyAttribute: text(key)}
}

// partition returns the partition key's value of the item for key in a table with a sort key, nil in one without.
func (s *Store) partition(key string) types.AttributeValue {
	if !s.options.sorted() {
		return nil
	}
	return text(s.options.partitionValue(key))
}
