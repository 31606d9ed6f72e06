package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/templatetest"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
)

// template is the part of the SAM template that is held to something.
type template struct {
	Resources struct {
		Function templatetest.Function[ruleOrQueue] `yaml:"InvoicesFunction"`
		Archive  struct {
			Properties struct {
				SourceArn     templatetest.Reference `yaml:"SourceArn"`
				RetentionDays int                    `yaml:"RetentionDays"`
				EventPattern  pattern                `yaml:"EventPattern"`
			} `yaml:"Properties"`
		} `yaml:"OrdersArchive"`
		QueueRule struct {
			Properties struct {
				EventBusName templatetest.Reference `yaml:"EventBusName"`
				EventPattern pattern                `yaml:"EventPattern"`
				Targets      []target               `yaml:"Targets"`
			} `yaml:"Properties"`
		} `yaml:"QueueRule"`
		Table templatetest.Table `yaml:"IdempotencyTable"`

		Orders            queue       `yaml:"OrdersQueue"`
		OrdersDeadLetter  queue       `yaml:"OrdersDeadLetterQueue"`
		EventsUndelivered queue       `yaml:"EventsUndeliveredQueue"`
		EventsFailed      queue       `yaml:"EventsFailedQueue"`
		OrdersGivenUp     queue       `yaml:"OrdersGivenUpQueue"`
		OrdersPolicy      queuePolicy `yaml:"OrdersQueuePolicy"`
		UndeliveredPolicy queuePolicy `yaml:"EventsUndeliveredQueuePolicy"`
	} `yaml:"Resources"`
}

// asynchronous is the part of the template that says what Lambda does with the rule's events. It belongs to the function.
type asynchronous struct {
	Resources struct {
		Function struct {
			Properties struct {
				Config struct {
					MaximumRetryAttempts     *int `yaml:"MaximumRetryAttempts"` // 0 is no default
					MaximumEventAgeInSeconds int  `yaml:"MaximumEventAgeInSeconds"`
					DestinationConfig        struct {
						OnFailure struct {
							Type        string                 `yaml:"Type"`
							Destination templatetest.Reference `yaml:"Destination"`
						} `yaml:"OnFailure"`
					} `yaml:"DestinationConfig"`
				} `yaml:"EventInvokeConfig"`
			} `yaml:"Properties"`
		} `yaml:"InvoicesFunction"`
	} `yaml:"Resources"`
}

// ruleOrQueue is what the function's events have, the rule and the queue.
type ruleOrQueue struct {
	EventBusName     templatetest.Reference            `yaml:"EventBusName"`
	Pattern          pattern                           `yaml:"Pattern"`
	RetryPolicy      retryPolicy                       `yaml:"RetryPolicy"`
	DeadLetterConfig map[string]templatetest.Reference `yaml:"DeadLetterConfig"`

	Queue                 templatetest.Reference `yaml:"Queue"`
	BatchSize             int                    `yaml:"BatchSize"`
	FunctionResponseTypes []string               `yaml:"FunctionResponseTypes"`
}

type target struct {
	ID               string                            `yaml:"Id"`
	ARN              templatetest.Reference            `yaml:"Arn"`
	RetryPolicy      retryPolicy                       `yaml:"RetryPolicy"`
	DeadLetterConfig map[string]templatetest.Reference `yaml:"DeadLetterConfig"`
	Others           map[string]any                    `yaml:",inline"`
}

type pattern map[string][]string

type retryPolicy struct {
	MaximumRetryAttempts     int `yaml:"MaximumRetryAttempts"`
	MaximumEventAgeInSeconds int `yaml:"MaximumEventAgeInSeconds"`
}

type queue struct {
	Type       string `yaml:"Type"`
	Properties struct {
		VisibilityTimeout      int `yaml:"VisibilityTimeout"`
		MessageRetentionPeriod int `yaml:"MessageRetentionPeriod"`
		RedrivePolicy          struct {
			Target          templatetest.Reference `yaml:"deadLetterTargetArn"`
			MaxReceiveCount int                    `yaml:"maxReceiveCount"`
		} `yaml:"RedrivePolicy"`
	} `yaml:"Properties"`
}

