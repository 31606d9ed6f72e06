package kinesistest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNo = errors.New("no")

func newStream(t *testing.T, options ...func(*kinesistest.Options)) *kinesistest.Stream {
	t.Helper()
	s, err := kinesistest.NewStream("clicks", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put puts records whose data is their name and whose partition key is the name's first letter, and returns their
// sequence numbers.
func put(t *testing.T, s *kinesistest.Stream, names ...string) []string {
	t.Helper()
	var numbers []string
	for _, name := range names {
		_, number, err := s.Put(kinesistest.Record{PartitionKey: name[:1], Data: []byte(name)})
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func drain(t *testing.T, s *kinesistest.Stream, h lambdatest.Handler) {
	t.Helper()
	if err := s.Drain(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// inOrder is the handler as it should be written by hand: it calls fn for one record after the other, stops at the first
// failure and reports it.
func inOrder(fn func(ctx context.Context, r events.KinesisEventRecord) error) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.KinesisEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var failed []string
		for _, r := range event.Records {
			if err := fn(ctx, r); err != nil {
				failed = append(failed, r.Kinesis.SequenceNumber)
				break
			}
		}
		return answer(failed...), nil
	}
}

// answer is an answer that reports the identifiers.
func answer(ids ...string) []byte {
	a := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, id := range ids {
		a.BatchItemFailures = append(a.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return b
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
