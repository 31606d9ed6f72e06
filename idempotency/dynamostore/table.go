package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableClient is what CreateTable needs of the SDK's *dynamodb.Client.
type TableClient interface {
	CreateTable(
		context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options),
	) (*dynamodb.CreateTableOutput, error)
	DescribeTable(
		context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	UpdateTimeToLive(
		context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options),
	) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(
		context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTimeToLiveOutput, error)
}

var _ TableClient = (*dynamodb.Client)(nil)

// CreateTable creates a table that a Store with the same options can use, with on-demand billing and TTL on the expiry
// attribute, and returns when it is active. Creating takes some seconds on AWS; ctx bounds the wait. An empty table is that
// of the environment variable ONCEKIT_IDEMPOTENCY_TABLE, as with New.
//
// It leaves a table that exists already as it is. It returns nil for one that fits, whatever its billing and its
// indexes, and for one that does not an error that says all that differs. It does not turn TTL on for a table that it
// did not create, since that would delete items.
func CreateTable(ctx context.Context, client TableClient, table string, optFns ...func(*Options)) error {
	o, err := resolve(optFns)
	if err != nil {
		return err
	}
	table, err = tableName(table)
	if err != nil {
		return err
	}
	if isNil(client) {
		return errors.New("dynamostore: client is nil; want a *dynamodb.Client")
	}
	fail := func(operation string, err error) error {
		return fmt.Errorf("dynamostore: dynamodb:%s on table %q: %w", operation, table, err)
	}

	created := true
	input := &dynamodb.CreateTableInput{TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest}
	input.KeySchema, input.AttributeDefinitions = keySchema(o)
	if _, err := client.CreateTable(ctx, input); err != nil {
		var inUse *types.ResourceInUseException
		if !errors.As(err, &inUse) {
			return fail("CreateTable", err)
		}
		created = false
	}
	description, waited, err := waitActive(ctx, client, table)
	if err != nil {
		return fail("DescribeTable", err)
	}
	differences := keyDifferences(o, description)

	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
	if err != nil {
		return fail("DescribeTimeToLive", err)
	}
	// A table that was not active yet is just being created by another caller of this function, most likely: either of
	// the two may turn TTL on.
	if isTTLOff(ttl.TimeToLiveDescription) && (created || waited) && len(differences) == 0 {
		_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(table),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{
				AttributeName: aws.String(o.ExpiryAttribute),
				Enabled:       aws.Bool(true),
			},
		})
		if err == nil {
			return nil
		}
		ttl, describeErr := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
		if describeErr != nil || ttlDifference(o, ttl.TimeToLiveDescription) != "" {
			return fail("UpdateTimeToLive", err)
		}
		return nil
	}
	if d := ttlDifference(o, ttl.TimeToLiveDescription); d != "" {
		differences = append(differences, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("dynamostore: table %q exists and does not fit: %s", table, strings.Join(differences, "; "))
	}
	return nil
}

func keySchema(o Options) ([]types.KeySchemaElement, []types.AttributeDefinition) {
	schema := []types.KeySchemaElement{{AttributeName: aws.String(o.KeyAttribute), KeyType: types.KeyTypeHash}}
	definitions := []types.AttributeDefinition{
		{AttributeName: aws.String(o.KeyAttribute), AttributeType: types.ScalarAttributeTypeS},
	}
	if o.sorted() {
		schema = append(schema, types.KeySchemaElement{
			AttributeName: aws.String(o.SortKeyAttribute), KeyType: types.KeyTypeRange,
		})
		definitions = append(definitions, types.AttributeDefinition{
			AttributeName: aws.String(o.SortKeyAttribute), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	return schema, definitions
}

// waitActive returns the description of the table once it is active, and whether it was not so at first.
func waitActive(ctx context.Context, client TableClient, table string) (_ *types.TableDescription, waited bool, _ error) {
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
		// DescribeTable is eventually consistent: a table that was just created may not be there yet.
		var notFound *types.ResourceNotFoundException
		status := types.TableStatusCreating
		switch {
		case err == nil:
			status = out.Table.TableStatus
		case !errors.As(err, &notFound):
			return nil, waited, err
		}
		switch status {
		case types.TableStatusActive:
			return out.Table, waited, nil
		case types.TableStatusUpdating:
			return out.Table, waited, nil // it serves requests
		case types.TableStatusCreating:
		default:
			return nil, waited, fmt.Errorf("table is %s; want %s", status, types.TableStatusActive)
		}
		waited = true
		if !sleep(ctx, delay) {
			ended := ctx.Err()
			if ended == nil {
				ended = context.DeadlineExceeded // it would be, before the delay is over
			}
			return nil, waited, fmt.Errorf("table is still %s: %w", status, ended)
		}
	}
}

// keyDifferences returns how the table's key differs from the one that o asks for.
func keyDifferences(o Options, table *types.TableDescription) []string {
	kinds := make(map[string]types.ScalarAttributeType)
	for _, d := range table.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	found := make(map[types.KeyType]string)
	for _, k := range table.KeySchema {
		found[k.KeyType] = fmt.Sprintf("%s (%s)", aws.ToString(k.AttributeName), kinds[aws.ToString(k.AttributeName)])
	}
	var differences []string
	for _, k := range []struct {
		kind types.KeyType
		text string
		name string
	}{
		{types.KeyTypeHash, "partition key", o.KeyAttribute},
		{types.KeyTypeRange, "sort key", o.SortKeyAttribute},
	} {
		want := "none"
		if k.name != "" {
			want = k.name + " (S)"
		}
		got := found[k.kind]
		if got == "" {
			got = "none"
		}
		if got != want {
			differences = append(differences, fmt.Sprintf("its %s is %s, want %s", k.text, got, want))
		}
	}
	return differences
}

func isTTLOff(d *types.TimeToLiveDescription) bool {
	return d == nil || d.TimeToLiveStatus == "" || d.TimeToLiveStatus == types.TimeToLiveStatusDisabled
}

// ttlDifference returns how the table's TTL setting differs from the one that o asks for, "" if it does not.
func ttlDifference(o Options, d *types.TimeToLiveDescription) string {
	if isTTLOff(d) {
		return fmt.Sprintf("TTL is off, want it on %s", o.ExpiryAttribute)
	}
	if d.TimeToLiveStatus == types.TimeToLiveStatusDisabling {
		return fmt.Sprintf("TTL is being turned off, want it on %s", o.ExpiryAttribute)
	}
	if name := aws.ToString(d.AttributeName); name != o.ExpiryAttribute {
		return fmt.Sprintf("TTL is on %s, want it on %s", name, o.ExpiryAttribute)
	}
	return ""
}
