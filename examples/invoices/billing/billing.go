package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// System writes invoices. Each call of Invoice makes a new one, with a number of its own, and sends it to the customer:
// nothing in it notices that there is one already.
type System interface {
	Invoice(ctx context.Context, o Order) error
}

// ErrDown means that the system did not answer.
var ErrDown = errors.New("billing: system did not answer")

// CustomerDown returns a customer for whose orders FakeSystem does not answer before the given time. It waits for that and
// heeds no context, as an HTTP client does that was made without a timeout.
func CustomerDown(until time.Time) string {
	return customerDown + strconv.FormatInt(until.UnixMilli(), 10)
}

const customerDown = "customer-down-until-"

// FakeSystem sends nothing to anybody. It logs a line for each invoice that a real system would have written.
type FakeSystem struct {
	Logger *slog.Logger // nil: slog.Default()
}

// Invoice implements System.
func (s FakeSystem) Invoice(ctx context.Context, o Order) error {
	if text, ok := strings.CutPrefix(o.Customer, customerDown); ok {
		until, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("billing: customer is %q, want milliseconds after %s", o.Customer, customerDown)
		}
		if wait := time.Until(time.UnixMilli(until)); wait > 0 {
			time.Sleep(wait)
			return fmt.Errorf("%w: %s", ErrDown, o.ID)
		}
	}
	logger := s.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.InfoContext(ctx, "invoiced", "order", o.ID, "amount", o.Amount, "currency", o.Currency)
	return nil
}
