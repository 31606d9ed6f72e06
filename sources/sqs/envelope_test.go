package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

const (
	topicARN  = "arn:aws:sns:us-east-2:123456789012:orders"
	snsID     = "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"
	eventID   = "17793124-05d4-b198-2fde-7ededc63b103"
	testEvent = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2014-10-13T15:57:02.089Z","Bucket":"photos",` +
		`"RequestId":"5582815E1AEA5ADF","HostId":"8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR+YstdA6Knx4Ip8EXAMPLE"}`
)

type members = map[string]any

// toJSON returns an object with the members of all. Those that are nil are left out.
func toJSON(all ...members) string {
	object := members{}
	for _, m := range all {
		maps.Copy(object, m)
	}
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// notification returns the message as SNS sends it to a queue, with members changed.
func notification(text string, changes ...members) string {
	return toJSON(append([]members{{
		"Type": "Notification", "MessageId": snsID, "TopicArn": topicARN, "Subject": "an order", "Message": text,
		"Timestamp": "2012-05-02T00:54:06.655Z", "SignatureVersion": "1", "Signature": "EXAMPLEw6JRN==",
		"SigningCertURL": "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",
		"UnsubscribeURL": "https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe",
	}}, changes...)...)
}

// published returns the detail as EventBridge sends it to a queue, with members changed.
func published(detail string, changes ...members) string {
	return toJSON(append([]members{{
		"version": "0", "id": eventID, "detail-type": "Order Placed", "source": "com.example.orders", "account": "123456789012",
		"time": "2017-12-22T18:43:48Z", "region": "us-east-2", "resources": []string{}, "detail": json.RawMessage(detail),
	}}, changes...)...)
}

func unwrap(envelopes ...sqs.Envelope) func(*sqs.Options) {
	return func(o *sqs.Options) { o.Unwrap = envelopes }
}

// Case 35: what is inside of envelopes is unwrapped on request.
func TestUnwrap(t *testing.T) {
	const body = `{"id":"o1","amount":7,"note":"\"é\\"}`
	for _, test := range []struct {
		name   string
		unwrap []sqs.Envelope
		body   string
		inner  string
	}{
		{"SNS", []sqs.Envelope{sqs.SNS}, notification(body), body},
		{"SNS in the spelling of Lambda", []sqs.Envelope{sqs.SNS}, notification(body, members{
			"SigningCertURL": nil, "SigningCertUrl": "x", "UnsubscribeURL": nil, "UnsubscribeUrl": "x", "MessageAttributes": members{},
		}), body},
		{"SNS of a FIFO topic", []sqs.Envelope{sqs.SNS}, notification(body, members{"SequenceNumber": "10000000000000000000"}), body},
		{"SNS without what does not matter", []sqs.Envelope{sqs.SNS}, notification(body, members{
			"Subject": nil, "Timestamp": nil, "SignatureVersion": nil, "Signature": nil, "SigningCertURL": nil, "UnsubscribeURL": nil,
		}), body},
		{"SNS with white space", []sqs.Envelope{sqs.SNS}, " " + notification(body) + "\n", body},
		{"SNS or raw, wrapped", []sqs.Envelope{sqs.SNSOrRaw}, notification(body), body},
		{"SNS or raw, raw", []sqs.Envelope{sqs.SNSOrRaw}, body, body},
		{"SNS or raw, raw and like a notification", []sqs.Envelope{sqs.SNSOrRaw},
			notification(body, members{"Type": "notification"}), notification(body, members{"Type": "notification"})},
		{"SNS or raw, raw of another Type", []sqs.Envelope{sqs.SNSOrRaw}, `{"Type":"Order","id":"o1"}`, `{"Type":"Order","id":"o1"}`},
		{"SNS or raw, raw with a Type that is no string", []sqs.Envelope{sqs.SNSOrRaw}, `{"Type":{},"id":"o1"}`, `{"Type":{},"id":"o1"}`},
		{"EventBridge", []sqs.Envelope{sqs.EventBridge}, published(body), `{"id":"o1","amount":7,"note":"\"é\\"}`},
		{"EventBridge with a string as detail", []sqs.Envelope{sqs.EventBridge},
			published("{}", members{"detail": body}), body},
		{"EventBridge of an input transformer that drops the id", []sqs.Envelope{sqs.EventBridge},
			published(body, members{"id": nil, "time": nil, "resources": nil}), body},
		{"EventBridge in SNS", []sqs.Envelope{sqs.SNS, sqs.EventBridge}, notification(published(body)), body},
		{"EventBridge in raw SNS", []sqs.Envelope{sqs.SNSOrRaw, sqs.EventBridge}, published(body), body},
		{"SNS in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS}, published(notification(body)), body},
		{"S3", []sqs.Envelope{sqs.S3}, `{"Records":[` + s3Record("a", members{"id": "o1"}) + `]}`, s3Record("a", members{"id": "o1"})},
		{"S3 in SNS in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS, sqs.S3},
			published(notification(s3Event("a"))), s3Record("a")},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				ran := 0
				payload := event(message{ID: "m1", Body: test.body})
				wantFailures(t, t.Context(), newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
					ran++
					if m.Body != test.inner || m.Inner() != test.inner {
						t.Errorf("body is %s, inner is %s, want %s", m.Body, m.Inner(), test.inner)
					}
					if m.RawBody() != test.body {
						t.Errorf("raw body is %s, want %s", m.RawBody(), test.body)
					}
					if m.JSON() != strings.TrimSuffix(strings.TrimPrefix(string(payload), `{"Records":[`), `]}`) {
						t.Errorf("JSON is %s, want the record of %s", m.JSON(), payload)
					}
					return nil
				}, options, unwrap(test.unwrap...)), payload)
				// And once more, decoded.
				wantFailures(t, t.Context(), newHandler(t, func(_ context.Context, m *sqs.Message[members]) error {
					ran++
					var want members
					if err := json.Unmarshal([]byte(test.inner), &want); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, m.Body); diff != "" {
						t.Errorf("body (-want +got):\n%s", diff)
					}
					return nil
				}, unwrap(test.unwrap...)), payload)
				if ran != 2 {
					t.Errorf("%d messages ran, want 2", ran)
				}
			})
		})
	}
}

