//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/deploytest"
	"github.com/oncekit/oncekit/examples/orders/shop"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/rietest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// deployed is the Lambda function under the emulator, with a table on a DynamoDB-compatible server.
type deployed struct {
	*testing.T
	function *rietest.Function
	posted   int
}

func deploy(t *testing.T, bootstrap string, timeout time.Duration, env ...string) *deployed {
	t.Helper()
	return &deployed{T: t, function: deploytest.Start(t, bootstrap, timeout, env...)}
}

// warmUp starts the function's process. A machine that is so busy that this takes longer than the function's timeout
// gets another chance: no test is about the start.
func (d *deployed) warmUp() {
	d.Helper()
	const attempts = 5
	for attempt := 1; ; attempt++ {
		failed, err := d.post(sqstest.Payload(event(order("last-0"))))
		switch {
		case err == nil && len(failed) == 0:
			return
		case err != nil && !errors.Is(err, rietest.ErrTimeout), attempt == attempts:
			d.Fatalf("the function does not start: error %v, failed %q", err, failed)
		}
	}
}

// post hands an event to the function and returns the messageIds that it names as failed.
func (d *deployed) post(payload []byte) ([]string, error) {
	d.Helper()
	d.posted++
	response, err := d.function.Post(d.Context(), payload)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(response, []byte(`{"batchItemFailures":[`)) {
		d.Fatalf("response is %s, want batchItemFailures", response)
	}
	var parsed events.SQSEventResponse
	if err := json.Unmarshal(response, &parsed); err != nil {
		d.Fatal(err)
	}
	var failed []string
	for _, f := range parsed.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed, nil
}

// mustPost is post for events that the function answers.
func (d *deployed) mustPost(payload []byte) []string {
	d.Helper()
	failed, err := d.post(payload)
	if err != nil {
		d.Fatal(err)
	}
	return failed
}

// charges returns how often the function has charged each order up to now.
func (d *deployed) charges() map[string]int {
	d.Helper()
	last := fmt.Sprintf("last-%d", d.posted) // one more order is charged, to wait for
	if failed := d.mustPost(sqstest.Payload(event(order(last)))); len(failed) > 0 {
		d.Fatalf("order %s failed", last)
	}
	return deploytest.Logged(d.T, d.function, "charged order=", last, "last-")
}

func order(id string) shop.Order {
	return shop.Order{ID: id, Customer: "ada@example.com", Amount: 8900, Currency: "EUR", Card: "card_of_ada"}
}

func event(orders ...shop.Order) events.SQSEvent {
	var messages []sqstest.Message
	for _, o := range orders {
		body, err := json.Marshal(o)
		if err != nil {
			panic(err) // it is made of text and numbers
		}
		messages = append(messages, sqstest.Message{Body: string(body)})
	}
	return sqstest.NewEvent("orders", messages...)
}

// again returns the event of the messages that failed, as SQS delivers them the next time.
func again(e events.SQSEvent, failed []string) events.SQSEvent {
	var next events.SQSEvent
	for _, r := range e.Records {
		if slices.Contains(failed, r.MessageId) {
			n, _ := strconv.Atoi(r.Attributes["ApproximateReceiveCount"])
			r.Attributes["ApproximateReceiveCount"] = strconv.Itoa(n + 1)
			r.ReceiptHandle += "again"
			next.Records = append(next.Records, r)
		}
	}
	return next
}

func messageIDs(e events.SQSEvent) []string {
	var ids []string
	for _, r := range e.Records {
		ids = append(ids, r.MessageId)
	}
	return ids
}

