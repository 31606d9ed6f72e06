package sqs_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/oncekit/oncekit/sources/sqs"
)

// wrapped returns the event with every body in an envelope.
func wrapped(b *testing.B, payload []byte, wrap func(body string) string) []byte {
	b.Helper()
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		b.Fatal(err)
	}
	for i := range event.Records {
		event.Records[i].Body = wrap(event.Records[i].Body)
	}
	payload, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

// openS3 decodes what is inside of an S3 event.
func openS3(text string, each func(*events.S3EventRecord) error) error {
	var event events.S3Event
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		return err
	}
	for i := range event.Records {
		if err := each(&event.Records[i]); err != nil {
			return err
		}
	}
	return nil
}

// openOrder decodes an order.
func openOrder(text string, each func(*benchOrder) error) error {
	var order benchOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	return each(&order)
}

// messageOf returns the Message of a notification.
func messageOf(text string) string {
	var notification events.SNSEntity
	if json.Unmarshal([]byte(text), &notification) != nil {
		return ""
	}
	return notification.Message
}

// detailOf returns the detail of an event.
func detailOf(text string) string {
	var event events.EventBridgeEvent
	if json.Unmarshal([]byte(text), &event) != nil {
		return ""
	}
	return string(event.Detail)
}

// BenchmarkUnwrap is BenchmarkInvoke with bodies in envelopes, beside the loop that people write by hand with the types of
// aws-lambda-go.
func BenchmarkUnwrap(b *testing.B) {
	sns := func(body string) string { return notification(body) }
	eventBridge := func(body string) string { return published(body) }
	s3 := func(string) string { return s3Event("a b.jpg") }
	benchUnwrap(b, "SNS", sns, func(body string, each func(*benchOrder) error) error {
		return openOrder(messageOf(body), each)
	}, sqs.SNS)
	benchUnwrap(b, "EventBridge", eventBridge, func(body string, each func(*benchOrder) error) error {
		return openOrder(detailOf(body), each)
	}, sqs.EventBridge)
	benchUnwrap(b, "S3", s3, openS3, sqs.S3)
	benchUnwrap(b, "S3 in SNS", func(body string) string { return sns(s3(body)) }, func(body string, each func(*events.S3EventRecord) error) error {
		return openS3(messageOf(body), each)
	}, sqs.SNS, sqs.S3)
}

func benchUnwrap[T any](
	b *testing.B, name string, wrap func(string) string, open func(string, func(*T) error) error, envelopes ...sqs.Envelope,
) {
	const n = 1000
	payload := wrapped(b, benchEvent(b, n), wrap)
	ran := 0
	b.Run(name+"/loop", func(b *testing.B) {
		ran = 0
		benchInvoke(b, lambda.NewHandler(func(_ context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
			for i := range event.Records {
				m := &event.Records[i]
				if err := open(m.Body, func(*T) error { ran++; return nil }); err != nil {
					response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
				}
			}
			return response, nil
		}), payload, n)
		wantRuns(b, ran, n)
	})
	b.Run(name+"/oncekit", func(b *testing.B) {
		ran = 0
		benchInvoke(b, newHandler(b, func(context.Context, *sqs.Message[T]) error { ran++; return nil }, concurrency(1), unwrap(envelopes...)),
			payload, n)
		wantRuns(b, ran, n)
	})
}

// wantRuns checks that all records of all batches ran.
func wantRuns(b *testing.B, ran, n int) {
	b.Helper()
	if ran == 0 || ran%n != 0 {
		b.Fatalf("the handler ran %d times in batches of %d", ran, n)
	}
}
