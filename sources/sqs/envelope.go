package sqs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Envelope is a form in which a service puts an event into the body of a message, for Options.Unwrap.
type Envelope uint8

const (
	// SNS is a notification of an SNS topic, of whose members Type, TopicArn, MessageId and Message count
	// (https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html). The others may be spelled as for SQS,
	// SigningCertURL, or as for Lambda, SigningCertUrl, or be missing. Inside is the text of Message. What SNS sends to have
	// a subscription confirmed is no notification, and fails.
	//
	// A subscription with raw message delivery sends that text without an envelope, and needs no SNS in Options.Unwrap: with
	// it, such a message fails.
	SNS Envelope = iota + 1

	// SNSOrRaw is SNS for a queue that gets both, be it while raw message delivery is being switched on or off: a body is
	// taken as it is, unless it is an object whose Type is "Notification" or one of SNS's confirmations. That must be a
	// notification, and fails otherwise, as with SNS, even if a publisher sent it raw.
	SNSOrRaw

	// EventBridge is an event of an EventBridge bus, with its members detail-type, source and detail
	// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html). Inside is detail, or, if an input
	// transformer made a string of it, the text of that.
	EventBridge

	// S3 is an event notification of S3
	// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html). Inside are its records,
	// each of which is handled as a message of its own; S3 must be the last in Options.Unwrap. The message that S3 sends to
	// test a new configuration, s3:TestEvent, is batch.Ignored.
	S3
)

// String returns the constant's name.
func (e Envelope) String() string {
	switch e {
	case SNS:
		return "SNS"
	case SNSOrRaw:
		return "SNSOrRaw"
	case EventBridge:
		return "EventBridge"
	case S3:
		return "S3"
	default:
		return fmt.Sprintf("Envelope(%d)", uint8(e))
	}
}

// opened is e as it is noted once it is open: raw messages are not.
func (e Envelope) opened() Envelope {
	if e == SNSOrRaw {
		return SNS
	}
	return e
}

// form says what a body must be for e.
func (e Envelope) form() string {
	switch e.opened() {
	case SNS:
		return "SNS notification"
	case EventBridge:
		return "EventBridge event"
	default:
		return "S3 event"
	}
}

// member is the member of e that is inside.
func (e Envelope) member() string {
	if e == EventBridge {
		return "detail"
	}
	return "Message"
}

func validateUnwrap(unwrap []Envelope) error {
	var errs []error
	seen := map[Envelope]bool{}
	for i, e := range unwrap {
		switch {
		case e < SNS || e > S3:
			errs = append(errs, fmt.Errorf("sqs: Options.Unwrap[%d] is %v, want SNS, SNSOrRaw, EventBridge or S3", i, e))
		case seen[e.opened()]:
			errs = append(errs, fmt.Errorf("sqs: Options.Unwrap[%d] is %v, want each envelope once", i, e))
		case e == S3 && i < len(unwrap)-1:
			errs = append(errs, fmt.Errorf("sqs: Options.Unwrap[%d] is S3, want it last of %d: nothing is inside", i, len(unwrap)))
		}
		seen[e.opened()] = true
	}
	return errors.Join(errs...)
}

// object is an envelope that is one JSON object: an envelope.Visitor.
type object struct {
	raw string
	// The values of its members.
	typ, topicARN, messageID, message string
	detailType, source, detail        string
	event                             string
}

func (o *object) Member(name, value string) {
	switch name {
	case "Type":
		o.typ = value
	case "TopicArn":
		o.topicARN = value
	case "MessageId":
		o.messageID = value
	case "Message":
		o.message = value
	case "detail-type":
		o.detailType = value
	case "source":
		o.source = value
	case "detail":
		o.detail = value
	case "Event":
		o.event = value
	}
}

func (o *object) End(raw string) { o.raw = raw }

// parse takes the object in body apart. Its parts are none of body's.
func (o *object) parse(body []byte) error {
	if envelope.IsArray(body) {
		return errors.New("it is an array, want an object")
	}
	if err := envelope.Elements(body, o); err != nil {
		return err
	}
	if o.raw[0] != '{' {
		return fmt.Errorf("it is %s, want an object", envelope.KindOf(o.raw))
	}
	return nil
}

// open returns what is inside of an e that is no S3, as JSON.
func (o *object) open(e Envelope) (inside string, err error) {
	if e == EventBridge {
		if o.detail == "" {
			return "", errors.New("detail is missing, want a value")
		}
		return o.detail, wantStrings("detail-type", o.detailType, "source", o.source)
	}
	if err := wantStrings("Type", o.typ, "TopicArn", o.topicARN, "MessageId", o.messageID, "Message", o.message); err != nil {
		return "", err
	}
	switch typ := text(o.typ); {
	case typ == notificationType:
		return o.message, nil
	case slices.Contains(confirmationTypes, typ):
		return "", errors.New(`its Type is that of a confirmation, want "Notification"`)
	default:
		return "", errors.New(`its Type is another string, want "Notification"`)
	}
}

const notificationType = "Notification"

// confirmationTypes are those of what SNS sends to have a subscription, or its end, confirmed.
var confirmationTypes = []string{"SubscriptionConfirmation", "UnsubscribeConfirmation"}

// isOfSNS reports whether the object is from SNS, as far as its Type tells, if that was found before the object was cut off.
func (o *object) isOfSNS() bool {
	typ, _ := envelope.String(o.typ)
	return typ == notificationType || slices.Contains(confirmationTypes, typ)
}

// wantStrings checks members, given by names and values. Its error shows no values.
func wantStrings(members ...string) error {
	for i := 0; i < len(members); i += 2 {
		if !isString(members[i+1]) {
			return fmt.Errorf("%s is %s, want a string", members[i], envelope.KindOf(members[i+1]))
		}
	}
	return nil
}
