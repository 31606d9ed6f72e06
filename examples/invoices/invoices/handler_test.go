package invoices_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/invoices/billing"
	"github.com/oncekit/oncekit/examples/invoices/internal/shop"
	"github.com/oncekit/oncekit/examples/invoices/invoices"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/mux"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger takes down the IDs of the orders it invoices.
type ledger []string

func (l *ledger) Invoice(_ context.Context, o billing.Order) error {
	*l = append(*l, o.ID)
	return nil
}

// function is the function with a ledger.
type function struct {
	*testing.T
	handler *mux.Mux
	ledger  ledger
	given   []string // to the dead-letter sink, by key
}

func newFunction(t *testing.T, optFns ...func(*invoices.Options)) *function {
	t.Helper()
	f := &function{T: t}
	guard, err := invoices.NewGuard(idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	options := append([]func(*invoices.Options){func(o *invoices.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
			f.given = append(f.given, r.Key)
			return nil
		}
	}}, optFns...)
	if f.handler, err = invoices.NewHandler(&f.ledger, guard, options...); err != nil {
		t.Fatal(err)
	}
	return f
}

// event is the event of an order as EventBridge delivers it, from a replay if that has a name.
func event(id, replay string, o billing.Order) []byte {
	return shop.Delivered(shop.Placed(o), id, replay)
}

// byRule invokes the function with an event.
func (f *function) byRule(event []byte) {
	f.Helper()
	answer, err := f.handler.Invoke(f.Context(), event)
	if err != nil || string(answer) != "null" {
		f.Errorf("answer is %s, error %v; want null", answer, err)
	}
}

// byQueue invokes the function with a message that has the event in its body.
func (f *function) byQueue(event []byte) {
	f.Helper()
	answer, err := f.handler.Invoke(f.Context(), sqstest.Payload(sqstest.NewEvent("orders", sqstest.Message{Body: string(event)})))
	if err != nil || string(answer) != `{"batchItemFailures":[]}` {
		f.Errorf("answer is %s, error %v; want no failure", answer, err)
	}
}

// TestDeliveries delivers one order in all the ways there are.
func TestDeliveries(t *testing.T) {
	order := billing.Order{ID: "order-1", Customer: "ada", Amount: 8900, Currency: "EUR"}
	first, again, replayed := event("e1", "", order), event("e2", "", order), event("e1", "replay-1", order)
	for _, test := range []struct {
		name    string
		options func(*invoices.Options)
		deliver func(f *function)
		want    int
	}{
		{
			name: "rule, then queue", deliver: func(f *function) { f.byRule(first); f.byQueue(first) },
			want: 1,
		},
		{
			name: "queue, then rule", deliver: func(f *function) { f.byQueue(first); f.byRule(first) },
			want: 1,
		},
		{
			name: "each twice, and replayed to both", want: 1,
			deliver: func(f *function) {
				for _, payload := range [][]byte{first, first, replayed} {
					f.byRule(payload)
					f.byQueue(payload)
				}
			},
		},
		{
			name: "published twice", deliver: func(f *function) { f.byRule(first); f.byRule(again); f.byQueue(again) },
			want: 1,
		},
		{
			name: "published twice, by event", options: func(o *invoices.Options) { o.Key = invoices.ByEvent },
			deliver: func(f *function) { f.byRule(first); f.byRule(again); f.byQueue(again) },
			want:    2,
		},
		{
			name: "rule, queue and replay, by event", options: func(o *invoices.Options) { o.Key = invoices.ByEvent },
			deliver: func(f *function) { f.byRule(first); f.byQueue(first); f.byRule(replayed); f.byQueue(replayed) },
			want:    1,
		},
		{
			// The queue's handler knows nothing of replays: there the order is the one that is done.
			name: "replays run, each once, by the rule", options: func(o *invoices.Options) { o.RunReplays = true },
			deliver: func(f *function) {
				f.byRule(first)
				f.byQueue(replayed)
				f.byRule(replayed)
				f.byRule(replayed)
				f.byRule(event("e1", "replay-2", order))
			},
			want: 3,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var options []func(*invoices.Options)
			if test.options != nil {
				options = append(options, test.options)
			}
			f := newFunction(t, options...)
			test.deliver(f)
			if len(f.ledger) != test.want {
				t.Errorf("%d invoices were written, want %d", len(f.ledger), test.want)
			}
		})
	}
}

