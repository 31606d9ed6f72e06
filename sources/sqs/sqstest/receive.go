package sqstest

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// batch is what one receive takes out of the queue.
type batch struct {
	deliveries []delivery
	messages   []events.SQSMessage
	records    [][]byte // the messages encoded
	// stuck is the ID of a message that was received more than maxReceivesInDrain times, or "".
	stuck string
}

// ids returns the messages' IDs, in the batch's order.
func (b *batch) ids() []string {
	ids := make([]string, len(b.messages))
	for i, m := range b.messages {
		ids[i] = m.MessageId
	}
	return ids
}

// delivery is one entry in a batch, under the receipt handle it was received with.
type delivery struct {
	*entry
	handle string
}

// receive takes up to a batch of messages. It returns nil if none can be received, or if the batch may still fill:
// then *gather, which the caller keeps, is when the batching window ends. The caller holds q.mu.
func (q *Queue) receive(now time.Time, gather *time.Time) *batch {
	found, size := q.visible(now)
	if len(found) == 0 {
		*gather = time.Time{}
		return nil
	}
	if window := q.options.BatchingWindow; window > 0 && len(found) < q.options.BatchSize && size < lambdatest.MaxPayload {
		if gather.IsZero() {
			*gather = now.Add(window)
		}
		if now.Before(*gather) {
			return nil
		}
	}
	*gather = time.Time{}

	b := new(batch)
	size = len(`{"Records":[]}`)
	for len(found) > 0 && len(b.deliveries) < q.options.BatchSize {
		e := found[0]
		found = found[1:]
		first := e.first
		if first.IsZero() {
			first = now
		}
		handle := q.newReceipt()
		m := e.message.event(q, handle, e.earlier+e.receives+1, first)
		r := encode(m)
		if size += len(r) + 1; size > lambdatest.MaxPayload && len(b.deliveries) > 0 {
			break
		}

		delete(q.receipts, e.receipt)
		q.receipts[handle] = e
		e.receipt, e.first, e.received, e.visibleAt = handle, first, now, now.Add(q.options.visibility())
		e.receives++
		e.message.received = append(e.message.received, now)
		q.stats.Receives++
		b.deliveries = append(b.deliveries, delivery{e, handle})
		b.messages = append(b.messages, m)
		b.records = append(b.records, r)
		if e.receives > maxReceivesInDrain {
			b.stuck = e.message.id
		}
		if copied := q.maybeDuplicate(e, now); copied != nil {
			found = slices.Insert(found, 0, copied)
		}
	}
	return b
}

// visible returns the entries that can be received, at most a batch, and the size of their bodies. It sends those
// that were received too often to the dead-letter queue. The caller holds q.mu.
func (q *Queue) visible(now time.Time) (found []*entry, size int) {
	// A group is held up as long as one of its messages is in flight, wherever that stands: an earlier one must not be
	// overtaken, and a later one, which is out because the group's visibility was changed in part, must not be either.
	held := make(map[string]bool)
	if q.fifo {
		for element := q.entries.Front(); element != nil; element = element.Next() {
			if e := element.Value.(*entry); e.inFlight(now) {
				held[e.message.GroupID] = true
			}
		}
	}
	next := q.entries.Front()
	for element := next; element != nil && len(found) < q.options.BatchSize; element = next {
		next = element.Next() // before the entry may be removed
		e := element.Value.(*entry)
		switch {
		case e.visibleAt.After(now), q.fifo && held[e.message.GroupID]:
		case q.options.DeadLetter != nil && e.receives >= q.options.MaxReceiveCount:
			q.deadLetter(e, now)
		default:
			found = append(found, e)
			size += len(e.message.Body)
		}
	}
	return found, size
}

// maybeDuplicate leaves a copy of e behind if the seed says so, and returns it if it belongs into the same batch.
func (q *Queue) maybeDuplicate(e *entry, now time.Time) *entry {
	if q.options.DuplicateProbability == 0 || e.extra {
		return nil
	}
	receive := strconv.Itoa(e.receives)
	if q.seed.Fraction("duplicate", e.message.id, receive) >= q.options.DuplicateProbability {
		return nil
	}
	thirds := 3 * q.seed.Fraction("when", e.message.id, receive)
	delay := time.Duration(max(0, thirds-2) * float64(q.options.visibility()))
	copied := q.duplicate(e.message, e.receives-1, now.Add(delay))
	q.entries.MoveAfter(copied.element, e.element) // no later than what was sent after it
	if thirds < 1 {
		return copied
	}
	return nil
}

// nextVisible returns the first moment after now at which a message becomes visible, or the zero time if there is
// none. The caller holds q.mu.
func (q *Queue) nextVisible(now time.Time) time.Time {
	var next time.Time
	for element := q.entries.Front(); element != nil; element = element.Next() {
		if at := element.Value.(*entry).visibleAt; at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// deleteReceived deletes what was received as d, if SQS would. A standard queue takes the newest receipt handle even
// after the visibility timeout, a FIFO queue only while the message is in flight. An older handle deletes nothing.
// The caller holds q.mu.
func (q *Queue) deleteReceived(d delivery, now time.Time) {
	if d.element == nil || d.receipt != d.handle || q.fifo && !d.inFlight(now) {
		return
	}
	q.remove(d.entry)
	d.message.deleted = now
	q.stats.Deleted++
}
