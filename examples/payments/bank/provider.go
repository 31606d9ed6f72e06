// Package bank charges cards, with nothing of Lambda, HTTP or oncekit in it.
package bank

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
)

// Charge is what is taken from a card.
type Charge struct {
	// Key is the same whenever the same charge is asked for. Real providers charge once for each; those of this example
	// do not, so that every call is seen.
	Key      string
	Card     string // the provider's token for it
	Amount   int64  // in the smallest unit of the currency
	Currency string
}

// Provider charges cards. Charge returns the number of a receipt. An error other than ErrDeclined means that nobody knows
// whether the card was charged.
type Provider interface {
	Charge(ctx context.Context, c Charge) (receipt string, err error)
}

// ErrDeclined means that the card was not charged, and never will be.
var ErrDeclined = errors.New("bank: card was declined")

// CardDeclined is the card that every provider declines.
const CardDeclined = "card_declined"

// CardKill returns the card that kills the process of FakeProvider before the given time, as if it had run out of memory
// in the middle of the charge.
func CardKill(until time.Time) string { return cardKill + strconv.FormatInt(until.UnixMilli(), 10) }

const cardKill = "card_kill_until_"

// FakeProvider charges nobody. It logs a line for each charge that a real provider would have made.
type FakeProvider struct{}

// Charge logs the charge, unless its card is one of the test cards.
func (FakeProvider) Charge(ctx context.Context, c Charge) (string, error) {
	if c.Card == CardDeclined {
		return "", ErrDeclined
	}
	if text, ok := strings.CutPrefix(c.Card, cardKill); ok {
		until, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fmt.Errorf("bank: card is %q, want milliseconds after %s", c.Card, cardKill)
		}
		if time.Now().Before(time.UnixMilli(until)) {
			os.Exit(1)
		}
	}
	slog.InfoContext(ctx, "charged", "card", c.Card, "amount", c.Amount, "currency", c.Currency, "key", c.Key)
	return "receipt-" + rand.Text(), nil
}
