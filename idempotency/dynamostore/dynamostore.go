package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Client is what a Store needs of the SDK's *dynamodb.Client. It has the methods for many items as well, although a
// Store does not call them yet: to add a method later would break every Client that is not the SDK's.
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
	err        error                        // what Validate returns
	partition  *types.AttributeValueMemberS // PartitionValue, nil without a sort key
	inFlight   chan struct{}                // a token a call
	statements statements
}

// New returns a Store that keeps its claims in table, a name or an ARN. It makes no request. Whether its arguments can
// work is what Validate tells; idempotency.New calls that.
func New(client Client, table string, optFns ...func(*Options)) *Store {
	options, err := resolve(optFns)
	if tableErr := validateTable(table); tableErr != nil {
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
	if options.SortKeyAttribute != "" {
		s.partition = &types.AttributeValueMemberS{Value: options.PartitionValue}
	}
	return s
}

// Validate returns an error that names the first argument of New that cannot work, its value and its limit. It makes no
// request. The methods of such a Store return that error.
func (s *Store) Validate() error { return s.err }

// key returns the primary key of the item for key.
func (s *Store) key(key string) map[string]types.AttributeValue {
	if s.partition == nil {
		return map[string]types.AttributeValue{s.options.KeyAttribute: &types.AttributeValueMemberS{Value: key}}
	}
	return map[string]types.AttributeValue{
		s.options.KeyAttribute:     s.partition,
		s.options.SortKeyAttribute: &types.AttributeValueMemberS{Value: key},
	}
}
