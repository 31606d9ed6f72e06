package sqs

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// Message is a message of a queue, with its body decoded into a T. It is the handler's to keep, but as long as it is kept,
// so is the text of the whole batch, up to 6 MB; Body does not hold on to that. A test of a handler can make one by a
// literal, &Message[T]{Body: body}; the methods of View then return zero values. To have those set too, send the message
// through Handler.Handle or package sqstest.
type Message[T any] struct {
	// Body is the decoded body.
	Body T
	View
}

// View is the record of a message as it was delivered. Its methods decode what they return when they are called.
type View struct{ r *record }

// record is where things are in the JSON of a message. All of it are parts of one string.
type record struct {
	raw        string
	id         string
	body       string // JSON
	attributes string // JSON
	arn        string
	inner      *inner // what was unwrapped from the body, nil: nothing
	problem    error  // why it is no message, nil: it is one
}

func (v View) member(name string) string {
	if v.r == nil {
		return ""
	}
	return envelope.Member(v.r.raw, name)
}

// ID returns the messageId. For a record of an S3 event that was unwrapped, '#' and its number in that, from 0, follow.
func (v View) ID() string {
	if v.r == nil {
		return ""
	}
	if v.r.inner != nil && v.r.inner.id != "" {
		return v.r.inner.id
	}
	return v.r.id
}

// RawBody returns the body as it was sent, with all its envelopes, and "" if there is none.
func (v View) RawBody() string {
	if v.r == nil {
		return ""
	}
	text, _ := envelope.String(v.r.body)
	return text
}

// Attribute returns the system attribute with the name, such as "SenderId", or "" if the message has none.
func (v View) Attribute(name string) string {
	if v.r == nil {
		return ""
	}
	text, _ := envelope.String(envelope.Member(v.r.attributes, name))
	return text
}

// ReceiveCount returns how often the message was received, this time included, from all queues since it was sent
// (ApproximateReceiveCount). It is 0 if the message does not say.
func (v View) ReceiveCount() int {
	n, err := strconv.Atoi(v.Attribute("ApproximateReceiveCount"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// SentAt returns when the message was sent (SentTimestamp), or the zero time if the message does not say. A message
// that was redriven from a standard dead-letter queue counts as sent at the redrive.
func (v View) SentAt() time.Time {
	ms, err := strconv.ParseInt(v.Attribute("SentTimestamp"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// GroupID returns the message group (MessageGroupId): the order the message belongs to on a FIFO queue, the tenant on a
// fair standard queue. It is "" if the message has none.
func (v View) GroupID() string { return v.Attribute("MessageGroupId") }

// QueueARN returns the ARN of the queue that the message was received from.
func (v View) QueueARN() string {
	if v.r == nil {
		return ""
	}
	return v.r.arn
}

// ReceiptHandle returns the handle of this delivery. It is another one for every delivery, so it is no key.
func (v View) ReceiptHandle() string {
	text, _ := envelope.String(v.member("receiptHandle"))
	return text
}

// MessageAttribute returns the message attribute with the name, and whether the message has it.
func (v View) MessageAttribute(name string) (events.SQSMessageAttribute, bool) {
	var a events.SQSMessageAttribute
	value := envelope.Member(v.member("messageAttributes"), name)
	if value == "" {
		return a, false
	}
	err := payload.Unmarshal([]byte(value), &a)
	return a, err == nil
}

// JSON returns the whole message as it was delivered. For one of several records of an S3 event that was unwrapped, it is
// the message as it would be if the event had that record only, without md5OfBody: sent again, it is no other's work.
func (v View) JSON() string {
	if v.r == nil {
		return ""
	}
	if v.r.inner != nil && v.r.inner.of > 1 {
		return v.r.alone()
	}
	return v.r.raw
}

// Raw returns the whole message as aws-lambda-go has it. What of it is not of the type that AWS documents is left out.
func (v View) Raw() events.SQSMessage {
	var m events.SQSMessage
	if v.r != nil {
		_ = json.Unmarshal([]byte(v.r.raw), &m) // which goes on behind what is of another type
	}
	return m
}
