package templatetest

import (
	"context"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// Table is an AWS::DynamoDB::Table.
type Table struct {
	Properties TableProperties `yaml:"Properties"`
}

// TableProperties are those of a Table.
type TableProperties struct {
	BillingMode          string              `yaml:"BillingMode"`
	AttributeDefinitions []map[string]string `yaml:"AttributeDefinitions"`
	KeySchema            []map[string]string `yaml:"KeySchema"`
	TimeToLive           struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	} `yaml:"TimeToLiveSpecification"`
}

// CheckTable checks that a table is like the one that dynamostore itself makes.
func CheckTable(t *testing.T, got Table) {
	t.Helper()
	client := new(tableClient)
	if err := dynamostore.CreateTable(t.Context(), client, "idempotency"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(client.made, got.Properties); diff != "" {
		t.Errorf("table (-CreateTable +template):\n%s", diff)
	}
}

// TableStatement is what the package documentation of dynamostore, in the folder at this path, says that a function
// needs on its table.
func TableStatement(t *testing.T, dynamostore string, table Reference) Statement {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), dynamostore+"/doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(file.Doc.Text(), "# Permissions")
	if !found {
		t.Fatal("the documentation of dynamostore has no section Permissions")
	}
	section, _, _ = strings.Cut(section, "\n# ")
	s := Statement{Effect: "Allow", Resource: table}
	for _, match := range regexp.MustCompile(`(?m)^\t(dynamodb:\w+)`).FindAllStringSubmatch(section, -1) {
		s.Action = append(s.Action, match[1])
	}
	if len(s.Action) == 0 {
		t.Fatal("the section Permissions lists no action")
	}
	return s
}

// tableClient takes down the table that is asked of it, as it would stand in a template.
type tableClient struct {
	made        TableProperties
	description types.TableDescription
}

func (c *tableClient) CreateTable(
	_ context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	c.description = types.TableDescription{
		TableStatus: types.TableStatusActive, KeySchema: in.KeySchema, AttributeDefinitions: in.AttributeDefinitions,
	}
	c.made.BillingMode = string(in.BillingMode)
	for _, a := range in.AttributeDefinitions {
		c.made.AttributeDefinitions = append(c.made.AttributeDefinitions,
			map[string]string{"AttributeName": aws.ToString(a.AttributeName), "AttributeType": string(a.AttributeType)})
	}
	for _, k := range in.KeySchema {
		c.made.KeySchema = append(c.made.KeySchema,
			map[string]string{"AttributeName": aws.ToString(k.AttributeName), "KeyType": string(k.KeyType)})
	}
	return &dynamodb.CreateTableOutput{}, nil
}

func (c *tableClient) DescribeTable(
	context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &c.description}, nil
}

func (c *tableClient) UpdateTimeToLive(
	_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateTimeToLiveOutput, error) {
	c.made.TimeToLive.AttributeName = aws.ToString(in.TimeToLiveSpecification.AttributeName)
	c.made.TimeToLive.Enabled = aws.ToBool(in.TimeToLiveSpecification.Enabled)
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

func (c *tableClient) DescribeTimeToLive(
	context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{}, nil
}
