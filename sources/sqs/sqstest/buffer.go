package sqstest

import "sync"

// buffers holds the memory of events that were handled, for the next ones.
type buffers struct {
	mu   sync.Mutex
	free [][]byte
}

// put keeps an event's memory for the next one.
func (b *buffers) put(payload []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, payload)
}

// get returns memory for an event, that of an earlier one if possible.
func (b *buffers) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) == 0 {
		return nil
	}
	last := len(b.free) - 1
	payload := b.free[last]
	b.free = b.free[:last]
	return payload[:0]
}
