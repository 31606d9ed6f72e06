package ledger

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/sqs"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// TestHandlers books three transfers twice, two of which cannot be booked. With Tx nothing of these is.
func TestHandlers(t *testing.T) {
	good := Transfer{ID: "good", From: "A", To: "B", Amount: 30}
	poor := Transfer{ID: "poor", From: "A", To: "B", Amount: 1000}
	nowhere := Transfer{ID: "nowhere", From: "A", To: "Z", Amount: 5}
	for _, test := range []struct {
		name       string
		newHandler func(Book, *idempotency.Guard, ...func(*sqs.Options)) (*sqs.Handler[Transfer], error)
		want       map[string]Account
	}{
		{"with Tx", NewHandler, map[string]Account{"A": {70, 1, 0}, "B": {130, 0, 1}}},
		// The debit of the transfer to nowhere is booked each time.
		{"without", NewHandlerWithoutTx, map[string]Account{"A": {60, 3, 0}, "B": {130, 0, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := dynamotest.Client(t)
			book := Book{Client: client, Table: dynamotest.Table(t, client)}
			for account := range test.want {
				if err := book.Open(t.Context(), account, 100); err != nil {
					t.Fatal(err)
				}
			}
			silent := slog.New(slog.NewTextHandler(io.Discard, nil))
			store := dynamostore.New(client, dynamotest.Table(t, client))
			guard, err := idempotency.New("ledger", store, func(o *idempotency.Options) { o.Logger = silent })
			if err != nil {
				t.Fatal(err)
			}
			handler, err := test.newHandler(book, guard, func(o *sqs.Options) { o.Logger = silent })
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				event := newEvent(t, good, poor, nowhere)
				response, err := handler.Handle(t.Context(), event)
				if err != nil {
					t.Fatal(err)
				}
				var failed []string
				for _, f := range response.BatchItemFailures {
					failed = append(failed, f.ItemIdentifier)
				}
				want := []string{event.Records[1].MessageId, event.Records[2].MessageId}
				if diff := cmp.Diff(want, failed); diff != "" {
					t.Errorf("failed (-want +got):\n%s", diff)
				}
			}
			got := make(map[string]Account)
			for account := range test.want {
				if got[account], err = book.Account(t.Context(), account); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("accounts (-want +got):\n%s", diff)
			}
		})
	}
}

func newEvent(t *testing.T, transfers ...Transfer) events.SQSEvent {
	t.Helper()
	var messages []sqstest.Message
	for _, transfer := range transfers {
		body, err := json.Marshal(transfer)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, sqstest.Message{Body: string(body)})
	}
	return sqstest.NewEvent("transfers", messages...)
}

func TestNoSuchAccount(t *testing.T) {
	client := dynamotest.Client(t)
	book := Book{Client: client, Table: dynamotest.Table(t, client)}
	if a, err := book.Account(context.Background(), "A"); err == nil {
		t.Errorf("account is %+v, want an error", a)
	}
}
