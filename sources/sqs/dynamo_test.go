package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// counted is a handler whose guard keeps its claims in DynamoDB, and whose requests are counted where they arrive.
type counted struct {
	proxy     *dynamotest.Proxy
	client    *dynamodb.Client
	table     string
	namespace string
	single    bool // calls for one, by option
	askFirst  idempotency.AskFirst
	fails     bool
}

func (c *counted) guard(t *testing.T) *idempotency.Guard {
	t.Helper()
	store := dynamostore.New(c.client, c.table, func(o *dynamostore.Options) { o.SingleCalls = c.single })
	guard, err := idempotency.New(c.namespace, store, func(o *idempotency.Options) {
		o.AskFirst, o.Logger = c.askFirst, discard()
	})
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// invoke invokes the handler, checks how many messages are reported as failed, and returns the number of requests.
func (c *counted) invoke(t *testing.T, messages []message, failed int) int {
	t.Helper()
	guard := c.guard(t)
	h := newHandler(t, func(context.Context, *sqs.Message[string]) error {
		if c.fails {
			return errors.New("no")
		}
		return nil
	}, func(o *sqs.Options) { o.Idempotency = guard })
	c.proxy.Requests()
	response, err := h.Invoke(t.Context(), event(messages...))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(answer(t, response)); got != failed {
		t.Errorf("%d messages are reported as failed, want %d", got, failed)
	}
	total := 0
	for _, n := range c.proxy.Requests() {
		total += n
	}
	return total
}

// What whole batches cost in requests to DynamoDB. Calls for many are the default.
func TestRequestsToDynamoDB(t *testing.T) {
	if inBulk {
		return // its stores are its own
	}
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	table := dynamotest.Table(t, client)
	// run compares the requests of a test's batches with what they may be. On a busy machine workers are held up and groups
	// go out that are not full: the fewest of ten runs count, and the first run that has no more is the last.
	run := func(name string, most []int, test func(t *testing.T, c *counted) []int) {
		t.Run(name, func(t *testing.T) {
			var fewest []int
			for i := range 10 {
				c := &counted{proxy: proxy, client: client, table: table, namespace: fmt.Sprint(name, i)}
				got := test(t, c)
				for k := range fewest {
					got[k] = min(got[k], fewest[k])
				}
				if fewest = got; !exceeds(got, most) {
					return
				}
			}
			t.Errorf("requests of the batches are %v, want at most %v", fewest, most)
		})
	}
	many := func(n int) func(*testing.T, *counted) []int {
		return func(t *testing.T, c *counted) []int {
			first, again := c.invoke(t, numbered(n), 0), c.invoke(t, numbered(n), 0)
			c.askFirst = idempotency.AskFirstAlways
			return []int{first, again, c.invoke(t, numbered(n), 0)}
		}
	}
	// 40 for claims, 40 for completions, and groups that were not full; 40 that are refused, 10 that say why; 10 and a first
	// one that is smaller.
	run("calls for many", []int{90, 60, 12}, many(1000))
	// One for claims, one for completions; one that is refused, one that says why; one that asks.
	run("calls for ten", []int{2, 2, 1}, many(10))
	run("single calls", []int{200, 100}, func(t *testing.T, c *counted) []int {
		c.single = true
		return []int{c.invoke(t, numbered(100), 0), c.invoke(t, numbered(100), 0)}
	})
	run("failures", []int{90, 90}, func(t *testing.T, c *counted) []int {
		c.fails = true
		failed := c.invoke(t, numbered(1000), 1000)
		c.fails = false
		return []int{failed, c.invoke(t, numbered(1000), 0)}
	})
	run("conflicts", []int{15}, func(t *testing.T, c *counted) []int {
		var held []idempotency.Request
		for _, m := range numbered(100) {
			held = append(held, idempotency.Request{Key: m.ID})
		}
		claims, errs := c.guard(t).ClaimAll(t.Context(), held)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		refused := c.invoke(t, numbered(100), 100)
		for _, claim := range claims {
			if err := claim.Release(t.Context()); err != nil {
				t.Errorf("the claim was not its owner's any more: %v", err)
			}
		}
		return []int{refused}
	})
	// A group never holds two records of a lane. It is not full then, and costs no more than its records would.
	run("lanes", []int{100, 100}, func(t *testing.T, c *counted) []int {
		var messages []message
		for i := range 50 {
			messages = append(messages, message{ID: fmt.Sprint("m", i), Body: "b", Group: fmt.Sprint("g", i%5), ARN: fifoARN})
		}
		return []int{c.invoke(t, messages, 0), c.invoke(t, messages, 0)}
	})
}

func exceeds(got, most []int) bool {
	for k := range got {
		if got[k] > most[k] {
			return true
		}
	}
	return false
}
