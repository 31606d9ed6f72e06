package main

import (
	"fmt"
	"time"
)

// target is a limit for something that was measured.
type target struct {
	name  string
	got   float64
	limit float64
	least bool // got may not be less than limit, rather than no more
}

func (t target) met() bool {
	if t.least {
		return t.got >= t.limit
	}
	return t.got <= t.limit
}

// Batch sizes that targets are for.
const (
	targetSize = 1000
	smallSize  = 10
)

// tolerance is how much slower a client may be that is said to be no slower: rounds differ by that.
const tolerance = 0.95

// targets returns those that can be judged by what was measured.
func targets(c config, m measurements) []target {
	var found []target
	for _, latency := range c.latencies {
		found = append(found, targetsAt(latency, m.figures)...)
	}
	if r := m.scenarios["first run"]; r != nil {
		found = append(found,
			target{name: "units, first run, of single", got: ratio(r[bulk].price(), r[single].price()), limit: 1},
			target{
				name: "units, known replay, of single",
				got:  ratio(m.scenarios["duplicates"][bulkAsks].price(), m.scenarios["duplicates"][single].price()), limit: 0.99,
			})
	}
	if m.memory.few.resident > 0 {
		found = append(found, target{
			name: fmt.Sprintf("peak memory after %d invocations, of that after %d", m.memory.many.invocations, m.memory.few.invocations),
			got:  ratio(float64(m.memory.many.resident), float64(m.memory.few.resident)), limit: 1.1,
		})
	}
	return found
}

// targetsAt returns the targets for one latency.
func targetsAt(latency time.Duration, results map[setting]figures) []target {
	var found []target
	of := func(client string, size int, replay bool) (figures, bool) {
		f, ok := results[setting{latency: latency, replay: replay, size: size, client: client}]
		return f, ok
	}
	add := func(name string, got, limit float64, least bool) {
		found = append(found, target{name: fmt.Sprintf("%s, %v more latency", name, latency), got: got, limit: limit, least: least})
	}
	hand, ok := of(handWritten, targetSize, false)
	if ok {
		b, _ := of(bulk, targetSize, false)
		add("CPU, first run, of hand-written", ratio(b.cpu, hand.cpu), 0.17, false)
		add("allocations, first run, of hand-written", ratio(b.allocations, hand.allocations), 0.10, false)
		add("requests a record, first run", b.requests, 0.09, false)
	}
	hand, ok = of(handWritten, targetSize, true)
	if ok {
		b, _ := of(bulkAsks, targetSize, true)
		add("CPU, replay, asking first, of hand-written", ratio(b.cpu, hand.cpu), 0.08, false)
		add("allocations, replay, asking first, of hand-written", ratio(b.allocations, hand.allocations), 0.09, false)
		add("requests a record, replay, asking first", b.requests, 0.012, false)
	}
	for _, replay := range []bool{false, true} {
		name, client := "first run", bulk
		if replay {
			name, client = "replay, asking first", bulkAsks
		}
		if s, ok := of(single, smallSize, replay); ok {
			b, _ := of(client, smallSize, replay)
			add(fmt.Sprintf("records/s of single, batches of %d, %s", smallSize, name),
				ratio(b.recordsPerSecond, s.recordsPerSecond), tolerance, true)
		}
	}
	return found
}

// ratio returns a/b, and more than any limit where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1e9
	}
	return a / b
}
