package deadletter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
)

const (
	standardURL = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders-dead"
	fifoURL     = standardURL + ".fifo"
)

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// client is a Client that notes what it is asked to send, and takes it all.
type client struct {
	// answer makes another answer of the one that takes all. It is called without the lock.
	answer func(ctx context.Context, in *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) (*sqs.SendMessageBatchOutput, error)

	mu       sync.Mutex
	requests []*sqs.SendMessageBatchInput
}

func (c *client) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	c.mu.Lock()
	c.requests = append(c.requests, in)
	c.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	if c.answer == nil {
		return out, nil
	}
	return c.answer(ctx, in, out)
}

// letters returns what was sent, decoded.
func (c *client) letters(t tb) []deadletter.Letter {
	t.Helper()
	var all []deadletter.Letter
	for _, in := range c.sent() {
		all = append(all, decode(t, in)...)
	}
	return all
}

func (c *client) sent() []*sqs.SendMessageBatchInput {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[:len(c.requests):len(c.requests)]
}

// ids returns the records of each request, as in [a] [b c].
func (c *client) ids(t tb) string {
	t.Helper()
	text := ""
	for _, in := range c.sent() {
		var ids []string
		for _, l := range decode(t, in) {
			ids = append(ids, l.ID)
		}
		text += fmt.Sprint(ids)
	}
	return text
}

func decode(t tb, in *sqs.SendMessageBatchInput) []deadletter.Letter {
	t.Helper()
	letters := make([]deadletter.Letter, len(in.Entries))
	for i, e := range in.Entries {
		if err := json.Unmarshal([]byte(*e.MessageBody), &letters[i]); err != nil {
			t.Fatalf("body %q: %v", *e.MessageBody, err)
		}
	}
	return letters
}

// value is the Value of a record: its JSON.
type value string

func (v value) JSON() string { return string(v) }

func record(id string) *batch.Record {
	return &batch.Record{ID: id, Source: "arn:aws:sqs:eu-central-1:123456789012:orders", Value: value(fmt.Sprintf("{%q:%q}", "id", id))}
}

func newSink(t tb, c deadletter.Client, queueURL string, optFns ...func(*deadletter.Options)) *deadletter.Sink {
	t.Helper()
	s, err := deadletter.New(c, queueURL, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
