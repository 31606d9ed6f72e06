package batch

import (
	"context"
	"log/slog"
)

// Hook is any value that implements at least one of the interfaces whose names begin with On. A hook is called on the
// goroutine that does the work, so it is safe for concurrent use, and quick: one that blocks holds up the answer, past
// the deadline if need be. It changes nothing that it is given. A panic in it is logged and goes no further.
type Hook any

// OnBatchStarted is a Hook that is called before the first record of a batch is started.
type OnBatchStarted interface {
	OnBatchStarted(ctx context.Context, records []Record)
}

// OnRecordFinished is a Hook that is called once for each record, when its outcome is known and before Process
// returns. It keeps no reference to the result.
type OnRecordFinished interface {
	OnRecordFinished(ctx context.Context, result *Result)
}

// OnBatchFinished is a Hook that is called after the last record of a batch is finished. It keeps no reference to the
// report.
type OnBatchFinished interface {
	OnBatchFinished(ctx context.Context, report *Report)
}

func isHook(h Hook) bool {
	switch h.(type) {
	case OnBatchStarted, OnRecordFinished, OnBatchFinished:
		return true
	}
	return false
}

// eachHook calls f with those of the hooks that implement H.
func eachHook[H any](hooks []Hook, logger *slog.Logger, f func(H)) {
	for _, hook := range hooks {
		if h, ok := hook.(H); ok {
			callHook(logger, func() { f(h) })
		}
	}
}

func callHook(logger *slog.Logger, f func()) {
	defer func() {
		if value := recover(); value != nil {
			logSafely(func() { logger.Error("batch hook panicked", "panic", value) })
		}
	}()
	f()
}
