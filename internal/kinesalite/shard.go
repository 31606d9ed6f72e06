package kinesalite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/oncekit/oncekit/internal/streampoll"
)

// Shards returns the shards of a stream in the order of their ids, so that parents come before their children.
func Shards(ctx context.Context, client *kinesis.Client, stream string) ([]streampoll.Shard, error) {
	var shards []streampoll.Shard
	pages := kinesis.NewDescribeStreamPaginator(client, &kinesis.DescribeStreamInput{
		StreamName: aws.String(stream), Limit: aws.Int32(100), // the default; the paginator panics without
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("kinesalite: describe stream %s: %w", stream, err)
		}
		name, err := arn.Parse(aws.ToString(page.StreamDescription.StreamARN))
		if err != nil {
			return nil, fmt.Errorf("kinesalite: stream %s: %w", stream, err)
		}
		for _, s := range page.StreamDescription.Shards {
			r := reader{client: client, stream: stream, arn: name, shard: aws.ToString(s.ShardId)}
			shards = append(shards, streampoll.Shard{ID: r.shard, Read: r.read})
		}
	}
	return shards, nil
}

// reader reads one shard.
type reader struct {
	client        *kinesis.Client
	stream, shard string
	arn           arn.ARN // the stream's
}

// read is streampoll.Shard.Read. The end of a shard that is open is what the server says is the latest record.
func (r reader) read(ctx context.Context, after string, limit int) ([]streampoll.Record, error) {
	from := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(r.stream), ShardId: aws.String(r.shard), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if after != "" {
		from.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		from.StartingSequenceNumber = aws.String(after)
	}
	start, err := r.client.GetShardIterator(ctx, from)
	if err != nil {
		return nil, err
	}
	for iterator := start.ShardIterator; iterator != nil; {
		page, err := r.client.GetRecords(ctx, &kinesis.GetRecordsInput{
			ShardIterator: iterator, Limit: aws.Int32(int32(limit)),
		})
		if err != nil {
			return nil, err
		}
		if len(page.Records) > 0 {
			return r.convert(page.Records)
		}
		if aws.ToInt64(page.MillisBehindLatest) == 0 {
			return nil, nil
		}
		iterator = page.NextShardIterator
	}
	return nil, nil
}

func (r reader) convert(records []types.Record) ([]streampoll.Record, error) {
	converted := make([]streampoll.Record, len(records))
	for i, record := range records {
		text, err := json.Marshal(r.event(record))
		if err != nil {
			return nil, err
		}
		converted[i] = streampoll.Record{SequenceNumber: aws.ToString(record.SequenceNumber), JSON: text}
	}
	return converted, nil
}

// eventRecord is a record as it is in a Lambda event.
// See https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
type eventRecord struct {
	Kinesis           eventData `json:"kinesis"`
	EventSource       string    `json:"eventSource"`
	EventVersion      string    `json:"eventVersion"`
	EventID           string    `json:"eventID"`
	EventName         string    `json:"eventName"`
	InvokeIdentityARN string    `json:"invokeIdentityArn"`
	AWSRegion         string    `json:"awsRegion"`
	EventSourceARN    string    `json:"eventSourceARN"`
}

type eventData struct {
	SchemaVersion  string               `json:"kinesisSchemaVersion"`
	PartitionKey   string               `json:"partitionKey"`
	SequenceNumber string               `json:"sequenceNumber"`
	Data           []byte               `json:"data"` // in base64
	ArrivedAt      float64              `json:"approximateArrivalTimestamp"`
	EncryptionType types.EncryptionType `json:"encryptionType,omitempty"`
}

func (r reader) event(record types.Record) eventRecord {
	return eventRecord{
		Kinesis: eventData{
			SchemaVersion:  "1.0",
			PartitionKey:   aws.ToString(record.PartitionKey),
			SequenceNumber: aws.ToString(record.SequenceNumber),
			Data:           record.Data,
			ArrivedAt:      seconds(aws.ToTime(record.ApproximateArrivalTimestamp)),
			EncryptionType: record.EncryptionType,
		},
		EventSource:       "aws:kinesis",
		EventVersion:      "1.0",
		EventID:           r.shard + ":" + aws.ToString(record.SequenceNumber),
		EventName:         "aws:kinesis:record",
		InvokeIdentityARN: "arn:aws:iam::" + r.arn.AccountID + ":role/lambda",
		AWSRegion:         r.arn.Region,
		EventSourceARN:    r.arn.String(),
	}
}

// seconds returns t as Lambda has it: seconds since 1970 with a fraction, in milliseconds.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
