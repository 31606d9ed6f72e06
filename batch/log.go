package batch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// logSafely calls f, which logs. A logger that panics loses its line, and that is all.
func logSafely(f func()) {
	defer func() { _ = recover() }()
	f()
}

// logResult writes the line of a record that is not done, or that is done in a way someone should know of. The skipped
// ones are logged for debugging only: each says no more than the summary does, and there may be thousands.
func logResult(ctx context.Context, logger *slog.Logger, r *Result) {
	level := slog.LevelError
	switch {
	case r.Unrecorded, r.Outcome == DeadLettered, r.Outcome == InProgress:
		level = slog.LevelWarn
	case r.Outcome.Done():
		return
	case r.Outcome == Skipped:
		level = slog.LevelDebug
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("record", r.Record.ID), slog.String("outcome", r.Outcome.String()))
	if r.Record.Source != "" {
		attrs = append(attrs, slog.String("source", r.Record.Source))
	}
	if r.Record.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", r.Record.Attempt))
	}
	if r.Unrecorded {
		attrs = append(attrs, slog.Bool("unrecorded", true))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	if p, ok := errors.AsType[*PanicError](r.Err); ok && len(p.Stack) > 0 {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	message := "record failed"
	if r.Outcome.Done() || r.Outcome == InProgress || r.Outcome == Skipped {
		message = "record " + r.Outcome.String()
	}
	logger.LogAttrs(ctx, level, message, attrs...)
}

// logKeys makes keys of outcomes that log queries take without quotes.
var logKeys = strings.NewReplacer(" ", "_", "-", "_")

// logReport writes the summary of a batch: at Info if something failed, at Debug if all is well, since what is logged
// costs money.
func logReport(ctx context.Context, logger *slog.Logger, r *Report) {
	level := slog.LevelDebug
	if r.Failed() > 0 || r.unrecorded > 0 {
		level = slog.LevelInfo
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.Int("records", len(r.Results)), slog.Int("failed", r.Failed()), slog.Duration("duration", r.Duration)}
	for o, count := range r.counts {
		if count > 0 && Outcome(o) != Failed {
			attrs = append(attrs, slog.Int(logKeys.Replace(outcomeNames[o]), count))
		}
	}
	if r.unrecorded > 0 {
		attrs = append(attrs, slog.Int("unrecorded", r.unrecorded))
	}
	logger.LogAttrs(ctx, level, "batch finished", attrs...)
}
