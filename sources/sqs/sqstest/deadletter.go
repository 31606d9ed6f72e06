package sqstest

import "time"

// deadLetter moves an entry to the dead-letter queue. The message keeps its ID and its receive count. A standard
// queue keeps the time sent as well; a FIFO queue takes the time of the move, and the original message ID as
// deduplication ID. The caller holds q.mu. That two queues' mutexes are held here cannot deadlock: a dead-letter
// queue is made before the queue it serves, so there is no way back.
func (q *Queue) deadLetter(e *entry, now time.Time) {
	q.remove(e)
	e.message.deadLettered = now
	q.stats.DeadLettered++

	to := q.options.DeadLetter
	to.mu.Lock()
	defer to.mu.Unlock()
	moved := to.byID[e.message.id] // a copy that came before
	if moved == nil {
		to.accepted++
		moved = newMessage(e.message.Message, e.message.id, e.message.sentAt)
		moved.origin = q
		if to.fifo {
			moved.sentAt = now
			moved.DeduplicationID = moved.id
			moved.sequence = to.newSequence()
		}
	}
	to.stats.Sent++
	to.put(&entry{message: moved, visibleAt: now, earlier: e.earlier + e.receives, first: e.first})
}

// Redrive moves the visible messages of a dead-letter queue back to the queues that they came from, as
// StartMessageMoveTask does, and returns how many. They come as new messages there: with new message IDs, the present
// as the time sent, and a receive count that begins again. What was sent to the dead-letter queue directly stays.
func (q *Queue) Redrive() int {
	q.mu.Lock()
	now := time.Now()
	var moved []*message
	next := q.entries.Front()
	for element := next; element != nil; element = next {
		next = element.Next()
		e := element.Value.(*entry)
		if e.message.origin == nil || e.visibleAt.After(now) {
			continue
		}
		q.remove(e)
		e.message.deleted = now
		q.stats.Deleted++
		moved = append(moved, e.message)
	}
	q.mu.Unlock()

	for _, m := range moved {
		m.origin.redriven(m.Message, now)
	}
	return len(moved)
}

func (q *Queue) redriven(m Message, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Sent++
	q.put(&entry{message: q.accept(m, now), visibleAt: now})
}
