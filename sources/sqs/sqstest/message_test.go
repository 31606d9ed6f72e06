package sqstest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func text(s string) events.SQSMessageAttribute {
	return events.SQSMessageAttribute{StringValue: &s, DataType: "String"}
}

func TestSendRefuses(t *testing.T) {
	standard, fifo := newQueue(t, "orders"), newQueue(t, "orders.fifo")
	eleven := make(map[string]events.SQSMessageAttribute)
	for _, name := range strings.Split("a b c d e f g h i j k", " ") {
		eleven[name] = text("x")
	}
	for _, test := range []struct {
		name    string
		queue   *sqstest.Queue
		message sqstest.Message
		want    string
	}{
		{"no body", standard, sqstest.Message{}, "body is empty"},
		{"over 1 MiB", standard, sqstest.Message{Body: strings.Repeat("x", 1<<20+1)}, "has 1048577 bytes, but must have at most 1048576"},
		{"over 1 MiB with attributes", standard, sqstest.Message{Body: strings.Repeat("x", 1<<20-8),
			Attributes: map[string]events.SQSMessageAttribute{"n": text("vv")}}, "has 1048577 bytes"},
		{"11 attributes", standard, sqstest.Message{Body: "x", Attributes: eleven}, "has 11 attributes"},
		{"attribute of no type", standard, sqstest.Message{Body: "x",
			Attributes: map[string]events.SQSMessageAttribute{"a": {}}}, `attribute "a" has DataType ""`},
		{"binary without value", standard, sqstest.Message{Body: "x",
			Attributes: map[string]events.SQSMessageAttribute{"a": {DataType: "Binary.gif"}}}, "must have a BinaryValue"},
		{"number without value", standard, sqstest.Message{Body: "x",
			Attributes: map[string]events.SQSMessageAttribute{"a": {DataType: "Number"}}}, "must have a StringValue"},
		{"long delay", standard, sqstest.Message{Body: "x", Delay: 901 * time.Second}, "Delay is 15m1s, but must be 0 to 15m"},
		{"deduplication on a standard queue", standard, sqstest.Message{Body: "x", DeduplicationID: "d"}, `DeduplicationID is "d"`},
		{"long group", standard, sqstest.Message{Body: "x", GroupID: strings.Repeat("g", 129)}, "GroupID has 129 bytes"},
		{"long deduplication ID", fifo, sqstest.Message{Body: "x", GroupID: "g", DeduplicationID: strings.Repeat("g", 129)},
			"DeduplicationID has 129 bytes"},
		{"FIFO without group", fifo, sqstest.Message{Body: "x"}, "must have a GroupID"},
		{"FIFO with delay", fifo, sqstest.Message{Body: "x", GroupID: "g", Delay: time.Second}, "must be 0 on a FIFO queue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := test.queue.Send(test.message); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want it to contain %q", err, test.want)
			}
		})
	}
	if got := standard.Stats().Sent + fifo.Stats().Sent; got != 0 {
		t.Errorf("%d refused messages count as sent, want 0", got)
	}
}

func TestNewEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := sqstest.NewEvent("orders.fifo",
			sqstest.Message{Body: `{"id":"1"}`, GroupID: "customer-1", DeduplicationID: "d1"},
			sqstest.Message{Body: `{"id":"1"}`, GroupID: "customer-1"}, // no deduplication here
		)
		if len(event.Records) != 2 {
			t.Fatalf("event has %d records, want 2", len(event.Records))
		}
		m := event.Records[0]
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(m.MessageId) {
			t.Errorf("MessageId is %q, want a UUID of version 4", m.MessageId)
		}
		if !regexp.MustCompile(`^AQEB[A-Za-z0-9+/]{100,}=*$`).MatchString(m.ReceiptHandle) {
			t.Errorf("ReceiptHandle is %q, want base64 that begins with AQEB", m.ReceiptHandle)
		}
		sequence := m.Attributes["SequenceNumber"]
		if !regexp.MustCompile(`^\d{20}$`).MatchString(sequence) || sequence >= event.Records[1].Attributes["SequenceNumber"] {
			t.Errorf("sequence numbers are %q and %q, want 20 digits, rising", sequence, event.Records[1].Attributes["SequenceNumber"])
		}
		want := events.SQSMessage{
			MessageId: m.MessageId, ReceiptHandle: m.ReceiptHandle, Body: `{"id":"1"}`,
			Md5OfBody: "e405fac593027bc534cf08cd4d2a5647",
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": "946684800000", "SenderId": "AIDAIENQZJOLO23YVJ4VO",
				"ApproximateFirstReceiveTimestamp": "946684800000", "MessageGroupId": "customer-1",
				"MessageDeduplicationId": "d1", "SequenceNumber": sequence,
			},
			MessageAttributes: map[string]events.SQSMessageAttribute{},
			EventSourceARN:    "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
			EventSource:       "aws:sqs", AWSRegion: "us-east-1",
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		if another := sqstest.NewEvent("orders.fifo", sqstest.Message{Body: "x", GroupID: "g"}); another.Records[0].MessageId == m.MessageId {
			t.Errorf("two events have the message ID %q, want different ones", m.MessageId)
		}
	})
}

func TestNewEventPanicsOnWhatSQSRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewEvent did not panic on a FIFO message without group")
		}
	}()
	sqstest.NewEvent("orders.fifo", sqstest.Message{Body: "x"})
}

func TestPayload(t *testing.T) {
	event := sqstest.NewEvent("orders", sqstest.Message{Body: `<a href="x">&</a>`, GroupID: "tenant", Attributes: map[string]events.SQSMessageAttribute{
		"origin": text("web"), "picture": {DataType: "Binary", BinaryValue: []byte{1, 2}},
	}}, sqstest.Message{Body: "plain"})
	payload := sqstest.Payload(event)

	var back events.SQSEvent
	if err := json.Unmarshal(payload, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(event, back); diff != "" {
		t.Errorf("decoded payload (-want +got):\n%s", diff)
	}
	if got := back.Records[0].Attributes["MessageGroupId"]; got != "tenant" {
		t.Errorf("MessageGroupId on a standard queue is %q, want %q", got, "tenant")
	}
	for _, want := range []string{`"stringListValues":[]`, `"binaryListValues":[]`, `<a href=\"x\">&</a>`} {
		if !strings.Contains(string(payload), want) {
			t.Errorf("payload does not contain %s:\n%s", want, payload)
		}
	}
	if got := strings.Count(string(payload), "md5OfMessageAttributes"); got != 1 {
		t.Errorf("payload has md5OfMessageAttributes %d times, want 1: the second message has no attributes", got)
	}
	if got := string(sqstest.Payload(events.SQSEvent{})); got != `{"Records":[]}` {
		t.Errorf("payload of an empty event is %s, want {\"Records\":[]}", got)
	}
}
