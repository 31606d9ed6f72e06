//go:build !unix

package main

import (
	"errors"
	"time"
)

// cpuTime returns an error: there is no getrusage.
func cpuTime() (time.Duration, error) {
	return 0, errors.New("comparison: CPU time can be measured on Unix only")
}