type queuePolicy struct {
	Properties struct {
		Queues         []templatetest.Reference `yaml:"Queues"`
		PolicyDocument struct {
			Statement []ruleMaySend `yaml:"Statement"`
		} `yaml:"PolicyDocument"`
	} `yaml:"Properties"`
}

type ruleMaySend struct {
	Effect    string                                       `yaml:"Effect"`
	Principal map[string]string                            `yaml:"Principal"`
	Action    string                                       `yaml:"Action"`
	Resource  templatetest.Reference                       `yaml:"Resource"`
	Condition map[string]map[string]templatetest.Reference `yaml:"Condition"`
}

// placed is the pattern of the events that are invoiced.
var placed = pattern{"source": {billing.Source}, "detail-type": {billing.DetailType}}

// aDay is for how long EventBridge tries to deliver.
var aDay = retryPolicy{MaximumRetryAttempts: 185, MaximumEventAgeInSeconds: 86400}

func readTemplate(t *testing.T) template {
	t.Helper()
	return templatetest.Read[template](t, "template.yaml")
}

// TestTemplateWays holds the two ways that an order comes by to what the function cannot see of them.
func TestTemplateWays(t *testing.T) {
	resources := readTemplate(t).Resources
	want := map[string]templatetest.Event[ruleOrQueue]{
		"OrderPlaced": {Type: "EventBridgeRule", Properties: ruleOrQueue{
			EventBusName: "!Ref ShopBus", Pattern: placed, RetryPolicy: aDay,
			DeadLetterConfig: map[string]templatetest.Reference{"Arn": "!GetAtt EventsUndeliveredQueue.Arn"},
		}},
		"QueuedOrders": {Type: "SQS", Properties: ruleOrQueue{
			Queue: "!GetAtt OrdersQueue.Arn", BatchSize: 10, FunctionResponseTypes: []string{"ReportBatchItemFailures"},
		}},
	}
	if diff := cmp.Diff(want, resources.Function.Properties.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	rule := resources.QueueRule.Properties
	if rule.EventBusName != "!Ref ShopBus" || !cmp.Equal(rule.EventPattern, placed) {
		t.Errorf("the queue's rule is for %v of %s, want %v of !Ref ShopBus", rule.EventPattern, rule.EventBusName, placed)
	}
	// Another member could be an InputPath or a transformer, and the message no event any more.
	targets := []target{{
		ID: "orders-queue", ARN: "!GetAtt OrdersQueue.Arn", RetryPolicy: aDay,
		DeadLetterConfig: map[string]templatetest.Reference{"Arn": "!GetAtt EventsUndeliveredQueue.Arn"},
	}}
	if diff := cmp.Diff(targets, rule.Targets); diff != "" {
		t.Errorf("targets of the queue's rule (-want +got):\n%s", diff)
	}
}

// TestTemplateInvocations holds the function to what Lambda has to know for asynchronous invocations.
func TestTemplateInvocations(t *testing.T) {
	config := templatetest.Read[asynchronous](t, "template.yaml").Resources.Function.Properties.Config
	if got := config.MaximumRetryAttempts; got == nil || *got != 2 || config.MaximumEventAgeInSeconds != 21600 {
		t.Errorf("EventInvokeConfig is %+v, want two more attempts and six hours", config)
	}
	// Without the type SAM does not let the function's role send to the queue.
	if got := config.DestinationConfig.OnFailure; got.Type != "SQS" || got.Destination != "!GetAtt EventsFailedQueue.Arn" {
		t.Errorf("OnFailure is %+v, want SQS and !GetAtt EventsFailedQueue.Arn", got)
	}
	// The first attempt after a crash comes after about a minute, and the order is held until the deadline.
	if got := readTemplate(t).Resources.Function.Properties.Timeout; got < 10 || got > 50 {
		t.Errorf("Timeout is %d s, want 10 to 50", got)
	}
}

func TestTemplateQueues(t *testing.T) {
	resources := readTemplate(t).Resources
	orders := resources.Orders.Properties
	if want := 6 * resources.Function.Properties.Timeout; orders.VisibilityTimeout != want {
		t.Errorf("VisibilityTimeout is %d s, want six times the function's timeout, %d s", orders.VisibilityTimeout, want)
	}
	if got := orders.RedrivePolicy; got.Target != "!GetAtt OrdersDeadLetterQueue.Arn" || got.MaxReceiveCount < 5 {
		t.Errorf("RedrivePolicy is %+v, want the dead-letter queue after at least 5 receives", got)
	}
	for name, q := range map[string]queue{
		"OrdersDeadLetterQueue": resources.OrdersDeadLetter, "EventsUndeliveredQueue": resources.EventsUndelivered,
		"EventsFailedQueue": resources.EventsFailed, "OrdersGivenUpQueue": resources.OrdersGivenUp,
	} {
		if q.Type != "AWS::SQS::Queue" || q.Properties.MessageRetentionPeriod != 14*24*60*60 {
			t.Errorf("%s is a %q that keeps messages for %d s, want an AWS::SQS::Queue that does for 14 days",
				name, q.Type, q.Properties.MessageRetentionPeriod)
		}
	}
	for name, policy := range map[string]queuePolicy{
		"OrdersQueue": resources.OrdersPolicy, "EventsUndeliveredQueue": resources.UndeliveredPolicy,
	} {
		want := []ruleMaySend{{
			Effect: "Allow", Principal: map[string]string{"Service": "events.amazonaws.com"}, Action: "sqs:SendMessage",
			Resource: templatetest.Reference("!GetAtt " + name + ".Arn"),
			Condition: map[string]map[string]templatetest.Reference{"ArnLike": {
				"aws:SourceArn": "!Sub arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/${ShopBus}/*",
			}},
		}}
		if diff := cmp.Diff(want, policy.Properties.PolicyDocument.Statement); diff != "" {
			t.Errorf("policy of %s (-want +got):\n%s", name, diff)
		}
		queues := []templatetest.Reference{templatetest.Reference("!Ref " + name)}
		if diff := cmp.Diff(queues, policy.Properties.Queues); diff != "" {
			t.Errorf("queues of the policy (-want +got):\n%s", diff)
		}
	}
}

// TestTemplateRemembers holds the archive, and what can come out of the dead-letter queues, to how long keys live.
func TestTemplateRemembers(t *testing.T) {
	resources := readTemplate(t).Resources
	archive := resources.Archive.Properties
	if archive.SourceArn != "!GetAtt ShopBus.Arn" || !cmp.Equal(archive.EventPattern, placed) {
		t.Errorf("the archive is of %v from %s, want %v from !GetAtt ShopBus.Arn", archive.EventPattern, archive.SourceArn, placed)
	}
	const day = 24 * time.Hour
	if kept := time.Duration(archive.RetentionDays) * day; kept <= 0 || kept >= invoices.KeyLife {
		t.Errorf("the archive keeps events for %v, and keys live for %v, want more than that", kept, invoices.KeyLife)
	}
	// SQS keeps a message for four days by default, and a dead-letter queue for its own period.
	redriven := 4*day + time.Duration(resources.OrdersDeadLetter.Properties.MessageRetentionPeriod)*time.Second
	if redriven >= invoices.KeyLife {
		t.Errorf("an order is redriven up to %v after it came, and keys live for %v, want more", redriven, invoices.KeyLife)
	}
}

// TestTemplateFunction holds the function to how it is built, to what lambda/main.go reads, and to what dynamostore and
// deadletter document that they need.
func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	templatetest.CheckFunction(t, function, map[string]templatetest.Reference{
		"TABLE_NAME": "!Ref IdempotencyTable", "DEAD_LETTER_QUEUE_URL": "!Ref OrdersGivenUpQueue", "RUN_REPLAYS": "!Ref RunReplays",
	})
	templatetest.CheckPolicy(t, function,
		templatetest.TableStatement(t, "../../idempotency/dynamostore", "!GetAtt IdempotencyTable.Arn"),
		templatetest.Statement{Effect: "Allow", Action: []string{"sqs:SendMessage"}, Resource: "!GetAtt OrdersGivenUpQueue.Arn"})
}

func TestTemplateTable(t *testing.T) { templatetest.CheckTable(t, readTemplate(t).Resources.Table) }
