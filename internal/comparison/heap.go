package main

import (
	"runtime/metrics"
	"time"
)

// heapPeak looks at the heap every two milliseconds.
type heapPeak struct {
	stop, stopped chan struct{}
	heap, limited int64
}

func startHeapPeak() *heapPeak {
	h := &heapPeak{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(h.stopped)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			h.look()
			select {
			case <-ticker.C:
			case <-h.stop:
				h.look()
				return
			}
		}
	}()
	return h
}

func (h *heapPeak) look() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	h.heap = max(h.heap, value(0))
	// What GOMEMLIMIT limits (https://pkg.go.dev/runtime/debug#SetMemoryLimit).
	h.limited = max(h.limited, value(1)-value(2))
}

// end returns the most that was seen.
func (h *heapPeak) end() (heap, limited int64) {
	close(h.stop)
	<-h.stopped
	return h.heap, h.limited
}
