package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/templatetest"
)

// template is the part of the SAM template that is held to something.
type template struct {
	Resources struct {
		Function templatetest.Function[queueEvent] `yaml:"LedgerFunction"`
		Queue    struct {
			Properties struct {
				VisibilityTimeout int `yaml:"VisibilityTimeout"`
				RedrivePolicy     struct {
					Target          templatetest.Reference `yaml:"deadLetterTargetArn"`
					MaxReceiveCount int                    `yaml:"maxReceiveCount"`
				} `yaml:"RedrivePolicy"`
			} `yaml:"Properties"`
		} `yaml:"TransfersQueue"`
		DeadLetterQueue struct {
			Type string `yaml:"Type"`
		} `yaml:"TransfersDeadLetterQueue"`
		Table templatetest.Table `yaml:"IdempotencyTable"`
		Book  struct {
			templatetest.Table `yaml:",inline"`
			DeletionPolicy     string `yaml:"DeletionPolicy"`
		} `yaml:"BookTable"`
	} `yaml:"Resources"`
}

type queueEvent struct {
	Queue                 templatetest.Reference `yaml:"Queue"`
	FunctionResponseTypes []string               `yaml:"FunctionResponseTypes"`
	BatchingWindow        int                    `yaml:"MaximumBatchingWindowInSeconds"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	return templatetest.Read[template](t, "template.yaml")
}

// TestTemplateMapping holds the template to what a function cannot see of its queue and mapping.
func TestTemplateMapping(t *testing.T) {
	resources := readTemplate(t).Resources
	function, queue := resources.Function.Properties, resources.Queue.Properties
	if len(function.Events) != 1 {
		t.Fatalf("the function has %d events, want 1", len(function.Events))
	}
	for name, event := range function.Events {
		if event.Type != "SQS" || event.Properties.Queue != "!GetAtt TransfersQueue.Arn" {
			t.Errorf("event %s is of %s %s, want of SQS !GetAtt TransfersQueue.Arn", name, event.Type, event.Properties.Queue)
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
	if got := queue.RedrivePolicy; got.Target != "!GetAtt TransfersDeadLetterQueue.Arn" || got.MaxReceiveCount < 5 {
		t.Errorf("RedrivePolicy is %+v, want the dead-letter queue after at least 5 receives", got)
	}
	if resources.DeadLetterQueue.Type != "AWS::SQS::Queue" {
		t.Errorf("the dead-letter queue is a %q", resources.DeadLetterQueue.Type)
	}
}

// TestTemplateFunction holds the function to how it is built, to what lambda/main.go reads, to what dynamostore
// documents that it needs, and to what the parts of a transfer's transaction need.
func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	templatetest.CheckFunction(t, function, map[string]templatetest.Reference{
		"TABLE_NAME": "!Ref IdempotencyTable", "BOOK_TABLE": "!Ref BookTable",
	})
	templatetest.CheckPolicy(t, function,
		templatetest.TableStatement(t, "../../idempotency/dynamostore", "!GetAtt IdempotencyTable.Arn"),
		templatetest.Statement{
			Effect: "Allow", Action: []string{"dynamodb:PutItem", "dynamodb:UpdateItem"}, Resource: "!GetAtt BookTable.Arn",
		})
}

func TestTemplateTable(t *testing.T) { templatetest.CheckTable(t, readTemplate(t).Resources.Table) }

// TestTemplateBook: the book has the key that package ledger writes, and outlives the stack.
func TestTemplateBook(t *testing.T) {
	book := readTemplate(t).Resources.Book
	if diff := cmp.Diff([]map[string]string{{"AttributeName": "id", "KeyType": "HASH"}}, book.Properties.KeySchema); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
	if book.DeletionPolicy != "Retain" || book.Properties.TimeToLive.Enabled {
		t.Errorf("DeletionPolicy is %q, TTL enabled: %t; want Retain and none: it is the book",
			book.DeletionPolicy, book.Properties.TimeToLive.Enabled)
	}
}
