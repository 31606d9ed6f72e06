package idempotency

import "sync"

// ForgetDisabledWarning makes the warning due again that is logged once a process.
func ForgetDisabledWarning() { disabledWarning = sync.Once{} }

// MaxCachedData is the largest result that is cached.
const MaxCachedData = maxCachedData
