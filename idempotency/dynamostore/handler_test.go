package dynamostore_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// consumer is a whole SQS handler on a table behind a proxy.
type consumer struct {
	t       *testing.T
	proxy   *dynamotest.Proxy
	handler *sqs.Handler[string]
	work    func() error // nil: succeeds
	ran     int
	results map[string]batch.Outcome
}

// OnRecordFinished is a batch hook that notes the outcomes.
func (c *consumer) OnRecordFinished(_ context.Context, r *batch.Result) {
	c.results[r.Record.ID] = r.Outcome
}

func newConsumer(t *testing.T, optFns ...func(*idempotency.Options)) *consumer {
	t.Helper()
	c := &consumer{t: t, proxy: dynamotest.NewProxy(t), results: map[string]batch.Outcome{}}
	client := c.proxy.Client(t, dynamotest.ShortRetries)
	store := dynamostore.New(client, dynamotest.Table(t, client), func(o *dynamostore.Options) { o.CallTimeout = time.Second })
	guard, err := idempotency.New("orders", store, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	c.handler, err = sqs.NewHandler(func(context.Context, *sqs.Message[string]) error {
		c.ran++
		if c.work != nil {
			return c.work()
		}
		return nil
	}, func(o *sqs.Options) {
		o.Idempotency = guard
		o.Concurrency = 1
		o.Logger = slog.New(slog.DiscardHandler)
		o.Hooks = []batch.Hook{c}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.proxy.Requests()
	return c
}

// deliver delivers one message, in an invocation that has some time left, and checks what became of it, whether the
// handler ran, and the requests.
func (c *consumer) deliver(id string, left time.Duration, want batch.Outcome, ran bool, requests map[string]int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), left)
	defer cancel()
	before := c.ran
	response, err := c.handler.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, Body: "x"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if got := c.results[id]; got != want || (c.ran > before) != ran {
		c.t.Errorf("%s: %v, handler ran: %v; want %v, %v", id, got, c.ran > before, want, ran)
	}
	if told := len(response.BatchItemFailures) == 0; told != want.Done() {
		c.t.Errorf("%s: told as done: %v, want %v", id, told, want.Done())
	}
	if diff := cmp.Diff(requests, c.proxy.Requests()); diff != "" {
		c.t.Errorf("%s: requests (-want +got):\n%s", id, diff)
	}
}

// What a message costs from the event to the answer when nothing goes wrong: two writes that run it, one that replays
// it or finds it in progress, two that fail it, and no read.
func TestHandlerRequests(t *testing.T) {
	c := newConsumer(t)
	const left = time.Minute
	c.deliver("m1", left, batch.Succeeded, true, map[string]int{"PutItem": 1, "UpdateItem": 1})
	c.deliver("m1", left, batch.Replayed, false, map[string]int{"PutItem": 1})
	c.work = func() error { return errors.New("no") }
	c.deliver("m2", left, batch.Failed, true, map[string]int{"PutItem": 1, "DeleteItem": 1})
	c.work = func() error {
		c.proxy.Requests()
		c.deliver("m3", left, batch.InProgress, false, map[string]int{"PutItem": 1})
		return nil
	}
	c.deliver("m3", left, batch.Succeeded, true, map[string]int{"UpdateItem": 1})
}

// A claim whose reply comes too late starts nothing and leaves nothing behind: the next delivery runs at once.
func TestHandlerClaimReplyTooLate(t *testing.T) {
	for _, test := range []struct {
		name  string
		left  time.Duration // of the invocation
		lease time.Duration
		delay time.Duration // of the reply
		want  batch.Outcome
	}{
		{"past the batch's reserve", time.Second, 0, 920 * time.Millisecond, batch.Skipped},
		{"past the lease", time.Minute, 200 * time.Millisecond, 300 * time.Millisecond, batch.Skipped},
		{"past the call's timeout", time.Minute, 0, 1100 * time.Millisecond, batch.Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newConsumer(t, func(o *idempotency.Options) { o.Lease = test.lease })
			c.proxy.Script("PutItem", dynamotest.DelayReply(test.delay))
			c.deliver("m1", test.left, test.want, false, map[string]int{"PutItem": 1, "DeleteItem": 1})
			c.proxy.Script("PutItem")
			c.deliver("m1", time.Minute, batch.Succeeded, true, map[string]int{"PutItem": 1, "UpdateItem": 1})
		})
	}
}

// Replies that are lost after the write was applied cost another request each, and change nothing else.
func TestHandlerLostReplies(t *testing.T) {
	c := newConsumer(t)
	const left = time.Minute
	c.proxy.Script("PutItem", dynamotest.LoseReply)
	c.deliver("claim", left, batch.Succeeded, true, map[string]int{"PutItem": 2, "UpdateItem": 1})
	c.proxy.Script("UpdateItem", dynamotest.LoseReply)
	c.deliver("completion", left, batch.Succeeded, true, map[string]int{"PutItem": 1, "UpdateItem": 2})
	c.deliver("completion", left, batch.Replayed, false, map[string]int{"PutItem": 1})
	c.work = func() error { return errors.New("no") }
	c.proxy.Script("DeleteItem", dynamotest.LoseReply)
	c.deliver("release", left, batch.Failed, true, map[string]int{"PutItem": 1, "DeleteItem": 2})
	c.work = nil
	c.deliver("release", left, batch.Succeeded, true, map[string]int{"PutItem": 1, "UpdateItem": 1})
}
