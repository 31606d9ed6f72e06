package sqstest

import (
	"container/list"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// ErrNotInFlight means that a receipt handle is not the newest one of a message in flight: the message was deleted,
// or its visibility timeout ran out, or it was received again since. AWS says MessageNotInflight, or that the
// message "does not exist or is not available for visibility timeout change".
var ErrNotInFlight = errors.New("sqstest: no message is in flight under the receipt handle")

const (
	fifoSuffix  = ".fifo"
	region      = "us-east-1"
	account     = "123456789012"
	senderID    = "AIDAIENQZJOLO23YVJ4VO" // the one in the AWS documentation
	dedupWindow = 5 * time.Minute
)

// Queue is an SQS queue in memory, together with the event source mapping that reads it and invokes a handler. It is
// a FIFO queue if its name ends in ".fifo". NewQueue makes one. Its methods are safe for concurrent use.
type Queue struct {
	name     string
	fifo     bool
	options  Options
	seed     lambdatest.Seed
	function *lambdatest.Function

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when something has changed that a waiter could wait for
	closed   bool
	accepted int
	received int
	entries  *list.List // of *entry: every copy held, in the order sent
	receipts map[string]*entry
	messages []*message
	byID     map[string]*message
	dedup    map[string]*message // FIFO: by deduplication ID
	stats    Stats
}

// entry is one copy of a message in the queue.
type entry struct {
	message   *message
	element   *list.Element // nil once the entry has left the queue
	visibleAt time.Time
	received  time.Time // under the newest receipt handle
	receipt   string    // the newest receipt handle, "" before the first receive
	receives  int       // from this queue
	earlier   int       // from the queues that dead-lettered the message
	first     time.Time
	extra     bool // a duplicate; it leaves none behind itself
}

func (e *entry) inFlight(now time.Time) bool { return e.receipt != "" && e.visibleAt.After(now) }

// NewQueue returns an empty queue. The caller closes it. A queue that is made in a testing/synctest bubble belongs to
// the bubble.
//
// The name is checked as AWS does. An option out of its limits is an error that names option, value and limit.
func NewQueue(name string, options ...func(*Options)) (*Queue, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	q := &Queue{
		name:     name,
		fifo:     strings.HasSuffix(name, fifoSuffix),
		changed:  make(chan struct{}),
		entries:  list.New(),
		receipts: make(map[string]*entry),
		byID:     make(map[string]*message),
		dedup:    make(map[string]*message),
	}
	for _, option := range options {
		option(&q.options)
	}
	if err := q.options.resolve(q.fifo); err != nil {
		return nil, err
	}
	q.seed = lambdatest.NewSeed(q.options.Seed)
	q.function = lambdatest.NewFunction(lambdatest.FunctionOptions{
		Timeout: q.options.FunctionTimeout, Crash: q.options.Crash, StoreFault: q.options.StoreFault,
	})
	return q, nil
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// ARN returns the queue's ARN, which is the EventSourceARN of its messages.
func (q *Queue) ARN() string { return "arn:aws:sqs:" + region + ":" + account + ":" + q.name }

// Send puts a message into the queue and returns its message ID. A FIFO queue that was sent a message with the same
// deduplication ID less than 5 minutes ago accepts this one, does not keep it, and returns the ID of the first,
// whether or not that one was deleted in the meantime. A message that SQS would refuse is an error.
func (q *Queue) Send(m Message) (id string, err error) {
	if err := m.check(q.fifo); err != nil {
		return "", err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return "", q.errClosed()
	}
	now := time.Now()
	if q.fifo {
		if twin := q.dedup[m.deduplicationID()]; twin != nil && now.Sub(twin.sentAt) < dedupWindow {
			return twin.id, nil
		}
	}
	sent := q.accept(m, now)
	if q.fifo {
		q.dedup[sent.DeduplicationID] = sent
	}
	q.stats.Sent++
	q.put(&entry{message: sent, visibleAt: now.Add(m.Delay)})
	return sent.id, nil
}

// accept makes m a message of this queue, with an ID and, in a FIFO queue, a sequence number.
func (q *Queue) accept(m Message, now time.Time) *message {
	q.accepted++
	accepted := newMessage(m, q.seed.UUID("message", q.name, strconv.Itoa(q.accepted)), now)
	if q.fifo {
		accepted.DeduplicationID = m.deduplicationID()
		accepted.sequence = q.newSequence()
	}
	return accepted
}

// newSequence returns a sequence number as FIFO queues give them: 20 digits, in steps of 256.
func (q *Queue) newSequence() string { return fmt.Sprintf("18849496%012d", q.accepted*256) }

// newReceipt returns a receipt handle that was not returned before.
func (q *Queue) newReceipt() string {
	q.received++
	d := q.seed.Digest("receipt", q.name, strconv.Itoa(q.received))
	return "AQEB" + base64.StdEncoding.EncodeToString(slices.Concat(d[:], d[:], d[:]))
}

// put adds an entry at the queue's end. The caller holds q.mu.
func (q *Queue) put(e *entry) {
	if q.byID[e.message.id] == nil {
		q.byID[e.message.id] = e.message
		q.messages = append(q.messages, e.message)
	}
	e.element = q.entries.PushBack(e)
	q.broadcast()
}

// remove takes an entry out of the queue. The caller holds q.mu.
func (q *Queue) remove(e *entry) {
	q.entries.Remove(e.element)
	e.element = nil
	delete(q.receipts, e.receipt)
}

// broadcast wakes everyone who waits for a change. The caller holds q.mu.
func (q *Queue) broadcast() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// ChangeVisibility makes a message in flight visible after timeout, counted from now, which is 0 to 12 hours. A
// timeout of 0 makes it visible at once. It returns ErrNotInFlight, and changes nothing, unless receiptHandle is
// that of the newest receive of a message in flight. A timeout that would end later than 12 hours after that receive is
// refused too: changes do not add up to more
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html).
//
// In a FIFO queue a message that is visible again is delivered only when no other message of its group is in flight.
func (q *Queue) ChangeVisibility(ctx context.Context, receiptHandle string, timeout time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !within(timeout, 0, maxVisibilityTimeout) {
		return fmt.Errorf("sqstest: visibility timeout is %v, but must be 0 to 12h", timeout)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	e := q.receipts[receiptHandle]
	if e == nil || !e.inFlight(now) {
		return fmt.Errorf("%w %q", ErrNotInFlight, receiptHandle)
	}
	visibleAt := now.Add(timeout)
	if total := visibleAt.Sub(e.received); total > maxVisibilityTimeout {
		return fmt.Errorf("sqstest: visibility timeout is %v, %v after the receive, but must end within 12h of it; AWS says: "+
			"Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", timeout, now.Sub(e.received))
	}
	e.visibleAt = visibleAt
	q.broadcast()
	return nil
}

// Redeliver adds a second copy of a message to a standard queue, to be delivered at once: although the message is in
// flight, although it was deleted, or in one batch with the first copy if that is still waiting. Standard queues
// deliver at least once, and do all of this.
//
// From then on the copies go their own ways: each has a receipt handle, a visibility timeout and a receive count of
// its own. The receive that the new copy has missed is not counted, so both can say 1.
func (q *Queue) Redeliver(id string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.byID[id]
	switch {
	case q.closed:
		return q.errClosed()
	case q.fifo:
		return fmt.Errorf("sqstest: %q is a FIFO queue and does not redeliver", q.name)
	case m == nil:
		return fmt.Errorf("sqstest: message %q was never in queue %q", id, q.name)
	}
	q.duplicate(m, len(m.received)-1, time.Now())
	return nil
}

// duplicate adds a copy of m that was received before the given number of times. The caller holds q.mu.
func (q *Queue) duplicate(m *message, receives int, visibleAt time.Time) *entry {
	e := &entry{message: m, visibleAt: visibleAt, receives: max(receives, 0), extra: true}
	if e.receives > 0 {
		e.first = m.received[0]
	}
	q.stats.Duplicates++
	q.put(e)
	return e
}

// Store returns a store that belongs to the function that reads the queue: a call within an invocation reaches inner
// only if the invocation is alive, and with the faults of Options.StoreFault. It is the store of
// lambdatest.Function.Store, which says more.
func (q *Queue) Store(inner idempotency.Store) idempotency.Store { return q.function.Store(inner) }

// Close ends the queue and every invocation that still runs, and lets go the goroutines of dead ones that were parked,
// as lambdatest.Function.Close does. It waits until all calls of Invoke and Observe have returned. If one takes 5 seconds
// more, Close gives up with an error that names its messages. Closing twice is allowed.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.broadcast()
	q.mu.Unlock()
	return q.function.Close()
}

// errClosed returns the error of a queue that was closed.
func (q *Queue) errClosed() error {
	return fmt.Errorf("sqstest: queue %q: %w", q.name, lambdatest.ErrClosed)
}
