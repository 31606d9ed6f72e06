package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Provider charges orders. Real ones take an idempotency key and charge once for each; the providers of this example do
// not, so that every call of Charge is seen.
type Provider interface {
	Charge(ctx context.Context, o Order) error
}

// ErrDeclined means that the card's bank will never pay.
var ErrDeclined = errors.New("shop: card was declined")

// ErrBankDown means that the card's bank did not answer.
var ErrBankDown = errors.New("shop: bank did not answer")

// CardDeclined is the card that every provider declines.
const CardDeclined = "card_declined"

// CardBankDown returns the card of a bank that does not answer before the given time. FakeProvider waits for it that
// long and heeds no context, as an HTTP client does that was made without either.
func CardBankDown(until time.Time) string {
	return cardBankDown + strconv.FormatInt(until.UnixMilli(), 10)
}

const cardBankDown = "card_bank_down_until_"

// FakeProvider charges nobody. It logs a line for each order that a real provider would have charged.
type FakeProvider struct {
	Logger *slog.Logger // nil: slog.Default()
}

// Charge logs the order, unless its card is one of the two test cards.
func (p FakeProvider) Charge(ctx context.Context, o Order) error {
	if o.Card == CardDeclined {
		return fmt.Errorf("%w: %s", ErrDeclined, o.ID)
	}
	if text, ok := strings.CutPrefix(o.Card, cardBankDown); ok {
		until, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("shop: card is %q, want milliseconds after %s", o.Card, cardBankDown)
		}
		if wait := time.Until(time.UnixMilli(until)); wait > 0 {
			time.Sleep(wait)
			return fmt.Errorf("%w: %s", ErrBankDown, o.ID)
		}
	}
	logger := p.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.InfoContext(ctx, "charged", "order", o.ID, "amount", o.Amount, "currency", o.Currency)
	return nil
}
