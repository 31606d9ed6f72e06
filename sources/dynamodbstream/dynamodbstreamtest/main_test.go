package dynamodbstreamtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNo = errors.New("no")

// newTable returns a table with the partition key id and the sort key line.
func newTable(t *testing.T, options ...func(*dynamodbstreamtest.Options)) *dynamodbstreamtest.Table {
	t.Helper()
	table, err := dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id", Sort: "line"}, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// item is an item with a key and a value.
func item(id, line, value string) dynamodbstreamtest.Item {
	return dynamodbstreamtest.Item{
		"id": events.NewStringAttribute(id), "line": events.NewNumberAttribute(line), "value": events.NewStringAttribute(value),
	}
}

// key is the key of an item.
func key(id, line string) dynamodbstreamtest.Item {
	return dynamodbstreamtest.Item{"id": events.NewStringAttribute(id), "line": events.NewNumberAttribute(line)}
}

// changed returns a function that fails the test if a change has failed.
func changed(t *testing.T) func(c dynamodbstreamtest.Change, err error) dynamodbstreamtest.Change {
	return func(c dynamodbstreamtest.Change, err error) dynamodbstreamtest.Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func drain(t *testing.T, table *dynamodbstreamtest.Table, h lambdatest.Handler) {
	t.Helper()
	if err := table.Drain(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// inOrder stops at the first record for which fn returns an error, and reports that.
func inOrder(fn func(ctx context.Context, r events.DynamoDBEventRecord) error) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var answer events.DynamoDBEventResponse
		for _, r := range event.Records {
			if fn(ctx, r) != nil {
				answer.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: r.Change.SequenceNumber}}
				break
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