// Case 35: without the option a body is what it is, however much it looks like an envelope.
func TestUnwrapOnlyOnRequest(t *testing.T) {
	for _, body := range []string{notification(`{"id":"o1"}`), published(`{"id":"o1"}`), s3Event("a", "b"), testEvent} {
		testBody(t, body, body)
		var want members
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		testBody(t, body, want)
		h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
			for _, e := range []sqs.Envelope{sqs.SNS, sqs.SNSOrRaw, sqs.EventBridge, sqs.S3} {
				if got := m.Envelope(e); got != "" {
					t.Errorf("envelope %v is %s, want none", e, got)
				}
			}
			if m.Inner() != body || m.ID() != "m1" {
				t.Errorf("inner of %s is %s, want the body", m.ID(), m.Inner())
			}
			return nil
		})
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
	}
	// Nor is what is inside of an envelope, when that is not asked for.
	for _, inside := range []string{notification("x"), published("{}"), s3Event("a", "b"), testEvent} {
		h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
			if m.Body != inside || m.Envelope(sqs.EventBridge) != "" || m.Envelope(sqs.S3) != "" {
				t.Errorf("body is %s, want %s, and no envelope but SNS", m.Body, inside)
			}
			return nil
		}, unwrap(sqs.SNS))
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: notification(inside)}))
	}
}

