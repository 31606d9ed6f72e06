package shardtest

import (
	"fmt"
	"slices"
	"time"
)

// A Reason is why records were discarded.
type Reason int

const (
	// RetryAttemptsExhausted: MaximumRetryAttempts retries have failed.
	RetryAttemptsExhausted Reason = iota + 1
	// RecordAgeExceeded: the records were older than MaximumRecordAge.
	RecordAgeExceeded
	// PayloadTooLarge: the record alone makes an event of more than 6 MB, so that no function can get it.
	PayloadTooLarge
)

// String returns the name of the constant, which for the first two is the condition that an on-failure destination is
// told.
func (r Reason) String() string {
	switch r {
	case RetryAttemptsExhausted:
		return "RetryAttemptsExhausted"
	case RecordAgeExceeded:
		return "RecordAgeExceeded"
	case PayloadTooLarge:
		return "PayloadTooLarge"
	default:
		return fmt.Sprintf("Reason(%d)", int(r))
	}
}

// Discarded is what an on-failure destination is told: a batch, or what was left of it, that the mapping has given up
// (https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html).
type Discarded struct {
	// Shard is the shard that the records are from.
	Shard string
	// StartSequenceNumber and EndSequenceNumber are those of the first and the last record.
	StartSequenceNumber, EndSequenceNumber string
	// Count is how many records there are. It is 0 if the final invocation of a tumbling window was given up, which had
	// none.
	Count int
	// SequenceNumbers are those of all the records. AWS does not tell them.
	SequenceNumbers []string
	// Reason is why they were discarded.
	Reason Reason
	// Attempts is how often the batch was delivered, before it was split and after.
	Attempts int
	// At is when it was discarded.
	At time.Time
	// Window is the tumbling window, nil if there are none.
	Window *Window
}

// Discarded returns what the mapping has given up, in that order.
func (s *Stream[R]) Discarded() []Discarded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.discarded)
}

// discard gives up the first n records of a batch. The caller holds s.mu.
func (s *Stream[R]) discard(l *lane[R], b *batch[R], n int, reason Reason, now time.Time) {
	if n == 0 {
		return
	}
	numbers := sequenceNumbers(b.records[:n])
	for _, r := range b.records[:n] {
		r.discarded = now
	}
	l.checkpoint = numbers[n-1]
	b.records = b.records[n:]
	s.stats.Discarded += n
	s.discarded = append(s.discarded, Discarded{
		Shard: l.shard.id, StartSequenceNumber: numbers[0], EndSequenceNumber: numbers[n-1], Count: n,
		SequenceNumbers: numbers, Reason: reason, Attempts: b.attempts, At: now, Window: l.window.show(b.final),
	})
}

// discardWindow gives up the final invocation of a window. The caller holds s.mu.
func (s *Stream[R]) discardWindow(l *lane[R], b *batch[R], now time.Time) {
	s.discarded = append(s.discarded, Discarded{
		Shard: l.shard.id, Reason: RetryAttemptsExhausted, Attempts: b.attempts, At: now, Window: l.window.show(b.final),
	})
}
