package main

import (
	"errors"
	"fmt"
)

// memoryConfig says what to look at the memory of.
type memoryConfig struct {
	size int    // of the batch
	few  int    // invocations after which the peak is noted
	many int    // and after which it should be the same
	max  string // GOMEMLIMIT
}

// memoryUse is how much memory a client had at most after a number of invocations, in bytes.
type memoryUse struct {
	invocations             int
	heap, limited, resident int64
}

// memoryResult is what measureMemory found.
type memoryResult struct {
	eventBytes int
	few, many  memoryUse
}

// measureMemory has a client handle one large batch after the other, each new one twice, so that every other invocation
// is a replay.
func (c *comparison) measureMemory() (r memoryResult, err error) {
	client, _, err := c.start(bulk, "GOMEMLIMIT="+c.memory.max)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, client.close()) }()
	var use memoryUse
	var d delivery
	for use.invocations = 1; use.invocations <= c.memory.many; use.invocations++ {
		replay := use.invocations%2 == 0
		handled := 0
		if !replay {
			if d, err = c.newDelivery(1, c.memory.size); err != nil {
				return r, err
			}
			handled = d.size
		}
		j := job{Events: d.file, Time: invocationTime, Ending: succeeds, Sample: true}
		u, _, err := c.measure(client, j, handled, 0)
		if err != nil {
			return r, fmt.Errorf("comparison: GOMEMLIMIT=%s, invocation %d: %w", c.memory.max, use.invocations, err)
		}
		use.heap, use.limited, use.resident = max(use.heap, u.Heap), max(use.limited, u.Limited), u.Resident
		if use.invocations == c.memory.few {
			r.few = use
		}
		if use.invocations == c.memory.many {
			r.many = use
		}
	}
	r.eventBytes = d.eventBytes
	return r, nil
}
