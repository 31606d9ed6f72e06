package site

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Journeys are the visitors' ways through the site, page by page. They are only right if each click is appended once,
// and the clicks of a visitor in their order.
type Journeys interface {
	Append(ctx context.Context, c Click) error
}

// PageBroken is a page whose clicks nobody can append, whatever is tried.
const PageBroken = "/broken"

// ErrBroken is what appending such a click returns. It looks like any other error that may be over the next time.
var ErrBroken = errors.New("site: journey was not stored")

// FakeJourneys is nobody's journeys: it says what it would append. Its zero value logs to slog.Default().
type FakeJourneys struct {
	Logger *slog.Logger
}

// Append implements Journeys. It takes as long as a database takes.
func (f FakeJourneys) Append(ctx context.Context, c Click) error {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.Page == PageBroken {
		return ErrBroken
	}
	logger := f.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.InfoContext(ctx, "appended", "click", c.ID, "visitor", c.Visitor, "page", c.Page)
	return nil
}
