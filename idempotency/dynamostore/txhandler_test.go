package dynamostore_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/sources/sqs"
)

// TestTxHandler has a handler that uses a transaction for every second message of a batch, one of which is cancelled. Those
// without one are completed in groups, as ever.
func TestTxHandler(t *testing.T) {
	g := newLedger(t, layouts()[0])
	g.lease = time.Minute
	client := g.proxy.Client(t)
	if _, err := g.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &g.accounts, Item: itemOf("entry")}); err != nil {
		t.Fatal(err)
	}
	handler, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[int]) error {
		tx := dynamostore.Tx(ctx)
		switch {
		case m.Body%2 == 1:
			return nil
		case m.Body == 10:
			return tx.Put(g.entry()) // whose condition fails
		default:
			return errors.Join(tx.Put(put(g.accounts, strconv.Itoa(m.Body))), tx.ConditionCheck(absent(g.accounts, "closed")))
		}
	}, func(o *sqs.Options) {
		o.Idempotency = g.newGuard(t, client)
		o.Concurrency = 50
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	var event events.SQSEvent
	for i := range 50 {
		event.Records = append(event.Records, events.SQSMessage{MessageId: "m" + strconv.Itoa(i), Body: strconv.Itoa(i)})
	}
	for delivery := range 2 {
		g.proxy.Requests()
		response, err := handler.Handle(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "m10"}}}
		if diff := cmp.Diff(want, response); diff != "" {
			t.Errorf("delivery %d: answer (-want +got):\n%s", delivery, diff)
		}
		requests := g.proxy.Requests()
		commits := 25
		if delivery == 1 {
			commits = 1 // of the message that comes back
		}
		if requests["TransactWriteItems"] != commits || requests["UpdateItem"] > 10 {
			t.Errorf("delivery %d: requests are %v; want %d transactions, and the others in groups", delivery, requests, commits)
		}
	}
	for i := range 50 {
		booked := len(g.account(t, strconv.Itoa(i))) > 0
		if want := i%2 == 0 && i != 10; booked != want {
			t.Errorf("message %d: booked is %t; want %t", i, booked, want)
		}
	}
}
