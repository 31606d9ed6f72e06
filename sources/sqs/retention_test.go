package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
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

// keptJSON and keptText are decoded by methods that keep the bytes they are given, as they should not.
type (
	keptJSON []byte
	keptText struct{ text []byte }
)

func (k *keptJSON) UnmarshalJSON(data []byte) error { *k = data; return nil }
func (k *keptText) UnmarshalText(text []byte) error { k.text = text; return nil }

// A body that is decoded into bytes that it was only lent is the message's own all the same, in the handler and after it.
func TestRetentionByUnmarshalers(t *testing.T) {
	type kept struct {
		JSON keptJSON
		Text keptText
		Map  map[string]*keptJSON
	}
	const n = 1000
	messages := numbered(n)
	for i := range messages {
		id := messages[i].ID
		messages[i].Body = fmt.Sprintf(`{"JSON":{"id":%q},"Text":%q,"Map":{"a":[%q]}}`, id, id, id)
	}
	check := func(m *sqs.Message[kept]) error {
		got := fmt.Sprintf("%s %s %s", m.Body.JSON, m.Body.Text.text, *m.Body.Map["a"])
		if want := fmt.Sprintf(`{"id":%q} %s [%q]`, m.ID(), m.ID(), m.ID()); got != want {
			return fmt.Errorf("body of %s is %s", m.ID(), got)
		}
		return nil
	}
	var mu sync.Mutex
	var all []*sqs.Message[kept]
	h := newHandler(t, func(_ context.Context, m *sqs.Message[kept]) error {
		runtime.Gosched() // others are decoded meanwhile
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
		return check(m)
	}, concurrency(10))
	wantFailures(t, t.Context(), h, event(messages...))
	if len(all) != n {
		t.Errorf("%d messages ran, want %d", len(all), n)
	}
	for _, m := range all {
		if err := check(m); err != nil {
			t.Fatal("after the batch: ", err)
		}
	}
}
