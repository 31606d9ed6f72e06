package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// job is what a client process is asked to do, as a line of JSON.
type job struct {
	Events string        // a file of SQS events, one a line, which are handled one after the other
	Time   time.Duration // how long each invocation has
	Ending ending        // what the handler does with a message
	Sample bool          // look at the heap all the time; costs CPU time
}

// ending is how a handler ends.
type ending string

const (
	succeeds ending = "succeeds"
	fails    ending = "fails"
	waits    ending = "waits" // until its context ends, and fails then
)

// usage is what a job took, as a line of JSON.
type usage struct {
	Error       string // what went wrong; nothing else is set then
	Seconds     float64
	CPU         float64 // seconds of CPU time, in user and system mode
	Allocations uint64
	Handled     int   // how often the handler was called
	Failed      int   // how many messages were told as failed
	Resident    int64 // the most memory that the process had so far, in bytes: VmHWM of proc(5); 0 where it is not known
	Heap        int64 // the most bytes that objects took while the job ran, of those looked at
	Limited     int64 // the same of what GOMEMLIMIT limits
}

// lines returns the lines of a file.
func lines(name string) ([][]byte, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("comparison: %w", err)
	}
	return bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n")), nil
}

// resident returns usage.Resident of this process.
func resident() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err == nil {
				return kilobytes << 10
			}
		}
	}
	return 0
}
