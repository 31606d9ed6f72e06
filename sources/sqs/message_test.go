package sqs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/sqs"
)

// documented is the example of an event in AWS's documentation, with message attributes and members of its own.
const documented = `{
	"messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
	"receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a\/\u00e9...",
	"body": "Test \"message\".\u00e9",
	"attributes": {
		"ApproximateReceiveCount": "2", "SentTimestamp": "1545082649183", "SenderId": "AIDAIENQZJOLO23YVJ4VO",
		"ApproximateFirstReceiveTimestamp": "1545082649185", "MessageGroupId": "group \"1\"", "SequenceNumber": "18849496460467696128"
	},
	"messageAttributes": {
		"trace": {"stringValue": "Root=1", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
		"blob": {"binaryValue": "AAEC", "dataType": "Binary"},
		"broken": {"dataType": 7}
	},
	"md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
	"unknown": {"messageId": "inner"},
	"eventSource": "aws:sqs",
	"eventSourceARN": "arn:aws:sqs:us-east-2:123456789012:orders.fifo",
	"awsRegion": "us-east-2"
}`

func TestMessage(t *testing.T) {
	trace := "Root=1"
	h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
		for _, test := range []struct {
			method    string
			want, got any
		}{
			{"ID", "059f36b4-87a3-44ab-83d2-661975830a7d", m.ID()},
			{"Body", `Test "message".é`, m.Body},
			{"RawBody", `Test "message".é`, m.RawBody()},
			{"ReceiptHandle", "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a/é...", m.ReceiptHandle()},
			{"ReceiveCount", 2, m.ReceiveCount()},
			{"SentAt", time.UnixMilli(1545082649183), m.SentAt()},
			{"GroupID", `group "1"`, m.GroupID()},
			{"QueueARN", "arn:aws:sqs:us-east-2:123456789012:orders.fifo", m.QueueARN()},
			{"Attribute", "18849496460467696128", m.Attribute("SequenceNumber")},
			{"Attribute of an absent one", "", m.Attribute("absent")},
			{"Raw", events.SQSMessage{
				MessageId: "059f36b4-87a3-44ab-83d2-661975830a7d", ReceiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a/é...",
				Body: `Test "message".é`, Md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
				Attributes: map[string]string{
					"ApproximateReceiveCount": "2", "SentTimestamp": "1545082649183", "SenderId": "AIDAIENQZJOLO23YVJ4VO",
					"ApproximateFirstReceiveTimestamp": "1545082649185", "MessageGroupId": `group "1"`,
					"SequenceNumber": "18849496460467696128",
				},
				MessageAttributes: map[string]events.SQSMessageAttribute{
					"trace":  {StringValue: &trace, StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: "String"},
					"blob":   {BinaryValue: []byte{0, 1, 2}, DataType: "Binary"},
					"broken": {},
				},
				EventSourceARN: "arn:aws:sqs:us-east-2:123456789012:orders.fifo", EventSource: "aws:sqs", AWSRegion: "us-east-2",
			}, m.Raw()},
		} {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.method, diff)
			}
		}
		for _, test := range []struct {
			name string
			want events.SQSMessageAttribute
			ok   bool
		}{
			{"trace", events.SQSMessageAttribute{StringValue: &trace, StringListValues: []string{}, BinaryListValues: [][]byte{},
				DataType: "String"}, true},
			{"blob", events.SQSMessageAttribute{BinaryValue: []byte{0, 1, 2}, DataType: "Binary"}, true},
			{"broken", events.SQSMessageAttribute{}, false},
			{"absent", events.SQSMessageAttribute{}, false},
		} {
			got, ok := m.MessageAttribute(test.name)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
				t.Errorf("MessageAttribute(%q) is there: %v, want %v (-want +got):\n%s", test.name, ok, test.ok, diff)
			}
		}
		return nil
	})
	wantFailures(t, t.Context(), h, rawEvent(documented))
}

// A message of a literal, as tests of handlers make it, has a body and nothing else. So has the zero View.
func TestMessageLiteral(t *testing.T) {
	m := &sqs.Message[order]{Body: order{ID: "o1"}}
	attribute, ok := m.MessageAttribute("trace")
	got := []any{m.ID(), m.RawBody(), m.Attribute("SenderId"), m.ReceiveCount(), m.SentAt(), m.GroupID(), m.QueueARN(),
		m.ReceiptHandle(), m.Raw(), attribute, ok}
	want := []any{"", "", "", 0, time.Time{}, "", "", "", events.SQSMessage{}, events.SQSMessageAttribute{}, false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods of a literal (-want +got):\n%s", diff)
	}
}

// Attributes that are not as documented are as if they were not there.
func TestMessageOddAttributes(t *testing.T) {
	for _, attributes := range []string{
		`null`, `{}`, `[]`, `"x"`, `7`, `{"ApproximateReceiveCount":7,"SentTimestamp":{},"MessageGroupId":null}`,
		`{"ApproximateReceiveCount":"-1","SentTimestamp":"soon","MessageGroupId":[]}`,
		`{"ApproximateReceiveCount":"99999999999999999999","SentTimestamp":"99999999999999999999"}`,
		`{"ApproximateReceiveCount":"","SentTimestamp":"1.5"}`,
	} {
		h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
			if m.ReceiveCount() != 0 || !m.SentAt().IsZero() || m.GroupID() != "" || m.ID() != "m1" {
				t.Errorf("%s: receive count %d, sent at %v, group %q, want none", attributes, m.ReceiveCount(), m.SentAt(), m.GroupID())
			}
			return nil
		}, guarded(t))
		record := `{"messageId":"m1","body":"","eventSourceARN":"` + fifoARN + `","attributes":` + attributes + `}`
		wantFailures(t, t.Context(), h, rawEvent(record))
	}
}

// Handle goes through the same JSON as Invoke: what the handler sees of a message is what was handed in.
func TestMessageOfHandle(t *testing.T) {
	text := "Root=1"
	in := events.SQSMessage{
		MessageId: "m1", ReceiptHandle: "h1", Body: "<b>&\u2028 \"日本\"", Attributes: map[string]string{"SenderId": "s", "SentTimestamp": "5"},
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"trace": {StringValue: &text, DataType: "String"}, "blob": {BinaryValue: []byte{0xff, 0}, DataType: "Binary"},
		},
		EventSourceARN: standardARN, EventSource: "aws:sqs", AWSRegion: "us-east-2",
	}
	h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
		if diff := cmp.Diff(in, m.Raw()); diff != "" || m.Body != in.Body {
			t.Errorf("body %q, message (-want +got):\n%s", m.Body, diff)
		}
		return nil
	})
	if _, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{in}}); err != nil {
		t.Fatal(err)
	}
}

// BodySHA256 is that of the body's bytes.
func TestBodySHA256(t *testing.T) {
	of := func(body string) string {
		var sum string
		h := newHandler(t, func(context.Context, *sqs.Message[string]) error { return nil }, guarded(t), func(o *sqs.Options) {
			o.Fingerprint = func(v sqs.View) (_ string, err error) { sum, err = sqs.BodySHA256(v); return sum, err }
		})
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
		return sum
	}
	if got, want := of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("hash of abc is %q, want %q", got, want)
	}
	if of(`{"a":1}`) == of(`{"a": 1}`) || strings.Contains(of("é"), "é") {
		t.Error("other bytes have the same hash")
	}
}
