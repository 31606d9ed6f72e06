//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/deploytest"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/examples/invoices/internal/shop"
	"github.com/oncekit/oncekit/internal/rietest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// deployed is the Lambda function under the emulator, with a table on a DynamoDB-compatible server.
type deployed struct {
	*testing.T
	function *rietest.Function
	letters  *deploytest.Letters
	posted   int
}

func deploy(t *testing.T, bootstrap string, timeout time.Duration, runReplays bool) *deployed {
	t.Helper()
	letters := deploytest.NewLetters(t)
	env := append(letters.Env(), fmt.Sprint("RUN_REPLAYS=", runReplays))
	return &deployed{T: t, letters: letters, function: deploytest.Start(t, bootstrap, timeout, env...)}
}

// byRule hands an event to the function as a rule does, and returns the function's error.
func (d *deployed) byRule(event []byte) error {
	d.Helper()
	d.posted++
	answer, err := d.function.Post(d.Context(), event)
	if err == nil && string(answer) != "null" {
		d.Errorf("answer is %s, want null", answer)
	}
	return err
}

// mustByRule is byRule for what the function can do.
func (d *deployed) mustByRule(event []byte) {
	d.Helper()
	if err := d.byRule(event); err != nil {
		d.Fatal(err)
	}
}

// byQueue hands messages with these events to the function as a queue does, and returns which it names as failed.
func (d *deployed) byQueue(events ...[]byte) (failed []int) {
	d.Helper()
	d.posted++
	var messages []sqstest.Message
	for _, e := range events {
		messages = append(messages, sqstest.Message{Body: string(e)})
	}
	batch := sqstest.NewEvent("orders", messages...)
	answer, err := d.function.Post(d.Context(), sqstest.Payload(batch))
	if err != nil || !bytes.HasPrefix(answer, []byte(`{"batchItemFailures":[`)) {
		d.Fatalf("answer is %s, error %v; want batchItemFailures", answer, err)
	}
	for i, r := range batch.Records {
		if bytes.Contains(answer, []byte(r.MessageId)) {
			failed = append(failed, i)
		}
	}
	return failed
}

// check checks how often the function has invoiced each order up to now.
func (d *deployed) check(want map[string]int) {
	d.Helper()
	last := fmt.Sprintf("last-%d", d.posted) // one more order is invoiced, to wait for
	d.mustByRule(event(last, "", order(last)))
	if diff := cmp.Diff(want, deploytest.Logged(d.T, d.function, "invoiced order=", last, "last-")); diff != "" {
		d.Errorf("invoices (-want +got):\n%s", diff)
	}
}

func order(id string) billing.Order {
	return billing.Order{ID: id, Customer: "ada@example.com", Amount: 8900, Currency: "EUR"}
}

// event is the event of an order as EventBridge delivers it, from a replay if that has a name.
func event(id, replay string, o billing.Order) []byte {
	return shop.Delivered(shop.Placed(o), id, replay)
}

func TestLambda(t *testing.T) {
	bootstrap := rietest.Build(t, "./lambda")

	t.Run("by both ways", func(t *testing.T) {
		d := deploy(t, bootstrap, 20*time.Second, false)
		one, two, again := event("e1", "", order("order-1")), event("e2", "", order("order-2")), event("e3", "", order("order-2"))
		d.mustByRule(one)
		d.check(map[string]int{"order-1": 1})
		if failed := d.byQueue(one, two); failed != nil {
			t.Errorf("messages %d failed, want none", failed)
		}
		want := map[string]int{"order-1": 1, "order-2": 1}
		d.check(want)
		// Each again: the second of its orders, the events of both, and the one that was published twice.
		for _, delivery := range [][]byte{one, two, again, event("e1", "replay-1", order("order-1"))} {
			d.mustByRule(delivery)
			if failed := d.byQueue(delivery); failed != nil {
				t.Errorf("messages %d failed, want none", failed)
			}
		}
		d.check(want)
	})

	t.Run("replays that run", func(t *testing.T) {
		d := deploy(t, bootstrap, 20*time.Second, true)
		for _, replay := range []string{"", "", "replay-1", "replay-1", "replay-2"} {
			d.mustByRule(event("e1", replay, order("order-1")))
		}
		d.check(map[string]int{"order-1": 3})
	})

	t.Run("broken orders", func(t *testing.T) {
		d := deploy(t, bootstrap, 20*time.Second, false)
		free, broken := order("order-1"), []byte(`{"detail-type":"order placed","source":"com.example.shop","id":"e2","detail":[]}`)
		free.Amount = 0
		d.mustByRule(event("e1", "", free))
		d.mustByRule(broken)
		if failed := d.byQueue(event("e1", "", free), []byte(`{"id":"order-3"}`), event("e4", "", order("order-4"))); !cmp.Equal(failed, []int{1}) {
			t.Errorf("messages %d failed, want the second alone, which is no event", failed)
		}
		d.check(map[string]int{"order-4": 1})
		var got []string
		for _, l := range d.letters.All() {
			got = append(got, l.Key)
		}
		// What cannot be read has no order, and goes by its event.
		if diff := cmp.Diff([]string{"order-1", billing.Source + "#e2", "order-1"}, got); diff != "" {
			t.Errorf("keys of the letters (-want +got):\n%s", diff)
		}
	})

	// The billing system does not answer. The function answers before its timeout even so, with an error, and the order stays
	// held by the handler that still runs. The next attempt by the rule waits for that, and then invoices the order.
	t.Run("a hung order", func(t *testing.T) {
		const timeout = 3 * time.Second
		d := deploy(t, bootstrap, timeout, false)
		d.check(map[string]int{}) // the process has started
		hangs := order("order-1")
		hangs.Customer = billing.CustomerDown(time.Now().Add(timeout + 500*time.Millisecond))
		e := event("e1", "", hangs)
		err := d.byRule(e)
		// On a machine that is too slow Lambda is faster, and the order is held by a process that is dead.
		if failure := new(rietest.FunctionError); !errors.Is(err, rietest.ErrTimeout) &&
			(!errors.As(err, &failure) || failure.Type != "FailedError") {
			t.Fatalf("error is %v, want a FailedError", err)
		}
		for attempt := 1; d.byRule(e) != nil; attempt++ {
			if attempt == 10 {
				t.Fatal("the order keeps failing")
			}
		}
		if failed := d.byQueue(e); failed != nil {
			t.Errorf("messages %d failed, want none", failed)
		}
		d.check(map[string]int{"order-1": 1})
	})
}
