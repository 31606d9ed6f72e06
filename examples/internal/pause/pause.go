// Package pause waits, as long as there is someone to wait for.
package pause

import (
	"context"
	"time"
)

// For waits for d, or returns why ctx has ended before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