// Case 35: a body that cannot be unwrapped fails its own message, and no other. Its error says what is wrong with it, and
// shows nothing of it.
func TestUnwrapFails(t *testing.T) {
	const secret = `{"SECRET":"SECRET"}`
	sns, eventBridge, s3 := []sqs.Envelope{sqs.SNS}, []sqs.Envelope{sqs.EventBridge}, []sqs.Envelope{sqs.S3}
	snsOrRaw := []sqs.Envelope{sqs.SNSOrRaw}
	for _, test := range []struct {
		name   string
		unwrap []sqs.Envelope
		body   string
		want   string
	}{
		{"SNS, raw", sns, secret, `sqs: body of message "m2" is no SNS notification: Type is missing, want a string`},
		{"SNS, empty", sns, "", `sqs: body of message "m2" is no SNS notification: event is not JSON: unexpected EOF`},
		{"SNS, text", sns, "the SECRET", `sqs: body of message "m2" is no SNS notification: event is not JSON`},
		{"SNS, null", sns, "null", `no SNS notification: it is null, want an object`},
		{"SNS, a string", sns, `"SECRET"`, `no SNS notification: it is a string, want an object`},
		{"SNS, an array", sns, `[` + notification("SECRET") + `]`, `no SNS notification: it is an array, want an object`},
		{"SNS, two", sns, notification("SECRET") + notification("SECRET"), `no SNS notification: event is followed by more bytes`},
		{"SNS, EventBridge", sns, published(secret), `no SNS notification: Type is missing, want a string`},
		{"SNS, Message missing", sns, notification("SECRET", members{"Message": nil}), `Message is missing, want a string`},
		{"SNS, Message an object", sns, notification("", members{"Message": members{"SECRET": 1}}), `Message is an object, want a string`},
		{"SNS, Message null", sns, notification("", members{"Message": json.RawMessage("null")}), `Message is null, want a string`},
		{"SNS, MessageId missing", sns, notification("SECRET", members{"MessageId": nil}), `MessageId is missing, want a string`},
		{"SNS, TopicArn a number", sns, notification("SECRET", members{"TopicArn": 7}), `TopicArn is a number, want a string`},
		{"SNS, another Type", sns, notification("SECRET", members{"Type": "SECRET"}), `Type is another string, want "Notification"`},
		{"SNS, subscription", sns, notification("SECRET", members{"Type": "SubscriptionConfirmation", "Token": "SECRET"}),
			`Type is that of a confirmation, want "Notification"`},
		{"SNS, other case", sns, strings.ReplaceAll(notification("SECRET"), `"Message"`, `"message"`), `Message is missing`},

		{"SNS or raw, Message a number", snsOrRaw, notification("", members{"Message": 7}),
			`sqs: body of message "m2" is no SNS notification: Message is a number, want a string`},
		{"SNS or raw, cut off", snsOrRaw, `{"Type":"Notification","Message":"SECRET`, `is no SNS notification: event is not JSON: unexpected EOF`},
		{"SNS or raw, Message missing", snsOrRaw, notification("SECRET", members{"Message": nil}), `Message is missing, want a string`},
		{"SNS or raw, TopicArn missing", snsOrRaw, notification("SECRET", members{"TopicArn": nil}), `TopicArn is missing, want a string`},
		{"SNS or raw, subscription", snsOrRaw, notification("SECRET", members{"Type": "SubscriptionConfirmation", "Token": "SECRET"}),
			`Type is that of a confirmation, want "Notification"`},
		{"SNS or raw, end of a subscription", snsOrRaw, `{"Type":"UnsubscribeConfirmation"}`, `TopicArn is missing, want a string`},

		{"EventBridge, plain", eventBridge, secret, `sqs: body of message "m2" is no EventBridge event: detail is missing`},
		{"EventBridge, SNS", eventBridge, notification("SECRET"), `is no EventBridge event: detail is missing, want a value`},
		{"EventBridge, cut off", eventBridge, published(secret)[:90], `is no EventBridge event: event is not JSON: unexpected EOF`},
		{"EventBridge, no detail", eventBridge, published(secret, members{"detail": nil}), `detail is missing, want a value`},
		{"EventBridge, detail null", eventBridge, published("null"), `sqs: what was unwrapped from message "m2" is not a valid sqs_test.order: found null`},
		{"EventBridge, no detail-type", eventBridge, published(secret, members{"detail-type": nil}), `detail-type is missing, want a string`},
		{"EventBridge, source a number", eventBridge, published(secret, members{"source": 7}), `source is a number, want a string`},
		{"EventBridge, another T", eventBridge, published(`{"amount":"SECRET"}`), `what was unwrapped from message "m2" is not a valid sqs_test.order: JSON string at offset 10 does not fit a Go int`},

		{"S3, plain", s3, secret, `sqs: body of message "m2" is no S3 event: its Records are missing or null, want an array`},
		{"S3, an array", s3, `[` + s3Event("SECRET") + `]`, `is no S3 event: event is an array, want an object with Records`},
		{"S3, text", s3, "SECRET", `is no S3 event: event is not JSON: `},
		{"S3, Records null", s3, `{"Records":null,"SECRET":1}`, `Records are missing or null, want an array`},
		{"S3, Records an object", s3, `{"Records":{"SECRET":1}}`, `event has Records that are an object, want an array`},
		{"S3, Records empty", s3, `{"Records":[]}`, `is no S3 event: its Records are an empty array, want at least one record`},
		{"S3, Records twice", s3, `{"Records":[],"Records":[]}`, `event has Records twice, want one array`},
		{"S3, another event", s3, `{"Event":"SECRET"}`, `Records are missing or null, want an array`},
		{"S3, SNS", s3, notification(s3Event("SECRET")), `Records are missing or null, want an array`},

		{"S3 in SNS, raw", []sqs.Envelope{sqs.SNS, sqs.S3}, s3Event("SECRET"), `sqs: body of message "m2" is no SNS notification: Type is missing`},
		{"S3 in SNS, text", []sqs.Envelope{sqs.SNS, sqs.S3}, notification("SECRET"), `sqs: Message in the body of message "m2" is no S3 event: event is not JSON`},
		{"S3 in raw SNS, text", []sqs.Envelope{sqs.SNSOrRaw, sqs.S3}, "SECRET", `sqs: body of message "m2" is no S3 event: event is not JSON`},
		{"SNS in EventBridge", []sqs.Envelope{sqs.EventBridge, sqs.SNS}, published(secret), `sqs: detail in the body of message "m2" is no SNS notification: Type is missing`},
		{"order of envelopes", []sqs.Envelope{sqs.EventBridge, sqs.SNS}, notification(published(secret)), `body of message "m2" is no EventBridge event`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				var logged logs
				ran := map[string]bool{}
				good := published(`{"id":"o1"}`)
				switch test.unwrap[0] {
				case sqs.SNS, sqs.SNSOrRaw:
					good = notification(`{"id":"o1"}`)
				case sqs.S3:
					good = s3Event("a")
				}
				if len(test.unwrap) > 1 {
					good = map[sqs.Envelope]string{
						sqs.SNS: notification(s3Event("a")), sqs.SNSOrRaw: s3Event("a"), sqs.EventBridge: published(notification("{}")),
					}[test.unwrap[0]]
				}
				h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
					ran[strings.TrimSuffix(m.ID(), "#0")] = true
					return nil
				}, options, concurrency(1), logged.option, unwrap(test.unwrap...))
				wantFailures(t, t.Context(), h, event(
					message{ID: "m1", Body: good}, message{ID: "m2", Body: test.body}, message{ID: "m3", Body: good},
				), "m2")
				if diff := cmp.Diff(map[string]bool{"m1": true, "m3": true}, ran); diff != "" {
					t.Errorf("messages that ran (-want +got):\n%s", diff)
				}
				if got := logged.Failure(t, "m2").Error; !strings.Contains(got, test.want) {
					t.Errorf("error is %q, want %q in it", got, test.want)
				}
				if strings.Contains(logged.Text(), "SECRET") {
					t.Errorf("%s: shows the body", logged.Text())
				}
			})
		})
	}
}

