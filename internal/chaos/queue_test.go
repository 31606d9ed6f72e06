//go:build linux

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestQueue has a worker that does half of what it gets, until the queue is closed and empty.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		received := make(map[string]int)
		for rounds := 0; ; rounds++ {
			if rounds == 100 {
				q.close()
			}
			batch := q.receive(t.Context())
			if batch == nil {
				break
			}
			for _, d := range batch {
				received[d.id]++
			}
			half := len(batch) / 2
			q.done(batch[half:], false)
			q.back(batch[:half], time.Second)
		}
		twice := 0
		for _, m := range q.messages {
			if m.told == 0 || received[m.id] == 0 {
				t.Errorf("%s was received %d times and told as done at %d", m.id, received[m.id], m.told)
			}
			if received[m.id] > 1 {
				twice++
			}
		}
		if q.sent() < 100 || len(received) != q.sent() || twice == 0 {
			t.Errorf("%d messages, %d received, %d of them more than once", q.sent(), len(received), twice)
		}
	})
}

// TestLateAnswer tells a message as done that was taken back before. It comes again all the same.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		batch := q.receive(t.Context())
		q.close()
		q.back(batch, time.Second)
		q.done(batch, true)
		left := len(q.waiting)
		for again := q.receive(t.Context()); again != nil; again = q.receive(t.Context()) {
			left -= len(again)
			for _, d := range again {
				d.repeats = false
			}
			q.done(again, false)
		}
		if left != 0 || q.inFlight != 0 {
			t.Errorf("%d deliveries have not come again, %d are in flight", left, q.inFlight)
		}
	})
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if batch := newQueue(1).receive(ctx); batch != nil {
		t.Errorf("batch is %v, want none", batch)
	}
}
