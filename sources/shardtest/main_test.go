package shardtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNo = errors.New("no")

// stream is a kit: its records are names, which are their sequence numbers too, and whose first letter is their lane.
type stream struct {
	*shardtest.Stream[string]
	kit *shardtest.Kit[string]
	t   *testing.T

	mu         sync.Mutex
	deliveries []shardtest.Delivery[string]
}

// newStream returns a stream with the shard "s".
func newStream(t *testing.T, options ...func(*shardtest.Options)) *stream {
	t.Helper()
	s := &stream{t: t}
	o := shardtest.Defaults()
	for _, option := range options {
		option(&o)
	}
	var err error
	s.kit, err = shardtest.New(shardtest.Config[string]{
		Kit: "kit", Name: `stream "letters"`, ARN: "arn:letters", Observe: s.observe,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Stream = s.kit.Stream
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.open("s")
	return s
}

func (s *stream) observe(d shardtest.Delivery[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append(s.deliveries, d)
}

func (s *stream) observed() []shardtest.Delivery[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]shardtest.Delivery[string](nil), s.deliveries...)
}

func (s *stream) write(fn func(w shardtest.Writer[string])) {
	s.t.Helper()
	if err := s.kit.Write(func(w shardtest.Writer[string]) error { fn(w); return nil }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stream) open(id string, parents ...string) {
	s.t.Helper()
	s.write(func(w shardtest.Writer[string]) { w.Open(id, parents...) })
}

func (s *stream) closeShard(id string) {
	s.t.Helper()
	s.write(func(w shardtest.Writer[string]) { w.CloseShard(id) })
}

// put puts the names, which are separated by spaces, into a shard.
func (s *stream) put(shard, names string) {
	s.t.Helper()
	s.write(func(w shardtest.Writer[string]) {
		for name := range strings.FieldsSeq(names) {
			w.Append(shard, shardtest.Record[string]{
				SequenceNumber: name, Lane: name[:1], ArrivedAt: time.Now(), Event: name, JSON: fmt.Appendf(nil, "%q", name),
			})
		}
	})
}

func (s *stream) drain(h lambdatest.Handler) {
	s.t.Helper()
	if err := s.Drain(s.t.Context(), h); err != nil {
		s.t.Fatal(err)
	}
}

// run delivers for the given time.
func (s *stream) run(d time.Duration, h lambdatest.Handler) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if err := s.Run(ctx, h); err != nil {
		s.t.Error(err)
	}
}

// log returns what was delivered when: a line for each invocation in the order of their ends, with the seconds since
// start at which it started.
func (s *stream) log(start time.Time) []string {
	var lines []string
	for _, d := range s.observed() {
		lines = append(lines, fmt.Sprintf("%v %s", d.Started.Sub(start).Seconds(), strings.Join(d.Records, " ")))
	}
	return lines
}

// batches is log without the times.
func (s *stream) batches() []string {
	var lines []string
	for _, d := range s.observed() {
		lines = append(lines, strings.Join(d.Records, " "))
	}
	return lines
}

// event is what the handlers of these tests get.
type event struct {
	Records []string
	Window  *struct {
		Start, End time.Time
	}
	State                   json.RawMessage
	ShardID                 string `json:"shardId"`
	EventSourceARN          string `json:"eventSourceARN"`
	IsFinalInvokeForWindow  bool   `json:"isFinalInvokeForWindow"`
	IsWindowTerminatedEarly bool   `json:"isWindowTerminatedEarly"`
}

// handler is fn as a handler.
func handler(fn func(ctx context.Context, e event) (string, error)) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var e event
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, err
		}
		answer, err := fn(ctx, e)
		return []byte(answer), err
	}
}

// succeed is a handler that does nothing.
var succeed = handler(func(context.Context, event) (string, error) { return "", nil })

// inOrder stops at the first record for which fn returns an error, and reports that.
func inOrder(fn func(name string) error) lambdatest.HandlerFunc {
	return handler(func(_ context.Context, e event) (string, error) {
		for _, name := range e.Records {
			if fn(name) != nil {
				return report(name), nil
			}
		}
		return "", nil
	})
}

// poison is inOrder with a record that never succeeds.
func poison(bad string) lambdatest.HandlerFunc {
	return inOrder(func(name string) error {
		if name == bad {
			return errNo
		}
		return nil
	})
}

// failWith is a handler that returns an error as long as the batch has the record.
func failWith(bad string) lambdatest.HandlerFunc {
	return handler(func(_ context.Context, e event) (string, error) {
		for _, name := range e.Records {
			if name == bad {
				return "", errNo
			}
		}
		return "", nil
	})
}

// report is an answer that names the records.
func report(names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, name))
	}
	return `{"batchItemFailures":[` + strings.Join(items, ",") + `]}`
}
