package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
)

// The environment variables that disable guards: see Options.Disabled.
const (
	DisabledVariable = "ONCEKIT_IDEMPOTENCY_DISABLED"
	// PowertoolsDisabledVariable is the one of Powertools for AWS Lambda:
	// https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#disabling-the-idempotency-utility
	PowertoolsDisabledVariable = "POWERTOOLS_IDEMPOTENCY_DISABLED"
)

// disabledBy returns what disables the guard, or "". A value that is neither true nor false is an error: whoever set it
// meant one of them, and to guess wrong is to run twice, or not to test what was to be tested.
func (o *Options) disabledBy() (string, error) {
	by := ""
	if o.Disabled {
		by = "Options.Disabled"
	}
	var errs []error
	for _, name := range []string{DisabledVariable, PowertoolsDisabledVariable} {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		switch disabled, err := strconv.ParseBool(value); {
		case err != nil:
			errs = append(errs, fmt.Errorf("idempotency: the environment variable %s is %q, want true or false, 1 or 0", name, value))
		case disabled && by == "":
			by = name
		}
	}
	return by, errors.Join(errs...)
}

var disabledWarning sync.Once // a process

// disable makes the options those of a disabled guard. Work without a key runs then, too.
func (o *Options) disable(by string) {
	o.Disabled, o.MissingKey = true, MissingKeyRunsUnprotected
	disabledWarning.Do(func() {
		logger := o.Logger
		if logger == nil {
			logger = slog.Default()
		}
		logger.LogAttrs(context.Background(), slog.LevelWarn, "idempotency is disabled: all work runs unprotected",
			slog.String("by", by))
	})
}
