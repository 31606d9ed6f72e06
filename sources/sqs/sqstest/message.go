package sqstest

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Message is a message to be sent.
type Message struct {
	// Body is the message's text. It must not be empty.
	Body string

	// GroupID is the message group: what keeps order on a FIFO queue, which requires it, and the tenant of a fair queue
	// on a standard queue.
	GroupID string

	// DeduplicationID is for FIFO queues only. If it is empty there, it is the SHA-256 of the body, as with
	// ContentBasedDeduplication.
	DeduplicationID string

	// Attributes are the message attributes, at most 10. DataType decides whether StringValue or BinaryValue counts.
	Attributes map[string]events.SQSMessageAttribute

	// Delay is how long the message waits before it can be received, 0 to 15 minutes. It must be 0 on a FIFO queue.
	Delay time.Duration
}

// maxMessageSize is the limit of body and attributes together, 1 MiB.
const maxMessageSize = 1 << 20

// check checks m as SendMessage does.
func (m *Message) check(fifo bool) error {
	size := len(m.Body)
	for name, a := range m.Attributes {
		size += len(name) + len(a.DataType) + len(attributeValue(a))
		switch {
		case kindOf(a) == "":
			return fmt.Errorf("sqstest: attribute %q has DataType %q, but must be String, Number or Binary, or begin with one "+
				"of them and a dot", name, a.DataType)
		case len(attributeValue(a)) == 0:
			return fmt.Errorf("sqstest: attribute %q of DataType %q must have a %s", name, a.DataType, valueField(a))
		}
	}
	switch {
	case m.Body == "":
		return errors.New("sqstest: message body is empty")
	case size > maxMessageSize:
		return fmt.Errorf("sqstest: message has %d bytes, but must have at most %d", size, maxMessageSize)
	case len(m.Attributes) > 10:
		return fmt.Errorf("sqstest: message has %d attributes, but must have at most 10", len(m.Attributes))
	case len(m.GroupID) > 128:
		return fmt.Errorf("sqstest: GroupID has %d bytes, but must have at most 128", len(m.GroupID))
	case len(m.DeduplicationID) > 128:
		return fmt.Errorf("sqstest: DeduplicationID has %d bytes, but must have at most 128", len(m.DeduplicationID))
	case !within(m.Delay, 0, 15*time.Minute):
		return fmt.Errorf("sqstest: Delay is %v, but must be 0 to 15m", m.Delay)
	case fifo && m.GroupID == "":
		return errors.New("sqstest: message for a FIFO queue must have a GroupID")
	case fifo && m.Delay != 0:
		return fmt.Errorf("sqstest: Delay is %v, but must be 0 on a FIFO queue", m.Delay)
	case !fifo && m.DeduplicationID != "":
		return fmt.Errorf("sqstest: DeduplicationID is %q, but must be empty on a standard queue", m.DeduplicationID)
	}
	return nil
}

// message is a message that a queue has accepted. Its copies share it.
type message struct {
	Message
	id       string
	sequence string // FIFO only
	origin   *Queue // of a dead-lettered message: where it comes from
	sentAt   time.Time
	md5      string
	md5Attrs string

	// Guarded by the queue's mutex.
	received     []time.Time
	deleted      time.Time
	deadLettered time.Time
}

func newMessage(m Message, id string, sentAt time.Time) *message {
	attributes := make(map[string]events.SQSMessageAttribute, len(m.Attributes))
	for name, a := range m.Attributes {
		// Lambda's event has empty lists, never null.
		a.StringListValues, a.BinaryListValues = []string{}, [][]byte{}
		a.BinaryValue = slices.Clone(a.BinaryValue)
		if a.StringValue != nil {
			value := *a.StringValue
			a.StringValue = &value
		}
		attributes[name] = a
	}
	m.Attributes = attributes
	sum := md5.Sum([]byte(m.Body))
	return &message{
		Message: m, id: id, sentAt: sentAt,
		md5: hex.EncodeToString(sum[:]), md5Attrs: md5OfAttributes(attributes),
	}
}

// deduplicationID returns the identifier that a FIFO queue recognises m by.
func (m *Message) deduplicationID() string {
	sum := sha256.Sum256([]byte(m.Body))
	return cmp.Or(m.DeduplicationID, hex.EncodeToString(sum[:]))
}

// event returns m as Lambda hands it to the function.
func (m *message) event(queue *Queue, receipt string, count int, first time.Time) events.SQSMessage {
	attributes := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(count),
		"SentTimestamp":                    milliseconds(m.sentAt),
		"SenderId":                         senderID,
		"ApproximateFirstReceiveTimestamp": milliseconds(first),
	}
	for name, value := range map[string]string{
		"MessageGroupId":         m.GroupID,
		"MessageDeduplicationId": m.DeduplicationID,
		"SequenceNumber":         m.sequence,
	} {
		if value != "" {
			attributes[name] = value
		}
	}
	if m.origin != nil {
		attributes["DeadLetterQueueSourceArn"] = m.origin.ARN()
	}
	return events.SQSMessage{
		MessageId:              m.id,
		ReceiptHandle:          receipt,
		Body:                   m.Body,
		Md5OfBody:              m.md5,
		Md5OfMessageAttributes: m.md5Attrs,
		Attributes:             attributes,
		MessageAttributes:      maps.Clone(m.Attributes),
		EventSourceARN:         queue.ARN(),
		EventSource:            "aws:sqs",
		AWSRegion:              region,
	}
}

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// kindOf returns String, Number or Binary: the DataType without the sender's own label. It returns "" for any other.
func kindOf(a events.SQSMessageAttribute) string {
	kind, _, _ := strings.Cut(a.DataType, ".")
	if kind != "String" && kind != "Number" && kind != "Binary" {
		return ""
	}
	return kind
}

func valueField(a events.SQSMessageAttribute) string {
	if kindOf(a) == "Binary" {
		return "BinaryValue"
	}
	return "StringValue"
}

func attributeValue(a events.SQSMessageAttribute) []byte {
	switch {
	case kindOf(a) == "Binary":
		return a.BinaryValue
	case a.StringValue != nil:
		return []byte(*a.StringValue)
	default:
		return nil
	}
}

// md5OfAttributes is the digest of the SQS developer guide, "Calculating the MD5 message digest for message
// attributes": for each attribute by name its name, its type and its value, each with its length in front, with one
// byte between the two that says whether the value is text or binary. It is "" without attributes.
func md5OfAttributes(attributes map[string]events.SQSMessageAttribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	add := func(part []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		add([]byte(name))
		add([]byte(a.DataType))
		if kindOf(a) == "Binary" {
			b = append(b, 2)
		} else {
			b = append(b, 1)
		}
		add(attributeValue(a))
	}
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}
