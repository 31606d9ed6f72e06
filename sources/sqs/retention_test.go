package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// seen is all that can be read of a message.
type seen struct {
	Body, ID, RawBody, Sender, Group, ARN, Handle string
	Receives                                      int
	Sent                                          time.Time
	Raw                                           events.SQSMessage
	Attribute                                     events.SQSMessageAttribute
	Key, FromContext                              string
}

type contextKey struct{}

func read[T any](ctx context.Context, m *sqs.Message[T]) seen {
	info, _ := idempotency.FromContext(ctx)
	attribute, _ := m.MessageAttribute("trace")
	fromContext, _ := ctx.Value(contextKey{}).(string)
	return seen{
		Body: fmt.Sprintf("%s", any(m.Body)), ID: m.ID(), RawBody: m.RawBody(), Sender: m.Attribute("SenderId"), Group: m.GroupID(),
		ARN: m.QueueARN(), Handle: m.ReceiptHandle(), Receives: m.ReceiveCount(), Sent: m.SentAt(), Raw: m.Raw(),
		Attribute: attribute, Key: info.Key, FromContext: fromContext,
	}
}

// testRetention keeps a message, its context and its methods beyond the invocation, while the next events are written
// where its own was: aws-lambda-go uses its buffer again. A handler that is abandoned does just that.
func testRetention[T any](t *testing.T, body string, options func(*sqs.Options)) {
	synctest.Test(t, func(t *testing.T) {
		var first, later, atLast seen
		var kept *sqs.Message[T]
		var keptContext context.Context
		next, ended := make(chan struct{}), make(chan struct{})
		h := newHandler(t, func(ctx context.Context, m *sqs.Message[T]) error {
			if m.ID() != "m1" {
				return nil
			}
			kept, keptContext = m, ctx
			first = read(ctx, m)
			<-next // ignores its context
			later = read(ctx, m)
			close(ended)
			return nil
		}, options)

		buffer := make([]byte, 0, 1<<16)
		invoke := func(id string, failed ...string) {
			record := message{ID: id, Body: body, Group: "group of " + id, Receives: 3}.record()
			record = `{"messageAttributes":{"trace":{"stringValue":"trace ` + id + `","dataType":"String"}},` +
				string(bytes.Replace([]byte(record), []byte(`"messageAttributes":{},`), nil, 1))[1:]
			buffer = append(buffer[:0], rawEvent(record)...)
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), contextKey{}, id), time.Minute)
			defer cancel()
			wantFailures(t, ctx, h, buffer, failed...)
		}
		invoke("m1", "m1")
		for i := range buffer[:cap(buffer)] {
			buffer[:cap(buffer)][i] = '#'
		}
		body = string(bytes.ToUpper([]byte(body)))
		invoke("m2")
		invoke("m3")
		close(next)
		<-ended
		synctest.Wait()
		runtime.GC()
		atLast = read(keptContext, kept)
		if diff := cmp.Diff(first, later); diff != "" {
			t.Errorf("what the handler read, before and after other events came (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(first, atLast); diff != "" {
			t.Errorf("what was read at last (-before +after):\n%s", diff)
		}
		if first.ID != "m1" || first.Raw.MessageId != "m1" || first.Attribute.StringValue == nil || first.FromContext != "m1" {
			t.Errorf("what the handler read: %+v, want m1", first)
		}
	})
}

// keeper is decoded by keeping the bytes of the body.
type keeper struct{ body []byte }

func TestRetention(t *testing.T) {
	type nested struct {
		ID   string          `json:"id"`
		Rest json.RawMessage `json:"rest"`
		Any  any             `json:"any"`
	}
	const body = `{"id":"one","rest":{"a":"b"},"any":{"c":["d"]}}`
	for name, options := range map[string]func() func(*sqs.Options){
		"no guard": func() func(*sqs.Options) { return func(*sqs.Options) {} },
		"guard":    func() func(*sqs.Options) { return guarded(t) },
	} {
		t.Run(name, func(t *testing.T) {
			testRetention[string](t, body, options())
			testRetention[[]byte](t, body, options())
			testRetention[json.RawMessage](t, body, options())
			testRetention[nested](t, body, options())
			testRetention[*nested](t, body, options())
			testRetention[any](t, body, options())
			testRetention[map[string]json.RawMessage](t, body, options())
			withDecode := options()
			testRetention[keeper](t, body, func(o *sqs.Options) {
				withDecode(o)
				o.Decode = func(body []byte, v any) error {
					v.(*keeper).body = body
					return nil
				}
			})
		})
	}
}

// What a handler changes of its body it changes for itself.
func TestRetentionOfAChangedBody(t *testing.T) {
	payload := event(numbered(3)...)
	want := bytes.Clone(payload)
	h := newHandler(t, func(_ context.Context, m *sqs.Message[[]byte]) error {
		copy(m.Body, "XX")
		if m.RawBody() != m.ID() || m.Raw().Body != m.ID() {
			return fmt.Errorf("raw body is %q", m.RawBody())
		}
		return nil
	})
	wantFailures(t, t.Context(), h, payload)
	if diff := cmp.Diff(string(want), string(payload)); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
}
