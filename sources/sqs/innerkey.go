package sqs

import (
	"fmt"
	"net/url"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/eventkey"
)

// SNSMessageID is a key for Options.Key: the MessageId of the SNS notification that was unwrapped. It is the same in all
// subscriptions of the topic, and stays when the message is redriven from a dead-letter queue, which gives it another
// messageId. A publisher that publishes twice makes two.
//
// A message without it, as with raw message delivery, has no key, see idempotency.Options.MissingKey. Neither has a record
// of an S3 event that was unwrapped, which would share it with others: that is for S3ObjectKey.
func SNSMessageID(v View) (string, error) {
	notification := v.Envelope(SNS)
	if notification == "" {
		return "", missingKey("no SNS notification was unwrapped, want SNS in Options.Unwrap")
	}
	if err := v.oneOfSeveral(); err != nil {
		return "", err
	}
	return keyPart("MessageId", envelope.Member(notification, "MessageId"))
}

// EventBridgeID is a key for Options.Key: source and id of the EventBridge event that was unwrapped, or rule and time for that
// of a scheduled rule, which can fire twice for one tick. It is the key that package eventbridge gives the event by default,
// so with one guard a function behind a rule and one behind a queue do its work once. It stays when the message is
// redriven from a dead-letter queue. A producer that puts an event twice makes two.
//
// What has no key there has none here: Scheduler's default input, and one with a keyword that Scheduler did not replace.
// Neither has a record of an S3 event that was unwrapped, see SNSMessageID.
func EventBridgeID(v View) (string, error) {
	event := v.Envelope(EventBridge)
	if event == "" {
		return "", missingKey("no EventBridge event was unwrapped, want EventBridge in Options.Unwrap")
	}
	if err := v.oneOfSeveral(); err != nil {
		return "", err
	}
	m := eventkey.Members{
		DetailType: envelope.Member(event, "detail-type"),
		Resources:  envelope.Member(event, "resources"),
		Time:       envelope.Member(event, "time"),
	}
	var err error
	if m.ID, err = eventkey.Identifier("id", envelope.Member(event, "id")); err != nil {
		return "", missingKey(err.Error())
	}
	if m.Source, err = eventkey.Identifier("source", envelope.Member(event, "source")); err != nil {
		return "", missingKey(err.Error())
	}
	return m.Key()
}

// oneOfSeveral returns an error for a record of an S3 event. What is around the event is that of all its records, so as
// their key it would make one of them pass for the others.
func (v View) oneOfSeveral() error {
	if v.r.inner.of > 0 {
		return missingKey("S3 is unwrapped, want S3ObjectKey")
	}
	return nil
}

// S3ObjectKey is a key for Options.Key: bucket, key, version, if the bucket has versions, and sequencer of the S3 record
// that was unwrapped, or of the EventBridge event of S3, whose source is "aws.s3", joined by idempotency.JoinKey. The key is
// that of the object: in a record it is URL-encoded, and decoded here, in an EventBridge event it is not.
//
// The sequencer tells events of one object apart, and is there for those that create or delete it
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html and
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html): others fail. It is the same for all queues and
// topics that the event is sent to. AWS does not say that an event has the same one by EventBridge.
func S3ObjectKey(v View) (string, error) {
	if s3 := envelope.Member(v.Envelope(S3), "s3"); s3 != "" {
		return objectKey("s3", s3, "versionId", url.QueryUnescape)
	}
	event := v.Envelope(EventBridge)
	if text(envelope.Member(event, "source")) == "aws.s3" {
		same := func(key string) (string, error) { return key, nil }
		return objectKey("detail", envelope.Member(event, "detail"), "version-id", same)
	}
	return "", missingKey("no S3 record was unwrapped, want S3 in Options.Unwrap, or EventBridge and an event of aws.s3")
}

// objectKey names an event of an object, in which the version has the given name and decode returns the object's key.
func objectKey(place, event, version string, decode func(string) (string, error)) (string, error) {
	object := envelope.Member(event, "object")
	var parts []string
	for _, member := range []struct{ name, value string }{
		{"bucket.name", envelope.Member(envelope.Member(event, "bucket"), "name")},
		{"object.key", envelope.Member(object, "key")},
		{"object." + version, envelope.Member(object, version)},
		{"object.sequencer", envelope.Member(object, "sequencer")},
	} {
		if member.name == "object."+version && (member.value == "" || member.value == "null" || member.value == `""`) {
			continue
		}
		part, err := keyPart(place+"."+member.name, member.value)
		if err != nil {
			return "", err
		}
		if member.name == "object.key" {
			if part, err = decode(part); err != nil {
				return "", missingKey(place + ".object.key is not URL-encoded") // the error shows a part of it
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
