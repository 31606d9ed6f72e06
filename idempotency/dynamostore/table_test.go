package dynamostore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestCreateTable(t *testing.T) {
	client := dynamotest.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			optFn := func(o *dynamostore.Options) { *o = l.options }
			table := dynamotest.Table(t, client, optFn)
			out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
			if err != nil {
				t.Fatal(err)
			}
			if out.Table.TableStatus != types.TableStatusActive ||
				out.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
				t.Errorf("table is %v with billing %v; want it active and on demand",
					out.Table.TableStatus, out.Table.BillingModeSummary.BillingMode)
			}
			ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
			if err != nil {
				t.Fatal(err)
			}
			if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != l.options.ExpiryAttribute {
				t.Errorf("TTL is on %q; want %q", got, l.options.ExpiryAttribute)
			}
			if err := dynamostore.CreateTable(t.Context(), client, table, optFn); err != nil {
				t.Errorf("a second CreateTable: %v", err)
			}
		})
	}
}

// TestCreateTableTogether has several processes start at a time.
func TestCreateTableTogether(t *testing.T) {
	client := dynamotest.Client(t, dynamotest.ShortRetries)
	table := "oncekit-test-" + rand.Text()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := dynamostore.CreateTable(t.Context(), client, table)
			// Who comes between the creation and TTL cannot tell this table from one that others use.
			if err != nil && !strings.HasSuffix(err.Error(), "TTL is off, want it on expiration") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := dynamostore.CreateTable(t.Context(), client, table); err != nil {
		t.Error(err)
	}
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
		t.Error(err)
	}
}

// tables is a TableClient without a server.
type tables struct {
	createErr  error
	describe   []types.TableDescription // one a call, the last one for good; without a status: not found
	ttl        types.TimeToLiveDescription
	updateErr  error
	updateSets *types.TimeToLiveDescription // what an update leaves

	calls []string
}

func (f *tables) CreateTable(
	context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	f.calls = append(f.calls, "CreateTable")
	return &dynamodb.CreateTableOutput{}, f.createErr
}

func (f *tables) DescribeTable(
	context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	f.calls = append(f.calls, "DescribeTable")
	d := f.describe[0]
	if len(f.describe) > 1 {
		f.describe = f.describe[1:]
	}
	if d.TableStatus == "" {
		return nil, &types.ResourceNotFoundException{}
	}
	return &dynamodb.DescribeTableOutput{Table: &d}, nil
}

func (f *tables) UpdateTimeToLive(
	context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options),
) (*dynamodb.UpdateTimeToLiveOutput, error) {
	f.calls = append(f.calls, "UpdateTimeToLive")
	if f.updateSets != nil {
		f.ttl = *f.updateSets
	}
	return &dynamodb.UpdateTimeToLiveOutput{}, f.updateErr
}

func (f *tables) DescribeTimeToLive(
	context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	f.calls = append(f.calls, "DescribeTimeToLive")
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &f.ttl}, nil
}

