package pipeline

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// AgeWarning warns once, in the life of a handler, of a record that is older than its key lives: a redelivery of it may
// run again.
type AgeWarning struct {
	life   time.Duration
	warned atomic.Bool
}

// NewAgeWarning returns the warning for keys that live that long, or, if they outlive all records anyway, as 0 says, one
// that never warns.
func NewAgeWarning(life time.Duration) *AgeWarning { return &AgeWarning{life: life} }

// Wanted reports whether Check would do anything.
func (w *AgeWarning) Wanted() bool { return w.life > 0 && !w.warned.Load() }

// Check warns if the record, which the source took in at that time, is too old. A zero time means that this is unknown.
func (w *AgeWarning) Check(logger *slog.Logger, record string, at time.Time) {
	if !w.Wanted() || at.IsZero() || time.Since(at) <= w.life || w.warned.Swap(true) {
		return
	}
	Warn(logger, "record is older than its idempotency key lives, so a redelivery may run again",
		"record", record, "arrived", at, "expiry", w.life)
}

// Warn logs. Without a logger that goes to slog.Default(); one that panics loses its line, and that is all.
func Warn(logger *slog.Logger, message string, args ...any) {
	defer func() { _ = recover() }()
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn(message, args...)
}
