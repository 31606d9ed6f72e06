package mux_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/mux"
)

// What lambda.Start takes.
var _ lambda.Handler = (*mux.Mux)(nil)

type handlerFunc func(ctx context.Context, payload []byte) ([]byte, error)

func (f handlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

const (
	sqsEvent       = `{"Records":[{"messageId":"059f36b4","body":"{\"detail-type\":\"x\"}","eventSource":"aws:sqs"}]}`
	kinesisEvent   = ` {"window":{"start":"x"}, "Records":[ {"kinesis":{"data":"eyJldmVudFNvdXJjZSI6ImF3czpzcXMifQ=="},"eventSource":"aws:kinesis"} ]}`
	dynamodbEvent  = `{"Records":[{"eventID":"1","dynamodb":{"NewImage":{"eventSource":{"S":"aws:sqs"}}},"eventSource":"aws:dynamodb"}]}`
	ruleEvent      = `{"version":"0","id":"x","detail-type":"Order placed","source":"shop","detail":{"Records":[{"eventSource":"aws:sqs"}]}}`
	scheduledEvent = `{"detail":{},"detail-type":"Scheduled Event"}`
)

// Every event goes to the handler of its source, whatever is inside it, and its answer is the function's.
func TestMux(t *testing.T) {
	for _, test := range []struct{ name, payload, want string }{
		{"SQS", sqsEvent, "SQS"},
		{"Kinesis", kinesisEvent, "Kinesis"},
		{"DynamoDB stream", dynamodbEvent, "DynamoDBStream"},
		{"EventBridge rule", ruleEvent, "EventBridge"},
		{"schedule", scheduledEvent, "EventBridge"},
		{"array of events", "[" + ruleEvent + "," + ruleEvent + "]", "EventBridge"},
		{"SQS through Pipes", `[{"messageId":"059f36b4","body":"x","eventSource":"aws:sqs"}]`, "SQS"},
		{"Kinesis through Pipes", `[{"data":"eA==","sequenceNumber":"1","eventSource":"aws:kinesis"}]`, "Kinesis"},
		{"DynamoDB stream through Pipes", `[{"eventSource":"aws:dynamodb","dynamodb":{}}]`, "DynamoDBStream"},
		{"with metadata", `{"Data":{"Records":[1]},"Metadata":{},"SystemMetadata":{}}`, "EventBridge"},
		{"array with metadata", `[{"Data":"x","SystemMetadata":{}}]`, "EventBridge"},
		{"end of a window", `{"Records":[],"window":{},"eventSourceARN":"arn:aws:kinesis:us-east-1:123456789012:stream/x"}`, "Kinesis"},
		{"end of a window without records", `{"window":{},"eventSourceARN":"arn:aws-cn:dynamodb:cn-north-1:123456789012:table/x/stream/y"}`, "DynamoDBStream"},
		{"end of a window with null", `{"Records":null,"eventSourceARN":"arn:aws:kinesis:us-east-1:123456789012:stream/x"}`, "Kinesis"},
		{"an ARN that is none", `{"Records":[],"eventSourceARN":"kinesis"}`, "Other"},
		{"SNS", `{"Records":[{"EventSource":"aws:sns","Sns":{}}]}`, "Other"},
		{"S3", `{"Records":[{"eventSource":"aws:s3"}]}`, "Other"},
		{"no records", `{"Records":[]}`, "Other"},
		{"records that are none", `{"Records":[1,{"eventSource":"aws:sqs"}]}`, "Other"},
		{"records that are no array", `{"Records":{"eventSource":"aws:sqs"},"detail-type":"x"}`, "EventBridge"},
		{"records that are empty", `{"Records": [ ] ,"detail-type":"x"}`, "EventBridge"},
		{"request", `{"httpMethod":"GET","body":null}`, "Other"},
		{"raw data", `{"amount":1}`, "Other"},
		{"text", `"detail-type"`, "Other"},
		{"number", "1", "Other"},
		{"empty array", "[]", "Other"},
		{"array of arrays", `[[{"eventSource":"aws:sqs"}]]`, "Other"},
		{"nothing", "", "Other"},
		{"no JSON", `{"Records":[{"body":"`, "Other"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			named := func(name string) mux.Handler {
				return handlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
					got = append(got, name, string(payload))
					return []byte(name + "'s answer"), errors.New(name + "'s error")
				})
			}
			m := &mux.Mux{SQS: named("SQS"), Kinesis: named("Kinesis"), DynamoDBStream: named("DynamoDBStream"),
				EventBridge: named("EventBridge"), Other: named("Other")}
			answer, err := m.Invoke(t.Context(), []byte(test.payload))
			if diff := cmp.Diff([]string{test.want, test.payload}, got); diff != "" {
				t.Errorf("handler and payload (-want +got):\n%s", diff)
			}
			if string(answer) != test.want+"'s answer" || err == nil || err.Error() != test.want+"'s error" {
				t.Errorf("answer is %q with error %v, want those of %s", answer, err, test.want)
			}
		})
	}
}

// What no handler takes is refused, and the error says what it was: never an empty success.
func TestMuxRefuses(t *testing.T) {
	nothing := handlerFunc(func(context.Context, []byte) ([]byte, error) { return nil, nil })
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct{ name, payload, want string }{
		{"SQS", sqsEvent, `mux: event is of records of event source "aws:sqs", and Mux.SQS is nil, want a handler for it; there are those of EventBridge, Kinesis`},
		{"another source", `{"Records":[{"eventSource":"aws:s3"}]}`, `of records of event source "aws:s3", and Mux.Other is nil`},
		{"a request", `{"httpMethod":"GET","path":"/"}`, `event is an object with ["httpMethod" "path"], and Mux.Other is nil`},
		{"an empty object", "{}", "event is an object, and Mux.Other is nil"},
		{"text", `"x"`, "event is a string, and Mux.Other is nil"},
		{"an array", "[1]", "event is an array, and Mux.Other is nil"},
		{"nothing", "", "event is no JSON, and Mux.Other is nil"},
		{"no JSON", "<html>", "event is no JSON, and Mux.Other is nil"},
		{"a long name", `{"` + long + `":1}`, "event is an object with"},
		{"a long source", `{"Records":[{"eventSource":"` + long + `"}]}`, "event is of records of event source"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer, err := (&mux.Mux{Kinesis: nothing, EventBridge: nothing}).Invoke(t.Context(), []byte(test.payload))
			if answer != nil || err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2000 {
				t.Errorf("answer is %q, error %.300v, want none and %q", answer, err, test.want)
			}
		})
	}
	if _, err := new(mux.Mux).Invoke(t.Context(), []byte(ruleEvent)); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("error is %v, want one that says that there are no handlers", err)
	}
}

// The look at an event's shape costs little beside reading it: a megabyte behind the first record is not looked at.
func BenchmarkMux(b *testing.B) {
	payload := []byte(sqsEvent[:len(sqsEvent)-2] + `,{"body":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	m := &mux.Mux{SQS: handlerFunc(func(context.Context, []byte) ([]byte, error) { return nil, nil })}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Invoke(b.Context(), payload); err != nil {
			b.Fatal(err)
		}
	}
}
