//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

// cpuTime returns how much CPU time this process has used, in user and in system mode.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("comparison: getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