func TestLambda(t *testing.T) {
	bootstrap := rietest.Build(t, "./lambda")

	t.Run("delivered twice", func(t *testing.T) {
		d := deploy(t, bootstrap, 10*time.Second)
		e := event(order("order-1"), order("order-2"), order("order-3"))
		want := map[string]int{"order-1": 1, "order-2": 1, "order-3": 1}
		for _, delivery := range []events.SQSEvent{e, again(e, messageIDs(e))} {
			if failed := d.mustPost(sqstest.Payload(delivery)); len(failed) > 0 {
				t.Errorf("failed: %q, want none", failed)
			}
			if diff := cmp.Diff(want, d.charges()); diff != "" {
				t.Errorf("charges (-want +got):\n%s", diff)
			}
		}
	})

	t.Run("one broken record", func(t *testing.T) {
		d := deploy(t, bootstrap, 10*time.Second)
		e := event(order("order-1"), order("order-2"), order("order-3"))
		e.Records[1].Body = `{"id":`
		if diff := cmp.Diff([]string{e.Records[1].MessageId}, d.mustPost(sqstest.Payload(e))); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"order-1": 1, "order-3": 1}, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
		file, err := os.ReadFile("testdata/event.json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{brokenID, declinedID}, d.mustPost(file)); diff != "" {
			t.Errorf("testdata/event.json: failed (-want +got):\n%s", diff)
		}
	})

	// The table claims the order, and the answer hangs. That would leave the claim undecided, but for the SDK's second attempt,
	// which is refused by what the first one wrote.
	t.Run("a hung store call", func(t *testing.T) {
		proxy := dynamotest.NewProxy(t)
		d := deploy(t, bootstrap, 10*time.Second, "AWS_ENDPOINT_URL_DYNAMODB="+proxy.URL)
		d.warmUp()
		proxy.Requests()
		proxy.Script("PutItem", dynamotest.DelayReply(time.Minute))
		if failed := d.mustPost(sqstest.Payload(event(order("order-1")))); len(failed) > 0 {
			t.Errorf("failed: %q, want none", failed)
		}
		if got := proxy.Requests()["PutItem"]; got < 2 {
			t.Errorf("%d claims were sent, want the one that hung and another", got)
		}
		if diff := cmp.Diff(map[string]int{"order-1": 1}, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
	})

	t.Run("a hung order", func(t *testing.T) {
		// The answer goes out at 3.25 s, halfway between Reserve and the timeout, so that a busy machine has time for all of
		// it. By default Reserve would be a tenth of the timeout.
		const timeout = 4 * time.Second
		d := deploy(t, bootstrap, timeout, "RESERVE=1500ms")
		d.warmUp()
		hung := order("order-2")
		hung.Card = shop.CardBankDown(time.Now().Add(time.Hour))
		e := event(order("order-1"), hung, order("order-3"), order("order-4"))
		started := time.Now()
		failed := d.mustPost(sqstest.Payload(e)) // an error if the function runs into its timeout
		if diff := cmp.Diff([]string{e.Records[1].MessageId}, failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		t.Logf("answered after %v, with a timeout of %v", time.Since(started).Round(time.Millisecond), timeout)
		if diff := cmp.Diff(map[string]int{"order-1": 1, "order-3": 1, "order-4": 1}, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
		if !strings.Contains(d.function.Logs(), "outcome=abandoned") {
			t.Error("no line says that the hung order was abandoned")
		}
	})

	// Two orders are done, ten hang in all the workers there are, and four have not begun when Lambda kills the process.
	t.Run("killed at the timeout", func(t *testing.T) {
		const timeout = 3 * time.Second
		d := deploy(t, bootstrap, timeout, "RESERVE=-1ms")
		d.warmUp()
		var orders []shop.Order
		want := make(map[string]int)
		started := time.Now()
		// A claim is held until its lease, which is the dead process's deadline, and Skew (1 s by default) are over.
		held := started.Add(timeout + time.Second)
		bankUp := held.Add(time.Second)
		for i := range 16 {
			o := order(fmt.Sprintf("order-%d", i+1))
			if i >= 2 && i < 12 {
				o.Card = shop.CardBankDown(bankUp)
			}
			orders = append(orders, o)
			want[o.ID] = 1
		}
		e := event(orders...)
		if _, err := d.post(sqstest.Payload(e)); !errors.Is(err, rietest.ErrTimeout) {
			t.Fatalf("error is %v, want %v", err, rietest.ErrTimeout)
		}
		// Nothing was answered, so everything comes back, until the claims of the dead process have run out and longer.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed, sawHeld := messageIDs(e), false
		for len(failed) > 0 {
			e = again(e, failed)
			next, err := d.post(sqstest.Payload(e))
			if errors.Is(err, rietest.ErrTimeout) && ctx.Err() == nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			// On a machine that took more than a second to start the process again there is nothing to see here.
			if len(failed) == 16 && time.Now().Before(held) {
				if len(next) < 10 || len(next) > 14 { // claims run ahead of the workers
					t.Errorf("the first answer names %d messages, want the 10 that hung, and of the 4 not begun those that were claimed", len(next))
				}
				sawHeld = true
			}
			failed = next
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%d messages keep failing", len(failed))
			}
		}
		// By now what the function has printed before is here.
		if diff := cmp.Diff(want, d.charges()); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
		switch {
		case !sawHeld:
			t.Log("the machine is too slow to see that a message is in progress elsewhere")
		case !strings.Contains(d.function.Logs(), `outcome="in progress"`):
			t.Error("no line says that a message was in progress elsewhere")
		}
	})
}
