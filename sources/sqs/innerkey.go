package sqs

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// SNSMessageID is a key for Options.Key: the MessageId of the SNS notification that was unwrapped. It is the same in all
// subscriptions of the topic, and stays when the message is redriven from a dead-letter queue, which gives it another
// messageId. A publisher that publishes twice makes two.
//
// A message without it, as with raw message delivery, has no key, see idempotency.Options.MissingKey.
func SNSMessageID(v View) (string, error) {
	notification := v.Envelope(SNS)
	if notification == "" {
		return "", missingKey("no SNS notification was unwrapped, want SNS in Options.Unwrap")
	}
	return keyPart("MessageId", envelope.Member(notification, "MessageId"))
}

// EventBridgeID is a key for Options.Key: source and id of the EventBridge event that was unwrapped, or rule and time for that
// of a scheduled rule, which can fire twice for one tick. It is the key that package eventbridge gives the event by default,
// so with one guard a function behind a rule and one behind a queue do its work once. It stays when the message is
// redriven from a dead-letter queue. A producer that puts an event twice makes two.
func EventBridgeID(v View) (string, error) {
	event := v.Envelope(EventBridge)
	if event == "" {
		return "", missingKey("no EventBridge event was unwrapped, want EventBridge in Options.Unwrap")
	}
	source, err := keyPart("source", envelope.Member(event, "source"))
	if err != nil {
		return "", err
	}
	if source == "aws.events" && text(envelope.Member(event, "detail-type")) == "Scheduled Event" {
		if key := tickKey(event); key != "" {
			return key, nil
		}
	}
	id, err := keyPart("id", envelope.Member(event, "id"))
	return idempotency.JoinKey(source, id), err
}

// tickKey names the tick of a scheduled rule, or is empty if the event does not say which it is.
func tickKey(event string) string {
	var rules []string
	if json.Unmarshal([]byte(envelope.Member(event, "resources")), &rules) != nil || len(rules) != 1 {
		return ""
	}
	at, err := time.Parse(time.RFC3339, text(envelope.Member(event, "time")))
	if err != nil {
		return ""
	}
	return idempotency.JoinKey(rules[0], at.UTC().Format(time.RFC3339Nano))
}

// S3ObjectKey is a key for Options.Key: bucket, key, version, if the bucket has versions, and sequencer of the S3 record
// that was unwrapped, joined by idempotency.JoinKey. The key is that of the object, decoded: in the event it is URL-encoded.
// The sequencer tells events of one object apart, and is there for those that create or delete it
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html): others fail. It is the same
// for all queues and topics that the event is sent to.
func S3ObjectKey(v View) (string, error) {
	s3 := envelope.Member(v.Envelope(S3), "s3")
	if s3 == "" {
		return "", missingKey("no S3 record was unwrapped, want S3 in Options.Unwrap")
	}
	object := envelope.Member(s3, "object")
	var parts []string
	for _, member := range []struct{ name, value string }{
		{"bucket.name", envelope.Member(envelope.Member(s3, "bucket"), "name")},
		{"object.key", envelope.Member(object, "key")},
		{"object.versionId", envelope.Member(object, "versionId")},
		{"object.sequencer", envelope.Member(object, "sequencer")},
	} {
		if member.name == "object.versionId" && (member.value == "" || member.value == "null" || member.value == `""`) {
			continue
		}
		part, err := keyPart("s3."+member.name, member.value)
		if err != nil {
			return "", err
		}
		if member.name == "object.key" {
			if part, err = url.QueryUnescape(part); err != nil {
				return "", missingKey("s3.object.key is not URL-encoded") // the error shows a part of it
			}
		}
		parts = append(parts, part)
	}
	return idempotency.JoinKey(parts...), nil
}

// keyPart returns the text of a member that is a part of a key.
func keyPart(name, value string) (string, error) {
	part, ok := envelope.String(value)
	switch {
	case !ok:
		return "", missingKey(fmt.Sprintf("%s is %s, want a string", name, envelope.KindOf(value)))
	case part == "":
		return "", missingKey(name + ` is "", want a text`)
	case envelope.Broken(part):
		// Two that differ there only would pass for one.
		return "", missingKey(name + " has broken characters, want none")
	}
	return part, nil
}

func missingKey(why string) error { return fmt.Errorf("%w: %s", idempotency.ErrKeyMissing, why) }
