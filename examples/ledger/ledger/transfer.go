package ledger

import (
	"fmt"

	"github.com/oncekit/oncekit/batch"
)

// Transfer is an order to move money from one account to another: the body of a message.
type Transfer struct {
	ID     string `json:"id"`
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"` // cents
}

// IdempotencyKey makes the transfer's ID the key, so that it is booked once however often it is sent.
func (t Transfer) IdempotencyKey() string { return t.ID }

// check returns an error for a transfer that trying again does not make better.
func (t Transfer) check() error {
	switch {
	case t.Amount <= 0:
		return batch.Permanent(fmt.Errorf("transfer %s has the amount %d, want more than 0", t.ID, t.Amount))
	case t.From == "" || t.To == "" || t.From == t.To:
		return batch.Permanent(fmt.Errorf("transfer %s is from account %q to %q, want two accounts", t.ID, t.From, t.To))
	}
	return nil
}
