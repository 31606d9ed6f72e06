package sqstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// NewEvent returns the event of an invocation that receives the messages from the named queue for the first time,
// for tests that need no queue. Delays and deduplication do not apply. A test that needs a stranger event changes
// this one.
//
// NewEvent panics if the name or a message is one that SQS would refuse, as httptest.NewRequest does for ease of use.
func NewEvent(queue string, messages ...Message) events.SQSEvent {
	q, err := NewQueue(queue)
	if err != nil {
		panic(err)
	}
	now := time.Now()
	event := events.SQSEvent{Records: []events.SQSMessage{}}
	for _, m := range messages {
		if err := m.check(q.fifo); err != nil {
			panic(err)
		}
		event.Records = append(event.Records, q.accept(m, now).event(q, q.newReceipt(), 1, now))
	}
	return event
}

// Payload returns the event as the bytes that Lambda passes to Invoke. It panics if the event can't be encoded, which
// no event made of text can do.
func Payload(event events.SQSEvent) []byte {
	records := make([][]byte, len(event.Records))
	for i, record := range event.Records {
		records[i] = encode(record)
	}
	return appendPayload(nil, records)
}

// record is events.SQSMessage with the digest of the attributes left out where there are none, as Lambda does.
type record struct {
	MessageId              string                                `json:"messageId"`
	ReceiptHandle          string                                `json:"receiptHandle"`
	Body                   string                                `json:"body"`
	Md5OfBody              string                                `json:"md5OfBody"`
	Md5OfMessageAttributes string                                `json:"md5OfMessageAttributes,omitempty"`
	Attributes             map[string]string                     `json:"attributes"`
	MessageAttributes      map[string]events.SQSMessageAttribute `json:"messageAttributes"`
	EventSourceARN         string                                `json:"eventSourceARN"`
	EventSource            string                                `json:"eventSource"`
	AWSRegion              string                                `json:"awsRegion"`
}

func encode(m events.SQSMessage) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record(m)); err != nil {
		panic(fmt.Errorf("sqstest: message %q: %w", m.MessageId, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func appendPayload(b []byte, records [][]byte) []byte {
	b = append(b, `{"Records":[`...)
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(b, "]}"...)
}
