package sqstest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// completions is a store that remembers which completions it has applied.
type completions struct {
	idempotency.Store
	applied log[string]
}

func (c *completions) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	err := c.Store.Complete(ctx, r)
	if err == nil {
		c.applied.add(r.Key)
	}
	return err
}

func (c *completions) has(key string) bool {
	for _, applied := range c.applied.all() {
		if applied == key {
			return true
		}
	}
	return false
}

// The queue against the real guard: whatever crashes and comes twice, every message's work is done, none is done again
// once its completion has reached the store, and it is only repeated where a crash or a fault kept the completion away.
func TestGuardedHandler(t *testing.T) {
	var repeats, crashes, duplicates int // over all seeds: a single one may be a lucky run
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			throttled := lambdatest.Randomly(seed+100, .05)
			q := newQueue(t, "orders", func(o *sqstest.Options) {
				o.Seed, o.Concurrency, o.DuplicateProbability = seed+1, 3, .2
				o.Crash = lambdatest.Randomly(seed, .02)
				o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
					if throttled(p) {
						return lambdatest.Fault{Err: errThrottled, Latency: 100 * time.Millisecond}
					}
					return lambdatest.Fault{Latency: time.Millisecond}
				}
			})
			store := &completions{Store: idempotency.NewMemoryStore()}
			guard, err := idempotency.New("orders", q.Store(store), func(o *idempotency.Options) {
				o.Expiry = 24 * time.Hour
				o.Logger = slog.New(slog.DiscardHandler)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				send(t, q, sqstest.Message{Body: fmt.Sprint(i)})
			}
			var effects log[string]
			drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
				_, err := idempotency.Do(ctx, guard, m.MessageId, func(ctx context.Context) (struct{}, error) {
					lambdatest.Checkpoint(ctx, "before "+m.Body)
					if store.has("orders#" + m.MessageId) {
						t.Errorf("seed %d: message %s is worked on after its completion was stored", seed, m.Body)
					}
					effects.add(m.Body)
					time.Sleep(10 * time.Millisecond)
					lambdatest.Checkpoint(ctx, "after "+m.Body)
					return struct{}{}, nil
				})
				return err
			}))
			worked := make(map[string]int)
			for _, body := range effects.all() {
				worked[body]++
			}
			for _, h := range q.Histories() {
				if h.Deleted.IsZero() || worked[h.Message.Body] == 0 {
					t.Errorf("seed %d: message %s is lost: %+v", seed, h.Message.Body, h)
				}
			}
			stats := q.Stats()
			repeats += len(effects.all()) - len(worked)
			crashes += stats.Crashes
			duplicates += stats.Duplicates
		})
	}
	if repeats < 5 || crashes < 5 || duplicates < 5 {
		t.Errorf("%d repeats, %d crashes, %d duplicates, want at least 5 each", repeats, crashes, duplicates)
	}
}

// One invocation at a time, and one seed: every run is the same.
func TestRunIsRepeatable(t *testing.T) {
	run := func() (deliveries []sqstest.Delivery) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, "orders", func(o *sqstest.Options) {
				o.Seed, o.DuplicateProbability = 7, .2
				o.Crash = lambdatest.Randomly(7, .02)
				o.Observe = func(d sqstest.Delivery) { deliveries = append(deliveries, d) }
			})
			for i := range 60 {
				send(t, q, sqstest.Message{Body: fmt.Sprint(i)})
			}
			drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
				lambdatest.Checkpoint(ctx, m.Body)
				time.Sleep(time.Millisecond)
				return nil
			}))
			if q.Stats().Crashes == 0 {
				t.Error("no crash, want some")
			}
		})
		return deliveries
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("deliveries of two runs (-first +second):\n%s", diff)
	}
}