func table(status types.TableStatus, attributes ...string) types.TableDescription {
	d := types.TableDescription{TableStatus: status}
	for i, a := range attributes {
		name, kind, _ := strings.Cut(a, ":")
		d.KeySchema = append(d.KeySchema, types.KeySchemaElement{
			AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		d.AttributeDefinitions = append(d.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: types.ScalarAttributeType(kind)})
	}
	return d
}

func TestCreateTableThatExists(t *testing.T) {
	exists := &types.ResourceInUseException{}
	on := types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String("expiration")}
	off := types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	other := types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabling, AttributeName: aws.String("ttl")}
	active := table(types.TableStatusActive, "id:S")
	creating := table(types.TableStatusCreating, "id:S")
	for _, test := range []struct {
		name    string
		options dynamostore.Options
		client  tables
		want    string // the error without its prefix; empty: none
		calls   string
	}{
		{"new, slowly", dynamostore.Options{},
			tables{describe: []types.TableDescription{{}, creating, creating, active}, ttl: off}, "",
			"CreateTable DescribeTable DescribeTable DescribeTable DescribeTable DescribeTimeToLive UpdateTimeToLive"},
		{"fits", dynamostore.Options{}, tables{createErr: exists, describe: []types.TableDescription{active}, ttl: on}, "",
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"is being changed", dynamostore.Options{},
			tables{createErr: exists, describe: []types.TableDescription{table(types.TableStatusUpdating, "id:S")}, ttl: on}, "",
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"is being created by another", dynamostore.Options{},
			tables{createErr: exists, describe: []types.TableDescription{creating, active}, ttl: off}, "",
			"CreateTable DescribeTable DescribeTable DescribeTimeToLive UpdateTimeToLive"},
		{"another turns TTL on first", dynamostore.Options{},
			tables{describe: []types.TableDescription{active}, ttl: off, updateErr: errors.New("already enabled"), updateSets: &on}, "",
			"CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive DescribeTimeToLive"},
		{"TTL cannot be turned on", dynamostore.Options{},
			tables{describe: []types.TableDescription{active}, ttl: off, updateErr: errors.New("denied")},
			`dynamodb:UpdateTimeToLive on table "table": denied`,
			"CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive DescribeTimeToLive"},
		{"TTL off", dynamostore.Options{}, tables{createErr: exists, describe: []types.TableDescription{active}, ttl: off},
			`table "table" exists and does not fit: TTL is off, want it on expiration`,
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"all different", dynamostore.Options{},
			tables{createErr: exists, describe: []types.TableDescription{table(types.TableStatusActive, "pk:S", "sk:N")}, ttl: other},
			`table "table" exists and does not fit: its partition key is pk (S), want id (S); its sort key is sk (N), want none; ` +
				`TTL is on ttl, want it on expiration`,
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"key is a number", dynamostore.Options{},
			tables{createErr: exists, describe: []types.TableDescription{table(types.TableStatusActive, "id:N")}, ttl: on},
			`table "table" exists and does not fit: its partition key is id (N), want id (S)`,
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"no sort key", dynamostore.Options{SortKeyAttribute: "sk"},
			tables{createErr: exists, describe: []types.TableDescription{active}, ttl: on},
			`table "table" exists and does not fit: its sort key is none, want sk (S)`,
			"CreateTable DescribeTable DescribeTimeToLive"},
		{"is being deleted", dynamostore.Options{},
			tables{createErr: exists, describe: []types.TableDescription{table(types.TableStatusDeleting, "id:S")}},
			`dynamodb:DescribeTable on table "table": table is DELETING; want ACTIVE`, "CreateTable DescribeTable"},
		{"denied", dynamostore.Options{}, tables{createErr: errors.New("denied")},
			`dynamodb:CreateTable on table "table": denied`, "CreateTable"},
		{"wrong options", dynamostore.Options{MaxInFlight: -1}, tables{},
			"Options.MaxInFlight is -1; it must be at least 1, or 0 for 64", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := test.client
				err := dynamostore.CreateTable(t.Context(), &client, "table", func(o *dynamostore.Options) { *o = test.options })
				got := ""
				if err != nil {
					got = strings.TrimPrefix(err.Error(), "dynamostore: ")
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.calls, strings.Join(client.calls, " ")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestCreateTableEndsWithContext waits for a table that never becomes active.
func TestCreateTableEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &tables{describe: []types.TableDescription{table(types.TableStatusCreating, "id:S")}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := dynamostore.CreateTable(ctx, client, "table")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "table is still CREATING") {
			t.Errorf("error is %v; want a DeadlineExceeded that says the table is still CREATING", err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("took %v; want a minute at most", took)
		}
	})
}

func TestCreateTableArguments(t *testing.T) {
	for _, test := range []struct {
		name   string
		client dynamostore.TableClient
		table  string
		want   string
	}{
		{"no client", nil, "table", "dynamostore: client is nil; want a *dynamodb.Client"},
		{"nil client", (*dynamodb.Client)(nil), "table", "dynamostore: client is nil; want a *dynamodb.Client"},
		{"no table", &tables{}, "", `dynamostore: table is ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := dynamostore.CreateTable(t.Context(), test.client, test.table)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error is %v; want %s", err, test.want)
			}
		})
	}
}
