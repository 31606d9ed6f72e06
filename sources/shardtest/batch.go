package shardtest

import (
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// batch is what one invocation gets, until it is done with. It comes again as it is, as what is left of it, or in parts.
type batch[R any] struct {
	records   []*record[R]
	attempts  int           // how often it was delivered, or the batch that it is a part of
	failures  int           // of those, how many failed and are counted as retries
	stalls    int           // how often in a row it has failed without becoming smaller
	delay     time.Duration // before the next delivery
	notBefore time.Time     // when that is
	final     bool          // the last of its window
}

const (
	// firstDelay is how long a batch waits that has failed and comes again as it was. The wait doubles each time, up to
	// longestDelay. AWS backs off too, and does not document how long. What is left of a batch that has failed in part,
	// and the parts of one that was split, come at once.
	firstDelay   = 100 * time.Millisecond
	longestDelay = 10 * time.Second

	// maxStalls stops a Drain that would never end. A batch that fails for ever takes no time at all under
	// testing/synctest.
	maxStalls = 1000
)

// overhead is an upper bound of what the event has around its records and a window's state.
const overhead = 1024

// again makes the batch wait before it is delivered as it was.
func (b *batch[R]) again(now time.Time) {
	b.stalls++
	b.delay = min(max(firstDelay, 2*b.delay), longestDelay)
	b.notBefore = now.Add(b.delay)
}

// progress makes the batch, which has become smaller, be delivered at once.
func (b *batch[R]) progress() {
	b.stalls, b.delay, b.notBefore = 0, 0, time.Time{}
}

// halves returns the two parts of a batch that is split.
func (b *batch[R]) halves() (first, second *batch[R]) {
	b.progress()
	one, two := *b, *b
	middle := (len(b.records) + 1) / 2
	one.records, two.records = b.records[:middle], b.records[middle:]
	one.final = false
	return &one, &two
}

// take returns the batch that the lane is to deliver now, or nil: then next is when to look again, or zero if only a
// change can make a difference. It discards what is too old. The caller holds s.mu.
func (s *Stream[R]) take(l *lane[R], now time.Time) (b *batch[R], next time.Time) {
	for {
		if l.running {
			return nil, time.Time{}
		}
		if len(l.work) == 0 {
			read, next := s.read(l, now)
			if read == nil {
				return nil, next
			}
			l.work = append(l.work, read)
		}
		b := l.work[0]
		if b.notBefore.After(now) {
			return nil, b.notBefore
		}
		s.discardOld(l, b, now)
		if len(b.records) > 0 || b.final {
			return b, time.Time{}
		}
		l.work = l.work[1:]
	}
}

// read reads a batch. It returns nil if there is nothing to read, or if the batch may still fill; next is as in take.
// The caller holds s.mu.
func (s *Stream[R]) read(l *lane[R], now time.Time) (b *batch[R], next time.Time) {
	unread := l.unread()
	if len(unread) == 0 || l.window != nil && !l.window.holds(unread[0].ArrivedAt) {
		return s.finish(l, now)
	}
	// The window that the batch belongs to, which may only be opened below.
	w := l.window
	if w == nil && s.options.TumblingWindow > 0 {
		w = newWindow(unread[0].ArrivedAt, s.options.TumblingWindow)
	}
	size, room := 0, lambdatest.MaxPayload-overhead
	if w != nil {
		room -= maxState
	}
	n := 0
	for n < len(unread) && n < s.options.BatchSize && (w == nil || w.holds(unread[n].ArrivedAt)) {
		if size += len(unread[n].JSON) + 1; size > room && n > 0 {
			break
		}
		n++
	}
	full := n < len(unread) || n == s.options.BatchSize || l.shard.closed
	if window := s.options.BatchingWindow; window > 0 && !full {
		if l.gather.IsZero() {
			l.gather = now.Add(window)
		}
		if now.Before(l.gather) {
			return nil, l.gather
		}
	}
	l.gather = time.Time{}
	// All records before the batch are dealt with. It only makes a difference after Redeliver.
	l.checkpoint = l.lastRead()
	l.next += n
	l.window = w
	return &batch[R]{records: unread[:n:n], final: w != nil && s.over(l, now)}, time.Time{}
}

// discardOld discards the records of a batch that are too old to be delivered, and those that no payload can hold. Those
// are the first ones: a shard's records are in the order of their arrival. The caller holds s.mu.
func (s *Stream[R]) discardOld(l *lane[R], b *batch[R], now time.Time) {
	n := 0
	if limit := s.options.MaximumRecordAge; limit > 0 {
		for n < len(b.records) && now.Sub(b.records[n].ArrivedAt) > limit {
			n++
		}
	}
	s.discard(l, b, n, RecordAgeExceeded, now)
	if len(b.records) == 1 && len(b.records[0].JSON)+l.window.size()+overhead > lambdatest.MaxPayload {
		s.discard(l, b, 1, PayloadTooLarge, now)
	}
}
