package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		started := time.Now()
		if err := For(ctx, 20*time.Second); err != nil || time.Since(started) != 20*time.Second {
			t.Errorf("error %v after %v, want none after 20s", err, time.Since(started))
		}
		if err := For(ctx, time.Hour); !errors.Is(err, cause) || time.Since(started) != time.Minute {
			t.Errorf("error %v after %v, want %v after 1m", err, time.Since(started), cause)
		}
	})
}