// A body that is no string fails for that.
func TestUnwrapNoBody(t *testing.T) {
	for kind, body := range map[string]string{"missing": "", "null": `"body":null,`, "an object": `"body":{"Type":"Notification"},`} {
		var logged logs
		h := newHandler(t, func(context.Context, *sqs.Message[string]) error { t.Error("ran"); return nil }, logged.option, unwrap(sqs.SNSOrRaw, sqs.S3))
		wantFailures(t, t.Context(), h, rawEvent(`{`+body+`"messageId":"m1"}`), "m1")
		if want := `sqs: body of message "m1" is ` + kind + ", want a string"; logged.Failure(t, "m1").Error != want {
			t.Errorf("error is %q, want %q", logged.Failure(t, "m1").Error, want)
		}
	}
}

// A message that cannot be unwrapped is given up like one that cannot be decoded, and the sink gets it as it was.
func TestUnwrapFailsToDeadLetter(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var sunk []string
		h := newHandler(t, func(context.Context, *sqs.Message[string]) error { return nil }, options, unwrap(sqs.SNS), func(o *sqs.Options) {
			o.MaxAttempts = 3
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
				sunk = append(sunk, r.Value.(*sqs.Message[string]).RawBody())
				return nil
			}
		})
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: "raw", Receives: 2}), "m1")
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: "raw", Receives: 3}))
		if diff := cmp.Diff([]string{"raw"}, sunk); diff != "" {
			t.Errorf("dead-lettered (-want +got):\n%s", diff)
		}
	})
}

