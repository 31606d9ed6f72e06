package eventbridgetest

import (
	"container/list"
	"strconv"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// part is one event in work.
type part struct {
	event *event
	json  []byte    // as the function gets it
	since time.Time // put or replayed
}

// work is what is delivered together, until it is done or given up: an event of a rule, a batch of a subscriber, or a copy of
// either. EventBridge has it first. Unless that waits for the function's answer, it hands the work to Lambda's queue, which
// then invokes the function.
type work struct {
	parts   []part
	number  int
	element *list.Element
	queued  bool      // with Lambda
	since   time.Time // when it came to EventBridge, its oldest part, or to Lambda
	retry   time.Time // when it is tried next
	due     time.Time // that, or when it is too old for that
	busy    bool      // is being tried
	call    *call     // the invocation that is waited for, nil if there is none
	extra   bool      // a duplicate; it has none itself

	invocations int
	failures    int   // that use up retries
	throttles   int   // since the last invocation
	err         error // the last failure or throttle
}

func (w *work) ids() []string {
	ids := make([]string, len(w.parts))
	for i, p := range w.parts {
		ids[i] = p.event.id
	}
	return ids
}

// waits reports whether EventBridge waits for the function's answer.
func (b *Bus) waits() bool {
	return b.options.Subscriber != nil && b.options.Subscriber.RequestResponse
}

func (b *Bus) fifo() bool { return b.options.Subscriber != nil && b.options.Subscriber.FIFO }

// invokes reports whether trying w means to invoke the function.
func (b *Bus) invokes(w *work) bool { return w.queued || b.waits() }

// policy returns the policy under which w is given up.
func (b *Bus) policy(w *work) RetryPolicy {
	if w.queued {
		return b.options.FunctionRetry
	}
	return b.options.TargetRetry
}

// enqueue adds work. The caller holds b.mu.
func (b *Bus) enqueue(w *work) {
	b.formed++
	w.number = b.formed
	w.element = b.work.PushBack(w)
}

// remove takes away work that is done or given up. The caller holds b.mu.
func (b *Bus) remove(w *work) {
	b.work.Remove(w.element)
	for _, p := range w.parts {
		p.event.deliveries--
	}
}

// take returns the next work to be tried, marked as busy, or nil and the first moment at which there may be some, which is
// zero if only a change can bring it about. free is whether the function can be invoked. The caller holds b.mu.
func (b *Bus) take(now time.Time, free bool) (taken *work, next time.Time) {
	held := b.fifo() && b.calling() // whether something is before what comes, in order
	for element := b.work.Front(); element != nil; element = element.Next() {
		w := element.Value.(*work)
		if b.fifo() && !w.queued {
			if held {
				continue
			}
			held = true
		}
		switch {
		case w.busy, !free && b.invokes(w):
		case w.due.After(now):
			next = earlier(next, w.due)
		default:
			w.busy = true
			return w, time.Time{}
		}
	}
	if len(b.pending) == 0 || held || !free && b.waits() {
		return nil, next
	}
	w, end := b.batch(now)
	if w == nil {
		return nil, earlier(next, end)
	}
	w.busy = true
	b.enqueue(w)
	return w, time.Time{}
}

// calling reports whether EventBridge is trying something. The caller holds b.mu.
func (b *Bus) calling() bool {
	for element := b.work.Front(); element != nil; element = element.Next() {
		if w := element.Value.(*work); w.busy && !w.queued {
			return true
		}
	}
	return false
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// batch makes work of what waits for a subscriber, or returns when the batch is complete. The caller holds b.mu.
func (b *Bus) batch(now time.Time) (*work, time.Time) {
	limit := lambdatest.MaxPayload
	if !b.waits() {
		limit = maxAsyncPayload
	}
	n, size := 0, len("[]")
	full := false
	for n < len(b.pending) && !full {
		size += len(b.pending[n].json) + len(",")
		if full = size > limit && n > 0; !full {
			n++
			full = n == b.options.Subscriber.MaxBatchSize
		}
	}
	first := b.pending[0].since
	if end := first.Add(b.options.Subscriber.MaxBatchWindow); !full && now.Before(end) {
		return nil, end
	}
	w := &work{parts: b.pending[:n:n], since: first, due: now}
	b.pending = b.pending[n:]
	return w, time.Time{}
}

// maxAsyncPayload is the most bytes of the event of an asynchronous invocation, 1 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const maxAsyncPayload = 1 << 20

// duplicate adds a copy of what was delivered, to be tried when it is due. Its age counts from then. The caller holds b.mu.
func (b *Bus) duplicate(parts []part, due time.Time) {
	copied := &work{parts: parts, queued: !b.waits(), since: due, due: due, extra: true}
	for _, p := range parts {
		p.event.deliveries++
	}
	b.stats.Duplicates += len(parts)
	b.enqueue(copied)
	if b.fifo() && b.waits() {
		b.work.MoveToFront(copied.element)
	}
}

// maybeDuplicate adds a copy of w if the seed says so. The caller holds b.mu.
func (b *Bus) maybeDuplicate(w *work, now time.Time) {
	number := strconv.Itoa(w.number)
	if w.extra || b.seed.Fraction("duplicate", number) >= b.options.DuplicateProbability {
		return
	}
	halves := 2 * b.seed.Fraction("when", number)
	delay := time.Duration(max(0, halves-1) * float64(time.Minute))
	if b.fifo() && b.waits() {
		delay = 0
	}
	b.duplicate(w.parts, now.Add(delay))
}

// postpone has w tried again after a delay, or looked at when it is too old for that. The caller holds b.mu.
func (b *Bus) postpone(w *work, now time.Time, delay time.Duration) {
	w.retry = now.Add(delay)
	b.schedule(w)
}

func (b *Bus) schedule(w *work) {
	w.due = w.retry
	if end := w.since.Add(b.policy(w).MaximumEventAge); end.Before(w.due) {
		w.due = end
	}
	w.busy = false
}

// expire gives up what of w is too old, and reports whether there is something left to be tried now. A batch has parts of
// different ages with EventBridge, and is one with Lambda. The caller holds b.mu.
func (b *Bus) expire(w *work, now time.Time) bool {
	age := b.policy(w).MaximumEventAge
	if now.Before(w.since.Add(age)) {
		return true
	}
	old := &work{queued: w.queued, failures: w.failures, invocations: w.invocations, err: w.err}
	var fresh []part
	for _, p := range w.parts {
		if now.Before(p.since.Add(age)) {
			fresh = append(fresh, p)
		} else {
			old.parts = append(old.parts, p)
		}
	}
	if len(fresh) == 0 {
		b.deadLetter(w, EventAgeExceeded, now)
		return false
	}
	w.parts = fresh
	w.since = fresh[0].since // events wait in the order in which they were put
	b.enqueue(old)
	b.deadLetter(old, EventAgeExceeded, now)
	if now.Before(w.retry) {
		b.schedule(w)
		return false
	}
	return true
}

// fail has w tried again after its nth failure, or gives it up. The caller holds b.mu.
func (b *Bus) fail(w *work, now time.Time, err error) {
	w.failures++
	w.err = err
	switch {
	case w.failures > max(0, b.policy(w).MaximumRetryAttempts):
		b.deadLetter(w, RetriesExhausted, now)
	case w.queued:
		b.postpone(w, now, time.Duration(w.failures)*b.options.RetryDelay)
	default:
		b.postpone(w, now, b.backoff(w))
	}
}

// backoff returns how long EventBridge waits: half to all of 1 second, 2, 4, and so on up to 10 minutes. AWS documents that
// it does, and not how long.
func (b *Bus) backoff(w *work) time.Duration {
	longest := min(time.Second<<min(w.failures-1, 20), 10*time.Minute)
	jitter := b.seed.Fraction("backoff", strconv.Itoa(w.number), strconv.Itoa(w.failures))
	return longest/2 + time.Duration(jitter*float64(longest/2))
}

// throttled has w tried again after its nth throttle: 1 second, 2, 4, and so on up to 5 minutes
// (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). The caller holds b.mu.
func (b *Bus) throttled(w *work, now time.Time) {
	w.throttles++
	w.err = errThrottled
	b.postpone(w, now, min(time.Second<<min(w.throttles-1, 20), 5*time.Minute))
}
