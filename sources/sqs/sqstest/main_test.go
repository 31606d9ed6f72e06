package sqstest_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newQueue(t *testing.T, name string, options ...func(*sqstest.Options)) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(name, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func send(t *testing.T, q *sqstest.Queue, messages ...sqstest.Message) []string {
	t.Helper()
	var ids []string
	for _, m := range messages {
		id, err := q.Send(m)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func drain(t *testing.T, q *sqstest.Queue, h lambdatest.Handler) {
	t.Helper()
	if err := q.Drain(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// each is the handler that people write by hand: it calls fn for one record after the other and reports what failed.
// A FIFO handler must not go on after a failure; this one does, which no test here minds.
func each(fn func(ctx context.Context, m events.SQSMessage) error) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, m := range event.Records {
			if err := fn(ctx, m); err != nil {
				answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return json.Marshal(answer)
	}
}

// log is a list that goroutines can add to.
type log[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *log[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *log[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.items...)
}

// calls is a store that lists the calls it gets.
type calls struct{ log[string] }

func (c *calls) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	c.add("Claim " + r.Key)
	return idempotency.ClaimResult{Claimed: true, Entry: idempotency.Entry{Owner: r.Owner}}, nil
}

func (c *calls) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	c.add("Complete " + r.Key)
	return nil
}

func (c *calls) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	c.add("Release " + r.Key)
	return nil
}

func (c *calls) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	c.add("Renew " + r.Key)
	return nil
}

// since returns a function that returns the whole seconds since now.
func since() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}

func bodies(messages []events.SQSMessage) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return all
}
