package batch

import (
	"container/heap"
	"time"
)

// queue orders what workers may start: the ready record with the lowest index first. Almost always that is the next one
// in input order, so the queue is a cursor over the records, with a heap for those that the cursor passed while they
// were blocked by their lane, or held.
type queue struct {
	cursor int
	passed indexHeap // ready records below cursor
	held   heldRecords
}

// indexHeap is a heap of records: the one with the lowest index is at the top. It is written by hand, since
// container/heap would put each index into an interface, which allocates, and where records have lanes most of them pass
// through here.
type indexHeap []int32

// heldRecords is a heap: the one that is due first is at the top. It may hold a whole batch, whose last delivery crashed
// and left its claims behind.
type heldRecords []heldRecord

type heldRecord struct {
	i  int32
	at time.Time
}

func (h heldRecords) Len() int { return len(h) }
func (h heldRecords) Less(a, b int) bool {
	order := h[a].at.Compare(h[b].at)
	return order < 0 || (order == 0 && h[a].i < h[b].i)
}
func (h heldRecords) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *heldRecords) Push(r any)   { *h = append(*h, r.(heldRecord)) }
func (h *heldRecords) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

// lanes links the records of each lane, and blocks all but the first of each.
func (q *queue) lanes(records []Record, items []item) {
	last := index{name: func(i int32) string { return records[i].Lane }}
	for i := range records {
		it := &items[i]
		it.laneNext, it.follower, it.next = -1, -1, -1
		lane := records[i].Lane
		if lane == "" {
			continue
		}
		s := last.find(lane, len(records))
		if s.record > 0 {
			items[s.record-1].laneNext = int32(i)
			it.blocked = true
		}
		s.record = int32(i + 1)
	}
}

// pop removes the ready record with the lowest index, or returns -1.
func (q *queue) pop(items []item) int {
	for len(q.passed) > 0 {
		if i := q.passed.pop(); items[i].phase == phasePending {
			return i
		}
	}
	for q.cursor < len(items) {
		i := q.cursor
		q.cursor++
		if it := &items[i]; it.phase == phasePending && !it.blocked {
			return i
		}
	}
	return -1
}

// ready reports whether pop would return a record.
func (q *queue) ready(items []item) bool {
	for len(q.passed) > 0 && items[q.passed[0]].phase != phasePending {
		q.passed.pop()
	}
	if len(q.passed) > 0 {
		return true
	}
	for ; q.cursor < len(items); q.cursor++ {
		if it := &items[q.cursor]; it.phase == phasePending && !it.blocked {
			return true
		}
	}
	return false
}

// push offers i again if the cursor has passed it.
func (q *queue) push(i int) {
	if i < q.cursor {
		q.passed.push(i)
	}
}

func (h *indexHeap) push(i int) {
	heap := append(*h, int32(i))
	for child := len(heap) - 1; child > 0; {
		parent := (child - 1) / 2
		if heap[parent] <= heap[child] {
			break
		}
		heap[parent], heap[child] = heap[child], heap[parent]
		child = parent
	}
	*h = heap
}

func (h *indexHeap) pop() int {
	heap := *h
	top, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	for parent := 0; ; {
		child := 2*parent + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && heap[right] < heap[child] {
			child = right
		}
		if heap[parent] <= heap[child] {
			break
		}
		heap[parent], heap[child] = heap[child], heap[parent]
		parent = child
	}
	*h = heap
	return int(top)
}

func (q *queue) hold(i int, until time.Time) { heap.Push(&q.held, heldRecord{int32(i), until}) }

// nextHeld returns the held record that is due first, or -1.
func (q *queue) nextHeld() (i int, at time.Time) {
	if len(q.held) == 0 {
		return -1, time.Time{}
	}
	return int(q.held[0].i), q.held[0].at
}

// unhold removes the record that nextHeld returned.
func (q *queue) unhold() { heap.Pop(&q.held) }
