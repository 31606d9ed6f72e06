//go:build unix

package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/deploytest"
	"github.com/oncekit/oncekit/examples/ledger/ledger"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/rietest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// TestLambda delivers a transfer twice, and after the first time the same one in a message of its own.
func TestLambda(t *testing.T) {
	bootstrap := rietest.Build(t, "./lambda")
	client := dynamotest.Client(t)
	book := ledger.Book{Client: client, Table: dynamotest.Table(t, client)}
	for _, account := range []string{"A", "B"} {
		if err := book.Open(t.Context(), account, 100); err != nil {
			t.Fatal(err)
		}
	}
	function := deploytest.Start(t, bootstrap, 10*time.Second, "BOOK_TABLE="+book.Table)
	body, err := json.Marshal(ledger.Transfer{ID: "transfer-1", From: "A", To: "B", Amount: 30})
	if err != nil {
		t.Fatal(err)
	}
	message := sqstest.Message{Body: string(body)}
	first := sqstest.Payload(sqstest.NewEvent("transfers", message))
	for _, payload := range [][]byte{first, first, sqstest.Payload(sqstest.NewEvent("transfers", message))} {
		response, err := function.Post(t.Context(), payload)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(response), `{"batchItemFailures":[]}`; got != want {
			t.Errorf("response is %s, want %s", got, want)
		}
		for account, want := range map[string]ledger.Account{
			"A": {Balance: 70, Debits: 1}, "B": {Balance: 130, Credits: 1},
		} {
			got, err := book.Account(t.Context(), account)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("account %s (-want +got):\n%s", account, diff)
			}
		}
	}
}
