package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/examples/internal/templatetest"
)

// mapping is the event source mapping of a stream, as far as it is held to something.
type mapping struct {
	Stream                     templatetest.Reference `yaml:"Stream"`
	StartingPosition           string                 `yaml:"StartingPosition"`
	BatchSize                  int                    `yaml:"BatchSize"`
	FunctionResponseTypes      []string               `yaml:"FunctionResponseTypes"`
	BisectBatchOnFunctionError bool                   `yaml:"BisectBatchOnFunctionError"`
	MaximumRetryAttempts       int                    `yaml:"MaximumRetryAttempts"`
	Destination                struct {
		OnFailure struct {
			Type        string                 `yaml:"Type"`
			Destination templatetest.Reference `yaml:"Destination"`
		} `yaml:"OnFailure"`
	} `yaml:"DestinationConfig"`
}

// template is the part of the SAM template that is held to something.
type template struct {
	Resources struct {
		Function templatetest.Function[mapping] `yaml:"AuditFunction"`
		Orders   struct {
			Properties struct {
				templatetest.TableProperties `yaml:",inline"`
				StreamSpecification          struct {
					StreamViewType string `yaml:"StreamViewType"`
				} `yaml:"StreamSpecification"`
			} `yaml:"Properties"`
		} `yaml:"OrdersTable"`
		Audit       templatetest.Table `yaml:"AuditTable"`
		Idempotency templatetest.Table `yaml:"IdempotencyTable"`
		DeadLetter  queue              `yaml:"DeadLetterQueue"`
		Discarded   queue              `yaml:"DiscardedQueue"`
	} `yaml:"Resources"`
}

type queue struct {
	Type string `yaml:"Type"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	return templatetest.Read[template](t, "template.yaml")
}

// TestTemplateMapping holds the template to what a function cannot see of its mapping.
func TestTemplateMapping(t *testing.T) {
	resources := readTemplate(t).Resources
	if len(resources.Function.Properties.Events) != 1 {
		t.Fatalf("the function has %d events, want its stream alone", len(resources.Function.Properties.Events))
	}
	for name, event := range resources.Function.Properties.Events {
		m := event.Properties
		if event.Type != "DynamoDB" || m.Stream != "!GetAtt OrdersTable.StreamArn" || m.StartingPosition != "TRIM_HORIZON" {
			t.Errorf("event %s is of %s %s from %s, want of DynamoDB !GetAtt OrdersTable.StreamArn from TRIM_HORIZON",
				name, event.Type, m.Stream, m.StartingPosition)
		}
		if !slices.Equal(m.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) || !m.BisectBatchOnFunctionError {
			t.Errorf("FunctionResponseTypes are %q and BisectBatchOnFunctionError is %v, want ReportBatchItemFailures and true",
				m.FunctionResponseTypes, m.BisectBatchOnFunctionError)
		}
		// If all changes of a batch are of one order and none can be logged, each uses MaxAttempts-1 retries of the batch, which
		// are not known to be counted anew when the checkpoint moves. Two more are for what never reaches the handler.
		if least := (audit.MaxAttempts-1)*m.BatchSize + 2; m.BatchSize < 1 || m.MaximumRetryAttempts < least {
			t.Errorf("MaximumRetryAttempts is %d with a BatchSize of %d and MaxAttempts of %d, want at least %d",
				m.MaximumRetryAttempts, m.BatchSize, audit.MaxAttempts, least)
		}
		// Without the type SAM does not let the function's role send to the queue.
		if got := m.Destination.OnFailure; got.Type != "SQS" || got.Destination != "!GetAtt DiscardedQueue.Arn" {
			t.Errorf("OnFailure is %+v, want SQS and !GetAtt DiscardedQueue.Arn", got)
		}
	}
	for name, q := range map[string]queue{"DeadLetterQueue": resources.DeadLetter, "DiscardedQueue": resources.Discarded} {
		if q.Type != "AWS::SQS::Queue" {
			t.Errorf("%s is a %q, want an AWS::SQS::Queue", name, q.Type)
		}
	}
}

func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	templatetest.CheckFunction(t, function, map[string]templatetest.Reference{
		"AUDIT_TABLE": "!Ref AuditTable", "IDEMPOTENCY_TABLE": "!Ref IdempotencyTable", "DEAD_LETTER_QUEUE_URL": "!Ref DeadLetterQueue",
	})
	if got := function.Properties.Timeout; got < 10 {
		t.Errorf("Timeout is %d s, want at least 10", got)
	}
}

// TestTemplatePermissions holds the function's policy to what dynamostore documents, one put and one send.
func TestTemplatePermissions(t *testing.T) {
	templatetest.CheckPolicy(t, readTemplate(t).Resources.Function,
		templatetest.TableStatement(t, "../../idempotency/dynamostore", "!GetAtt IdempotencyTable.Arn"),
		templatetest.Statement{Effect: "Allow", Action: []string{"dynamodb:PutItem"}, Resource: "!GetAtt AuditTable.Arn"},
		templatetest.Statement{Effect: "Allow", Action: []string{"sqs:SendMessage"}, Resource: "!GetAtt DeadLetterQueue.Arn"},
	)
}

func TestTemplateTables(t *testing.T) {
	resources := readTemplate(t).Resources
	templatetest.CheckTable(t, resources.Idempotency)

	// The tables of audit.Order and audit.TableLog.
	orders := table("id")
	orders.TimeToLive.AttributeName, orders.TimeToLive.Enabled = "expires", true
	if diff := cmp.Diff(orders, resources.Orders.Properties.TableProperties); diff != "" {
		t.Errorf("table of orders (-want +got):\n%s", diff)
	}
	if got := resources.Orders.Properties.StreamSpecification.StreamViewType; got != "NEW_AND_OLD_IMAGES" {
		t.Errorf("StreamViewType is %q, want NEW_AND_OLD_IMAGES", got)
	}
	if diff := cmp.Diff(table(audit.PartitionKey, audit.SortKey), resources.Audit.Properties); diff != "" {
		t.Errorf("table of the log (-want +got):\n%s", diff)
	}
}

// table returns the properties of a table whose key is one or two strings.
func table(key ...string) templatetest.TableProperties {
	p := templatetest.TableProperties{BillingMode: "PAY_PER_REQUEST"}
	for i, name := range key {
		p.AttributeDefinitions = append(p.AttributeDefinitions, map[string]string{"AttributeName": name, "AttributeType": "S"})
		p.KeySchema = append(p.KeySchema, map[string]string{"AttributeName": name, "KeyType": []string{"HASH", "RANGE"}[i]})
	}
	return p
}
