package idempotency

import (
	"slices"
	"time"
)

// memoryItem is one key with what is held for it.
type memoryItem struct {
	key    string
	entry  Entry
	second *memorySecond
	index  int // in second.items
}

// memorySecond holds the items that expire in the same second. Expiries are whole seconds, so a busy store has far
// fewer of them than items: a queue of seconds costs a claim next to nothing where one of items costs it most of its time.
type memorySecond struct {
	epoch int64
	items []*memoryItem // in any order
	index int           // in the queue
}

// memoryQueue is a heap of seconds, the earliest in front.
type memoryQueue []*memorySecond

func (q memoryQueue) Len() int           { return len(q) }
func (q memoryQueue) Less(i, j int) bool { return q[i].epoch < q[j].epoch }

func (q memoryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *memoryQueue) Push(x any) {
	in := x.(*memorySecond)
	in.index = len(*q)
	*q = append(*q, in)
}

func (q *memoryQueue) Pop() any {
	last := len(*q) - 1
	in := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return in
}

// free reports whether a claim at now may have the key.
func (it *memoryItem) free(now time.Time, skew time.Duration) bool {
	if it.entry.Status == InProgress && !it.entry.Lease.IsZero() {
		return it.entry.Lease.UnixMilli()+skew.Milliseconds() < now.UnixMilli()
	}
	return it.expired(now)
}

func (it *memoryItem) expired(now time.Time) bool { return it.entry.Expiry.Unix() < now.Unix() }

// released reports whether the entry is kept only for its count of attempts.
func (it *memoryItem) released() bool {
	return it.entry.Status == InProgress && it.entry.Owner == "" && it.entry.Lease.Equal(time.UnixMilli(0))
}

func (it *memoryItem) copy() Entry {
	e := it.entry
	e.Data = slices.Clone(e.Data)
	return e
}

func wholeMilliseconds(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }
func wholeSeconds(t time.Time) time.Time      { return time.Unix(t.Unix(), 0) }
