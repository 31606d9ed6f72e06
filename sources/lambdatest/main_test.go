package lambdatest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errNo        = errors.New("no")
	errThrottled = errors.New("throttled")
)

func newFunction(t *testing.T, o lambdatest.FunctionOptions) *lambdatest.Function {
	t.Helper()
	f := lambdatest.NewFunction(o)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// invoke invokes h with the event and waits until the invocation has ended.
func invoke(t *testing.T, f *lambdatest.Function, e lambdatest.Event, h lambdatest.HandlerFunc) lambdatest.Result {
	t.Helper()
	results := make(chan lambdatest.Result)
	f.Start(t.Context(), h, e, func(r lambdatest.Result) { results <- r })
	return <-results
}

// nothing is an event of which the handler under test reads nothing.
var nothing lambdatest.Event

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
