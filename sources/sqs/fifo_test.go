package sqs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Case 2: what was not run since an earlier message of its group failed is reported too.
func TestFIFOReportsWhatNeverRan(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{errs: failing("a3")}
		h := newHandler(t, w.handle, options)
		wantFailures(t, t.Context(), h, event(grouped("a1", "a2", "a3", "a4", "a5")...), "a3", "a4", "a5")
		w.wantOrder(t, "a1", "a2", "a3")
	})
}

// Case 3: a failure takes the rest of its own group with it and no other.
func TestFIFOGroupIsolation(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{errs: failing("a1")}
		h := newHandler(t, w.handle, options)
		wantFailures(t, t.Context(), h, event(grouped("a1", "b1", "a2", "b2", "a3")...), "a1", "a2", "a3")
		w.want(t, "a1", "b1", "b2")
	})
}

// Case 3, strict: with StopOnFailure a failure takes the rest of the batch with it.
func TestFIFOStrict(t *testing.T) {
	for _, options := range []func(*sqs.Options){func(*sqs.Options) {}, guarded(t)} {
		w := &worker{errs: failing("a1")}
		h := newHandler(t, w.handle, concurrency(1), options, func(o *sqs.Options) { o.StopOnFailure = true })
		wantFailures(t, t.Context(), h, event(grouped("a1", "b1", "a2", "b2", "a3")...), "a1", "b1", "a2", "b2", "a3")
		w.wantOrder(t, "a1")
	}
}

// Strict with more concurrency: what has begun ends as it ends, what has not is reported.
func TestFIFOStrictConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{errs: failing("a1")}
		w.work = func(_ context.Context, m *sqs.Message[string]) error {
			if time.Sleep(time.Millisecond); m.GroupID() == "b" {
				time.Sleep(time.Second)
			}
			return nil
		}
		h := newHandler(t, w.handle, concurrency(2), func(o *sqs.Options) { o.StopOnFailure = true })
		wantFailures(t, t.Context(), h, event(grouped("a1", "b1", "b2", "c1")...), "a1", "b2", "c1")
		w.want(t, "a1", "b1")
	})
}

// Case 3: a message of a FIFO queue without a group is an order of its own.
func TestFIFOWithoutGroup(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{errs: failing("m1")}
		messages := numbered(3)
		for i := range messages {
			messages[i].ARN = fifoARN
		}
		wantFailures(t, t.Context(), newHandler(t, w.handle, options), event(messages...), "m1")
		w.want(t, "m1", "m2", "m3")
	})
}

// Case 4: on a standard queue a message group is a tenant of a fair queue. It orders nothing and skips nothing. Only the
// suffix .fifo tells a FIFO queue.
func TestFIFOFairQueueIsNone(t *testing.T) {
	for _, arn := range []string{
		standardARN, "", "arn:aws:sqs:us-east-2:123456789012:fifo", "arn:aws:sqs:us-east-2:123456789012:orders.fifo-old",
		"arn:aws:sqs:us-east-2:123456789012:orders.FIFO",
	} {
		synctest.Test(t, func(t *testing.T) {
			var records []string
			for _, m := range grouped("a1", "a2", "a3") {
				records = append(records, strings.Replace(m.record(), fifoARN, arn, 1))
			}
			var begun sync.WaitGroup
			begun.Add(3)
			w := &worker{errs: failing("a1")}
			w.work = func(context.Context, *sqs.Message[string]) error {
				begun.Done()
				begun.Wait() // for the others: a deadlock if they wait for this one
				return nil
			}
			wantFailures(t, t.Context(), newHandler(t, w.handle), rawEvent(records...), "a1")
			w.want(t, "a1", "a2", "a3")
		})
	}
}

// Groups run beside each other, and the messages of one never do.
func TestFIFOGroupsRunBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running := map[string]int{}
		most := 0
		w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
			mu.Lock()
			running[m.GroupID()]++
			if running[m.GroupID()] > 1 {
				t.Errorf("%s ran beside another message of its group", m.ID())
			}
			total := 0
			for _, n := range running {
				total += n
			}
			most = max(most, total)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running[m.GroupID()]--
			mu.Unlock()
			return nil
		}}
		begin := time.Now()
		wantFailures(t, t.Context(), newHandler(t, w.handle), event(grouped("a1", "a2", "b1", "a3", "b2", "c1")...))
		if took := time.Since(begin); most != 3 || took != 3*time.Second {
			t.Errorf("%d messages ran at once and all took %v, want 3 and 3s", most, took)
		}
	})
}

// Every reason for which a message is told as failed stops its group.
func TestFIFOAnyFailureStopsTheGroup(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":       func() error { return errors.New("no") },
		"permanent":   func() error { return batch.Permanent(errors.New("no")) },
		"retry after": func() error { return batch.RetryAfter(time.Minute, errors.New("no")) },
		"panic":       func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				w := &worker{work: func(_ context.Context, m *sqs.Message[string]) error {
					if m.ID() == "a1" {
						return fail()
					}
					return nil
				}}
				wantFailures(t, t.Context(), newHandler(t, w.handle, options), event(grouped("a1", "a2")...), "a1", "a2")
				w.want(t, "a1")
			})
		})
	}
	t.Run("undecodable", func(t *testing.T) {
		a1, a2 := grouped("a1")[0], grouped("a2")[0]
		a1.Body, a2.Body = `{"id":`, `{"id":"2"}`
		h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
			t.Errorf("%s ran", m.ID())
			return nil
		})
		wantFailures(t, t.Context(), h, event(a1, a2), "a1", "a2")
	})
}

// A message that is dead-lettered is done: its group goes on, instead of being dragged to the dead-letter queue with it.
func TestFIFODeadLetterLetsTheGroupGoOn(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var sunk []string
		w := &worker{errs: map[string]error{"a1": batch.Permanent(errors.New("poison")), "a2": errors.New("third time")}}
		messages := grouped("a1", "a2", "a3")
		messages[1].Receives = 3
		h := newHandler(t, w.handle, options, func(o *sqs.Options) {
			o.MaxAttempts = 3
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
				sunk = append(sunk, r.Value.(*sqs.Message[string]).Body) // one at a time: they are of one group
				return nil
			}
		})
		wantFailures(t, t.Context(), h, event(messages...))
		w.wantOrder(t, "a1", "a2", "a3")
		if !slices.Equal(sunk, []string{"a1", "a2"}) {
			t.Errorf("dead-lettered: %v, want a1 and a2", sunk)
		}
	})
}
