package main

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// reference is a value such as !GetAtt OrdersQueue.Arn: the tag and what it is of.
type reference string

// UnmarshalYAML keeps the tag, which stands for a call.
func (r *reference) UnmarshalYAML(node *yaml.Node) error {
	*r = reference(node.Tag + " " + node.Value)
	return nil
}

// template is the part of a SAM template that is held to something.
type template struct {
	Resources struct {
		Function struct {
			Type       string            `yaml:"Type"`
			Metadata   map[string]string `yaml:"Metadata"`
			Properties struct {
				CodeURI       string   `yaml:"CodeUri"`
				Handler       string   `yaml:"Handler"`
				Runtime       string   `yaml:"Runtime"`
				Architectures []string `yaml:"Architectures"`
				Timeout       int      `yaml:"Timeout"`
				Environment   struct {
					Variables map[string]reference `yaml:"Variables"`
				} `yaml:"Environment"`
				Events map[string]struct {
					Type       string `yaml:"Type"`
					Properties struct {
						Queue                 reference `yaml:"Queue"`
						FunctionResponseTypes []string  `yaml:"FunctionResponseTypes"`
						BatchingWindow        int       `yaml:"MaximumBatchingWindowInSeconds"`
					} `yaml:"Properties"`
				} `yaml:"Events"`
				Policies []struct {
					Statement []statement `yaml:"Statement"`
				} `yaml:"Policies"`
			} `yaml:"Properties"`
		} `yaml:"OrdersFunction"`
		Queue struct {
			Properties struct {
				VisibilityTimeout int `yaml:"VisibilityTimeout"`
				RedrivePolicy     struct {
					Target          reference `yaml:"deadLetterTargetArn"`
					MaxReceiveCount int       `yaml:"maxReceiveCount"`
				} `yaml:"RedrivePolicy"`
			} `yaml:"Properties"`
		} `yaml:"OrdersQueue"`
		DeadLetterQueue struct {
			Type string `yaml:"Type"`
		} `yaml:"OrdersDeadLetterQueue"`
		Table struct {
			Properties table `yaml:"Properties"`
		} `yaml:"IdempotencyTable"`
	} `yaml:"Resources"`
}

type statement struct {
	Effect   string    `yaml:"Effect"`
	Action   []string  `yaml:"Action"`
	Resource reference `yaml:"Resource"`
}

type table struct {
	BillingMode          string              `yaml:"BillingMode"`
	AttributeDefinitions []map[string]string `yaml:"AttributeDefinitions"`
	KeySchema            []map[string]string `yaml:"KeySchema"`
	TimeToLive           struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	} `yaml:"TimeToLiveSpecification"`
}

func readTemplate(t *testing.T) *template {
	t.Helper()
	text, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var parsed template
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return &parsed
}

// TestTemplateMapping holds the template to what a function cannot see of its queue and mapping.
func TestTemplateMapping(t *testing.T) {
	resources := readTemplate(t).Resources
	function, queue := resources.Function.Properties, resources.Queue.Properties
	if len(function.Events) != 1 {
		t.Fatalf("the function has %d events, want its queue alone", len(function.Events))
	}
	for name, event := range function.Events {
		if event.Type != "SQS" || event.Properties.Queue != "!GetAtt OrdersQueue.Arn" {
			t.Errorf("event %s is of %s %s, want of SQS !GetAtt OrdersQueue.Arn", name, event.Type, event.Properties.Queue)
		}
		if !slices.Equal(event.Properties.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) {
			t.Errorf("FunctionResponseTypes are %q, want ReportBatchItemFailures", event.Properties.FunctionResponseTypes)
		}
		want := 6*function.Timeout + event.Properties.BatchingWindow
		if function.Timeout == 0 || queue.VisibilityTimeout != want {
			t.Errorf("VisibilityTimeout is %d s with a function timeout of %d s and a window of %d s, want %d s",
				queue.VisibilityTimeout, function.Timeout, event.Properties.BatchingWindow, want)
		}
	}
	if got := queue.RedrivePolicy; got.Target != "!GetAtt OrdersDeadLetterQueue.Arn" || got.MaxReceiveCount < 5 {
		t.Errorf("RedrivePolicy is %+v, want the dead-letter queue after at least 5 receives", got)
	}
	if resources.DeadLetterQueue.Type != "AWS::SQS::Queue" {
		t.Errorf("the dead-letter queue is a %q", resources.DeadLetterQueue.Type)
	}
}

func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	p := function.Properties
	got := []string{p.Runtime, p.Handler, p.CodeURI, function.Metadata["BuildMethod"], strings.Join(p.Architectures, " ")}
	if diff := cmp.Diff([]string{"provided.al2023", "bootstrap", "lambda/", "go1.x", "arm64"}, got); diff != "" {
		t.Errorf("runtime, handler, code, build method, architecture (-want +got):\n%s", diff)
	}
	if got := p.Environment.Variables; len(got) != 1 || got["TABLE_NAME"] != "!Ref IdempotencyTable" {
		t.Errorf("environment is %v, want TABLE_NAME: !Ref IdempotencyTable", got)
	}
}

// TestTemplatePermissions holds the function's policy to what dynamostore documents.
func TestTemplatePermissions(t *testing.T) {
	policies := readTemplate(t).Resources.Function.Properties.Policies
	if len(policies) != 1 || len(policies[0].Statement) != 1 {
		t.Fatalf("the function has the policies %+v, want one of one statement", policies)
	}
	got := policies[0].Statement[0]
	slices.Sort(got.Action)
	want := statement{"Allow", documentedActions(t), "!GetAtt IdempotencyTable.Arn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statement (-want +got):\n%s", diff)
	}
}

// documentedActions returns the IAM actions in the list of dynamostore's package documentation.
func documentedActions(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../idempotency/dynamostore/doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(file.Doc.Text(), "# Permissions")
	if !found {
		t.Fatal("the documentation of dynamostore has no section Permissions")
	}
	section, _, _ = strings.Cut(section, "\n# ")
	var actions []string
	for _, match := range regexp.MustCompile(`(?m)^\t(dynamodb:\w+)`).FindAllStringSubmatch(section, -1) {
		actions = append(actions, match[1])
	}
	if len(actions) == 0 {
		t.Fatal("the section Permissions lists no action")
	}
	slices.Sort(actions)
	return actions
}

// TestTemplateTable holds the table to the one that dynamostore itself makes.
func TestTemplateTable(t *testing.T) {
	client := new(tableClient)
	if err := dynamostore.CreateTable(t.Context(), client, "idempotency"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(client.made, readTemplate(t).Resources.Table.Properties); diff != "" {
		t.Errorf("table (-CreateTable +template.yaml):\n%s", diff)
	}
}

// tableClient takes down the table that is asked of it, as it would stand in a template.
type tableClient struct {
	made        table
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