// The envelopes are there for who wants to know more.
func TestEnvelope(t *testing.T) {
	h := newHandler(t, func(_ context.Context, m *sqs.Message[events.S3EventRecord]) error {
		var sns events.SNSEntity
		var eventBridge events.EventBridgeEvent
		for e, v := range map[sqs.Envelope]any{sqs.SNS: &sns, sqs.EventBridge: &eventBridge} {
			if err := json.Unmarshal([]byte(m.Envelope(e)), v); err != nil {
				t.Error(err)
			}
		}
		got := []string{sns.TopicArn, sns.Subject, eventBridge.DetailType, m.Body.S3.Object.URLDecodedKey}
		if diff := cmp.Diff([]string{topicARN, "an order", "Order Placed", "a b"}, got); diff != "" {
			t.Errorf("envelopes (-want +got):\n%s", diff)
		}
		if m.Envelope(sqs.SNSOrRaw) != m.Envelope(sqs.SNS) || m.Envelope(sqs.S3) != s3Record("a b") {
			t.Errorf("envelopes are %s and %s", m.Envelope(sqs.SNSOrRaw), m.Envelope(sqs.S3))
		}
		if got := m.Envelope(0) + m.Envelope(9); got != "" {
			t.Errorf("unknown envelope is %s, want none", got)
		}
		return nil
	}, unwrap(sqs.EventBridge, sqs.SNS, sqs.S3))
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: published(notification(s3Event("a b")))}))

	var literal sqs.Message[string]
	if literal.Inner() != "" || literal.Envelope(sqs.SNS) != "" || literal.Envelope(sqs.S3) != "" {
		t.Errorf("literal has %q and %q, want nothing", literal.Inner(), literal.Envelope(sqs.SNS))
	}
}

func TestUnwrapOptions(t *testing.T) {
	fn := func(context.Context, *sqs.Message[string]) error { return nil }
	for _, test := range []struct {
		unwrap []sqs.Envelope
		want   []string
	}{
		{[]sqs.Envelope{0}, []string{"sqs: Options.Unwrap[0] is Envelope(0), want SNS, SNSOrRaw, EventBridge or S3"}},
		{[]sqs.Envelope{sqs.SNS, 5}, []string{"sqs: Options.Unwrap[1] is Envelope(5), want SNS, "}},
		{[]sqs.Envelope{sqs.S3, sqs.SNS}, []string{"sqs: Options.Unwrap[0] is S3, want it last of 2"}},
		{[]sqs.Envelope{sqs.SNS, sqs.SNSOrRaw}, []string{"sqs: Options.Unwrap[1] is SNSOrRaw, want each envelope once"}},
		{[]sqs.Envelope{sqs.EventBridge, sqs.EventBridge, 7}, []string{"Options.Unwrap[1] is EventBridge", "Options.Unwrap[2] is Envelope(7)"}},
		{[]sqs.Envelope{sqs.S3, sqs.S3}, []string{"Options.Unwrap[0] is S3, want it last", "Options.Unwrap[1] is S3, want each"}},
	} {
		_, err := sqs.NewHandler(fn, unwrap(test.unwrap...))
		wantError(t, err, test.want...)
	}

	// The handler keeps its own.
	envelopes := []sqs.Envelope{sqs.SNS}
	w := &worker{}
	h := newHandler(t, w.handle, unwrap(envelopes...))
	envelopes[0] = sqs.S3
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: notification("x")}))
	w.want(t, "m1")
	if got := fmt.Sprint([]sqs.Envelope{sqs.SNS, sqs.SNSOrRaw, sqs.EventBridge, sqs.S3}); got != "[SNS SNSOrRaw EventBridge S3]" {
		t.Errorf("names are %s", got)
	}
}

// What an envelope has inside is decoded by the option too.
func TestUnwrapDecode(t *testing.T) {
	h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
		if m.Body != "<raw text>" {
			t.Errorf("body is %q", m.Body)
		}
		return nil
	}, unwrap(sqs.SNS), func(o *sqs.Options) {
		o.Decode = func(body []byte, v any) error {
			*v.(*string) = "<" + string(body) + ">"
			return nil
		}
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: notification("raw text")}))
}
