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

// invoke invokes the handler and checks how many messages are reported as failed, and the number of requests.
func (c *counted) invoke(t *testing.T, messages []message, failed, most int) {
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
	requests, total := c.proxy.Requests(), 0
	for _, n := range requests {
		total += n
	}
	if total > most {
		t.Errorf("%d requests for %d messages, want at most %d: %v", total, len(messages), most, requests)
	}
}

// What whole batches cost in requests to DynamoDB. Calls for many are the default.
func TestRequestsToDynamoDB(t *testing.T) {
	if inBulk {
		return // its stores are its own
	}
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	table := dynamotest.Table(t, client)
	run := func(name string, test func(t *testing.T, c *counted)) {
		t.Run(name, func(t *testing.T) { test(t, &counted{proxy: proxy, client: client, table: table, namespace: name}) })
	}
	run("calls for many", func(t *testing.T, c *counted) {
		// 40 for claims, 40 for completions, and groups that were not full, which are more where the machine is busy.
		c.invoke(t, numbered(1000), 0, 100)
		c.invoke(t, numbered(1000), 0, 60) // 40 that are refused, 10 that say why
		c.askFirst = idempotency.AskFirstAlways
		c.invoke(t, numbered(1000), 0, 14)
	})
	run("single calls", func(t *testing.T, c *counted) {
		c.single = true
		c.invoke(t, numbered(100), 0, 200)
		c.invoke(t, numbered(100), 0, 100)
	})
	run("failures", func(t *testing.T, c *counted) {
		c.fails = true
		c.invoke(t, numbered(1000), 1000, 100)
		c.fails = false
		c.invoke(t, numbered(1000), 0, 100)
	})
	run("conflicts", func(t *testing.T, c *counted) {
		var held []idempotency.Request
		for _, m := range numbered(100) {
			held = append(held, idempotency.Request{Key: m.ID})
		}
		claims, errs := c.guard(t).ClaimAll(t.Context(), held)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		c.invoke(t, numbered(100), 100, 15)
		for _, claim := range claims {
			if err := claim.Release(t.Context()); err != nil {
				t.Errorf("the claim was not its owner's any more: %v", err)
			}
		}
	})
	// A group never holds two records of a lane. It is not full then, and costs no more than its records would.
	run("lanes", func(t *testing.T, c *counted) {
		var messages []message
		for i := range 50 {
			messages = append(messages, message{ID: fmt.Sprint("m", i), Body: "b", Group: fmt.Sprint("g", i%5), ARN: fifoARN})
		}
		c.invoke(t, messages, 0, 100)
		c.invoke(t, messages, 0, 100)
	})
}
