package dynamotest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/oncekit/oncekit/internal/localserver"
	"github.com/oncekit/oncekit/internal/streampoll"
)

// StreamsClient returns a client for the streams of the endpoint of Start. Its connections are closed when the test
// ends.
func StreamsClient(t testing.TB, optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	t.Helper()
	return dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: aws.String(Start(t)),
		Region:       localserver.Region(),
		Credentials:  localserver.Credentials,
		HTTPClient:   localserver.HTTPClient(t),
	}, optFns...)
}

// StreamTable creates a table with a stream of new and old images, and returns the table's name and the stream's ARN.
// Its keys are strings: partitionKey, and sortKey unless that is empty. It is deleted when the test ends.
//
// On the server that `make tools` installs, a stream is not all that it is on DynamoDB: sequence numbers and event ids
// count from 1 in each stream, its one shard never ends, the Region is "dynoxide", a put that changes nothing is a
// MODIFY (DynamoDB writes no record), and time to live deletes nothing.
func StreamTable(t testing.TB, client *dynamodb.Client, partitionKey, sortKey string) (name, streamARN string) {
	t.Helper()
	name = "oncekit-test-" + rand.Text()
	input := &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	for _, key := range []struct {
		name string
		role types.KeyType
	}{{partitionKey, types.KeyTypeHash}, {sortKey, types.KeyTypeRange}} {
		if key.name == "" {
			continue
		}
		input.KeySchema = append(input.KeySchema,
			types.KeySchemaElement{AttributeName: aws.String(key.name), KeyType: key.role})
		input.AttributeDefinitions = append(input.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(key.name), AttributeType: types.ScalarAttributeTypeS})
	}
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	created, err := client.CreateTable(ctx, input)
	if err != nil {
		t.Fatalf("dynamotest: create table: %v", err)
	}
	deleteAfter(t, client, name)
	exists := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, time.Second
	})
	if err := exists.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, patience); err != nil {
		t.Fatalf("dynamotest: table %s: %v", name, err)
	}
	return name, aws.ToString(created.TableDescription.LatestStreamArn)
}

// Shards returns the shards of a stream in the order in which the server lists them.
func Shards(ctx context.Context, client *dynamodbstreams.Client, streamARN string) ([]streampoll.Shard, error) {
	var shards []streampoll.Shard
	input := &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(streamARN)}
	for {
		page, err := client.DescribeStream(ctx, input)
		if err != nil {
			return nil, fmt.Errorf("dynamotest: describe stream %s: %w", streamARN, err)
		}
		for _, s := range page.StreamDescription.Shards {
			r := shardReader{client: client, streamARN: streamARN, shard: aws.ToString(s.ShardId)}
			shards = append(shards, streampoll.Shard{ID: r.shard, Read: r.read})
		}
		if input.ExclusiveStartShardId = page.StreamDescription.LastEvaluatedShardId; input.ExclusiveStartShardId == nil {
			return shards, nil
		}
	}
}

// shardReader reads one shard.
type shardReader struct {
	client           *dynamodbstreams.Client
	streamARN, shard string
}

// read is streampoll.Shard.Read. The end of a shard that is open is the first answer without records: DynamoDB does not
// say how far behind it is. On DynamoDB itself records may follow such an answer.
func (r shardReader) read(ctx context.Context, after string, limit int) ([]streampoll.Record, error) {
	from := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(r.streamARN), ShardId: aws.String(r.shard),
		ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	}
	if after != "" {
		from.ShardIteratorType = streamtypes.ShardIteratorTypeAfterSequenceNumber
		from.SequenceNumber = aws.String(after)
	}
	start, err := r.client.GetShardIterator(ctx, from)
	if err != nil {
		return nil, err
	}
	page, err := r.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{
		ShardIterator: start.ShardIterator, Limit: aws.Int32(int32(limit)),
	})
	if err != nil {
		return nil, err
	}
	records := make([]streampoll.Record, len(page.Records))
	for i, record := range page.Records {
		if records[i], err = streamRecord(r.streamARN, record); err != nil {
			return nil, err
		}
	}
	return records, nil
}