// TestGivenUp delivers what will never get better, by both ways.
func TestGivenUp(t *testing.T) {
	f := newFunction(t)
	free := event("e1", "", billing.Order{ID: "free", Amount: 0})
	f.byRule(free)
	f.byQueue(free)
	f.byRule(event("e2", "", billing.Order{Amount: 100})) // has no id, and so the key of its event
	if diff := cmp.Diff([]string{"free", "free", billing.Source + "#e2"}, f.given); diff != "" {
		t.Errorf("dead-lettered (-want +got):\n%s", diff)
	}
	if len(f.ledger) != 0 {
		t.Errorf("invoiced are %q, want none", f.ledger)
	}
}

// TestFailures delivers what fails: EventBridge is told by an error, SQS by the messageId.
func TestFailures(t *testing.T) {
	f := newFunction(t, func(o *invoices.Options) { o.DeadLetter = nil })
	free := event("e1", "", billing.Order{ID: "free", Amount: 0})
	_, err := f.handler.Invoke(t.Context(), free)
	if failed := new(batch.FailedError); !errors.As(err, &failed) || !batch.IsPermanent(err) {
		t.Errorf("error is %v, want a *batch.FailedError that is permanent", err)
	}
	message := sqstest.NewEvent("orders",
		sqstest.Message{Body: string(free)}, sqstest.Message{Body: `{"id":"order-1","amount":100}`}, // the second is no event
		sqstest.Message{Body: string(event("e2", "", billing.Order{ID: "order-2", Amount: 100}))})
	answer, err := f.handler.Invoke(t.Context(), sqstest.Payload(message))
	if err != nil {
		t.Fatal(err)
	}
	want := events.SQSEventResponse{}
	for _, m := range message.Records[:2] {
		want.BatchItemFailures = append(want.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
	}
	var got events.SQSEventResponse
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ledger{"order-2"}, f.ledger); diff != "" {
		t.Errorf("invoiced (-want +got):\n%s", diff)
	}
}

// TestOtherSources: what comes from elsewhere is refused, not taken for done.
func TestOtherSources(t *testing.T) {
	f := newFunction(t)
	for _, payload := range []string{`{"Records":[{"eventSource":"aws:kinesis"}]}`, `{"id":"order-1","amount":100}`} {
		if _, err := f.handler.Invoke(t.Context(), []byte(payload)); err == nil || !strings.HasPrefix(err.Error(), "mux: ") {
			t.Errorf("%s: error is %v, want one of mux", payload, err)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	guard, err := invoices.NewGuard(idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	_, err = invoices.NewHandler(new(ledger), guard, func(o *invoices.Options) { o.Concurrency = -1 })
	if err == nil || strings.Count(err.Error(), "Concurrency") != 2 {
		t.Errorf("error is %v, want one that names Concurrency for both sources", err)
	}
}

// TestKeyLife: what comes again after a month, out of the archive or a dead-letter queue, is still known.
func TestKeyLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t)
		order := event("e1", "", billing.Order{ID: "order-1", Amount: 100})
		f.byRule(order)
		time.Sleep(invoices.KeyLife - time.Minute)
		f.byRule(order)
		f.byQueue(order)
		if len(f.ledger) != 1 {
			t.Errorf("%d invoices were written, want 1", len(f.ledger))
		}
		time.Sleep(2 * time.Minute)
		if f.byQueue(order); len(f.ledger) != 2 {
			t.Errorf("%d invoices were written, want another one after the key's life", len(f.ledger))
		}
	})
}
