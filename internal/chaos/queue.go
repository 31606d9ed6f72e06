//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// message is one that the queue was sent.
type message struct {
	id string
	task
	told    int64 // when a worker first told it as done, epoch milliseconds; 0: none has
	repeats bool  // it will be delivered again when it was told as done
}

// delivery is a copy of a message, which comes again until a worker tells it as done.
type delivery struct {
	*message
	visible time.Time
}

// queue is a queue that never runs empty, until it is closed. Some messages are there twice, at the same time, and some
// come again when they are done.
type queue struct {
	mu       sync.Mutex
	chance   *rand.Rand
	messages []*message
	waiting  []delivery
	inFlight int
	closed   bool
}

func newQueue(seed uint64) *queue { return &queue{chance: rand.New(rand.NewPCG(seed, 1))} }

// close lets no new messages come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// sent returns how many messages the queue was sent.
func (q *queue) sent() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages)
}

// batchSize is how many deliveries a batch has at most.
const batchSize = 25

// receive returns a batch. It waits while nothing is visible, and returns nil when the queue is closed and everything in
// it is done, or when ctx is.
func (q *queue) receive(ctx context.Context) []delivery {
	for ctx.Err() == nil {
		batch, end := q.poll()
		if len(batch) > 0 || end {
			return batch
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

func (q *queue) poll() (batch []delivery, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 1 + q.chance.IntN(batchSize)
	now := time.Now()
	kept := q.waiting[:0]
	for _, d := range q.waiting {
		if len(batch) < size && !now.Before(d.visible) {
			batch = append(batch, d)
		} else {
			kept = append(kept, d)
		}
	}
	q.waiting = kept
	for !q.closed && len(batch) < size {
		m := &message{
			id: "key-" + strconv.Itoa(len(q.messages)+1), task: task{Tx: q.chance.IntN(2) == 0},
			repeats: q.chance.IntN(10) == 0,
		}
		q.messages = append(q.messages, m)
		batch = append(batch, delivery{message: m})
		if q.chance.IntN(10) == 0 {
			q.waiting = append(q.waiting, delivery{message: m}) // for another worker, or this one's next batch
		}
	}
	q.inFlight += len(batch)
	return batch, len(batch) == 0 && q.inFlight == 0 && len(q.waiting) == 0 && q.closed
}

// back takes deliveries back, for others to get within the time. With the time of a lease they are tried while their
// claims live, and after that.
func (q *queue) back(batch []delivery, within time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= len(batch)
	for _, d := range batch {
		q.wait(d, within)
	}
}

func (q *queue) wait(d delivery, within time.Duration) {
	d.visible = time.Now().Add(rand.N(within))
	q.waiting = append(q.waiting, d)
}

// done takes down that messages are told as done. A late answer is one for deliveries that were taken back before.
func (q *queue) done(batch []delivery, late bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !late {
		q.inFlight -= len(batch)
	}
	for _, d := range batch {
		if d.told == 0 {
			d.told = time.Now().UnixMilli()
		}
		if d.repeats && !late {
			d.repeats = false
			q.wait(d, 2*time.Second)
		}
	}
}
