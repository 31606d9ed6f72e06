package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/templatetest"
)

// template is the part of the SAM template that is held to something.
type template struct {
	Resources struct {
		Function templatetest.Function[streamEvent] `yaml:"ClicksFunction"`
		Stream   struct {
			Type       string `yaml:"Type"`
			Properties struct {
				RetentionHours int `yaml:"RetentionPeriodHours"`
			} `yaml:"Properties"`
		} `yaml:"ClicksStream"`
		DeadLetterQueue struct {
			Type string `yaml:"Type"`
		} `yaml:"ClicksDeadLetterQueue"`
		DiscardedQueue struct {
			Type string `yaml:"Type"`
		} `yaml:"DiscardedBatchesQueue"`
		Table templatetest.Table `yaml:"IdempotencyTable"`
	} `yaml:"Resources"`
}

type streamEvent struct {
	Stream                templatetest.Reference `yaml:"Stream"`
	StartingPosition      string                 `yaml:"StartingPosition"`
	BatchSize             int                    `yaml:"BatchSize"`
	ParallelizationFactor int                    `yaml:"ParallelizationFactor"`
	FunctionResponseTypes []string               `yaml:"FunctionResponseTypes"`
	Bisect                bool                   `yaml:"BisectBatchOnFunctionError"`
	MaximumRetryAttempts  int                    `yaml:"MaximumRetryAttempts"`
	MaximumRecordAge      int                    `yaml:"MaximumRecordAgeInSeconds"`
	DestinationConfig     struct {
		OnFailure struct {
			Type        string                 `yaml:"Type"`
			Destination templatetest.Reference `yaml:"Destination"`
		} `yaml:"OnFailure"`
	} `yaml:"DestinationConfig"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	return templatetest.Read[template](t, "template.yaml")
}

// TestTemplateMapping holds the template to what a function cannot see of its mapping.
func TestTemplateMapping(t *testing.T) {
	resources := readTemplate(t).Resources
	event, found := resources.Function.Properties.Events["Clicks"]
	if !found || len(resources.Function.Properties.Events) != 1 || event.Type != "Kinesis" {
		t.Fatalf("the function's events are %+v, want one of Kinesis", resources.Function.Properties.Events)
	}
	got := event.Properties
	want := got // but for what must be so
	want.Stream, want.StartingPosition, want.ParallelizationFactor = "!GetAtt ClicksStream.Arn", "TRIM_HORIZON", 1
	want.FunctionResponseTypes, want.Bisect = []string{"ReportBatchItemFailures"}, true
	want.DestinationConfig.OnFailure.Type = "SQS"
	want.DestinationConfig.OnFailure.Destination = "!GetAtt DiscardedBatchesQueue.Arn"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mapping (-want +got):\n%s", diff)
	}
	if got.BatchSize < 1 || got.BatchSize > 10_000 {
		t.Errorf("BatchSize is %d, want 1 to 10000", got.BatchSize)
	}
	// Each click that is given up takes a retry for every attempt but the last, and all of a batch may fail.
	if least := (functionsMaxAttempts(t)-1)*got.BatchSize + 2; got.MaximumRetryAttempts < least {
		t.Errorf("MaximumRetryAttempts is %d, want at least %d for the function's maxAttempts and BatchSize", got.MaximumRetryAttempts, least)
	}
	if most := resources.Stream.Properties.RetentionHours * 3600; got.MaximumRecordAge < 60 || got.MaximumRecordAge > most {
		t.Errorf("MaximumRecordAgeInSeconds is %d, want 60 to the stream's retention: %d", got.MaximumRecordAge, most)
	}
	for name, types := range map[string][2]string{
		"ClicksStream":          {"AWS::Kinesis::Stream", resources.Stream.Type},
		"ClicksDeadLetterQueue": {"AWS::SQS::Queue", resources.DeadLetterQueue.Type},
		"DiscardedBatchesQueue": {"AWS::SQS::Queue", resources.DiscardedQueue.Type},
	} {
		if types[0] != types[1] {
			t.Errorf("%s is a %q, want %s", name, types[1], types[0])
		}
	}
}

// functionsMaxAttempts returns the constant maxAttempts of the deployed function.
func functionsMaxAttempts(t *testing.T) int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "lambda/main.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == "maxAttempts" {
			attempts, err = strconv.Atoi(spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	if err != nil || attempts < 2 {
		t.Fatalf("maxAttempts of lambda/main.go is %d (%v), want 2 or more", attempts, err)
	}
	return attempts
}

// TestTemplateFunction holds the function to how it is built, to what lambda/main.go reads, and to what dynamostore and
// deadletter document that they need.
func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	templatetest.CheckFunction(t, function, map[string]templatetest.Reference{
		"TABLE_NAME": "!Ref IdempotencyTable", "DEAD_LETTER_QUEUE_URL": "!Ref ClicksDeadLetterQueue",
	})
	templatetest.CheckPolicy(t, function,
		templatetest.TableStatement(t, "../../idempotency/dynamostore", "!GetAtt IdempotencyTable.Arn"),
		templatetest.Statement{Effect: "Allow", Action: []string{"sqs:SendMessage"}, Resource: "!GetAtt ClicksDeadLetterQueue.Arn"})
}

func TestTemplateTable(t *testing.T) { templatetest.CheckTable(t, readTemplate(t).Resources.Table) }
