package stream

import (
	"errors"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// Validate returns what is wrong with the options that all streams have, for a handler of records or of windows.
func Validate(source string, options *batch.Options, guard *idempotency.Guard, keys payload.KeyOptions, windows bool) error {
	errs := []error{options.Validate()}
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(source+": "+format, args...))
	}
	if options.MaxAttempts > 0 && (guard == nil || !guard.Options().CountAttempts) {
		add("Options.MaxAttempts is %d, but nobody counts attempts, want a guard with idempotency.Options.CountAttempts, or 0",
			options.MaxAttempts)
	}
	errs = append(errs, keys.Validate(source)...)
	for _, name := range keys.Names() {
		switch {
		case windows:
			add("%s is set, want none in a handler of windows: their records have no keys", name)
		case guard == nil:
			add("%s is set, but Options.Idempotency is nil, want a guard or neither", name)
		}
	}
	if windows && options.Concurrency > 1 {
		add("Options.Concurrency is %d, want 0 or 1 in a handler of windows: records are folded one after the other",
			options.Concurrency)
	}
	return errors.Join(errs...)
}
