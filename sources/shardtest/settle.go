package shardtest

import (
	"slices"
	"strconv"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// Delivery is one invocation that has ended.
type Delivery[R any] struct {
	// Invocation counts the stream's invocations, from 1.
	Invocation int
	// Shard is the shard that the records are from.
	Shard string
	// Records is what the handler received, and SequenceNumbers are those of the records. Both are empty at the end of a
	// window that is over.
	Records         []R
	SequenceNumbers []string
	// Window is the tumbling window, nil if there are none.
	Window *Window
	// Attempt counts how often the batch, or its record that has come most often, was delivered.
	Attempt int
	// Started and Ended are the times of both. They differ by less than FunctionTimeout unless the invocation timed out.
	Started, Ended time.Time
	// Ending is how it ended.
	Ending lambdatest.Ending
	// Response is the answer's bytes, nil unless Ending is lambdatest.Answered.
	Response []byte
	// Err is the handler's error or panic with its stack, or what is wrong with the answer, so that AWS takes it as the
	// failure of every record. It is nil for a good answer, a crash and a timeout.
	Err error
	// CheckpointBefore and CheckpointAfter are the sequence numbers of the record last done with in the shard, or, above
	// a ParallelizationFactor of 1, in its lane, when the invocation started and when it had ended. They are empty if
	// there is no such record.
	CheckpointBefore, CheckpointAfter string
	// Done, Returned and Discarded are the sequence numbers of the records that were done with, of those that come
	// again, and of those that were given up.
	Done, Returned, Discarded []string
	// AnswerLost says that DuplicateProbability has struck: the answer was good, whatever failures it reports, and all
	// records come again.
	AnswerLost bool
}

// settle does with the records of an invocation that has ended what AWS would, and completes d. The caller holds s.mu.
func (s *Stream[R]) settle(l *lane[R], b *batch[R], d *Delivery[R]) {
	l.inFlight = 0
	switch d.Ending {
	case lambdatest.Crashed:
		s.stats.Crashes++
	case lambdatest.TimedOut:
		s.stats.Timeouts++
	case lambdatest.FunctionError, lambdatest.Panicked:
		s.stats.Errors++
	}
	done, state := s.readAnswer(d)
	answered := d.Ending == lambdatest.Answered && d.Err == nil
	complete := answered && done == len(b.records)
	if answered && s.losesAnswer(d) {
		d.AnswerLost = true
		s.stats.Repeated += done
		d.Returned = d.SequenceNumbers
		d.CheckpointAfter = l.checkpoint
		return // the batch is still the first of the lane's work
	}

	l.work = l.work[1:]
	d.Done = d.SequenceNumbers[:done]
	s.checkpoint(l, b, done, d.Ended)
	if answered && l.window != nil {
		l.window.state = state
	}
	switch {
	case complete && b.final:
		l.endWindow()
	case complete:
	default:
		s.settleFailed(l, b, done > 0, d)
	}
	if l.window != nil && len(l.window.state) > maxState && !l.window.early {
		l.window.early = true
		l.work = slices.Insert(l.work, 0, &batch[R]{final: true})
	}
	d.CheckpointAfter = l.checkpoint
}

// readAnswer returns how many records are done with, the first ones of the batch, and the state of its window. It sets
// d.Err if the answer makes all of them failed.
func (s *Stream[R]) readAnswer(d *Delivery[R]) (done int, state string) {
	if d.Ending != lambdatest.Answered {
		return 0, ""
	}
	var failed map[string]bool
	if !s.options.WithoutReportBatchItemFailures {
		if failed, d.Err = lambdatest.ReadFailures(d.Response, d.SequenceNumbers); d.Err != nil {
			return 0, ""
		}
	}
	if d.Window != nil {
		var err error
		if state, err = readState(d.Response); err != nil {
			d.Err = s.errorf("%w", err)
			return 0, ""
		}
	}
	for done < len(d.SequenceNumbers) && !failed[d.SequenceNumbers[done]] {
		done++
	}
	return done, state
}

// losesAnswer reports whether the mapping never learns of this answer.
func (s *Stream[R]) losesAnswer(d *Delivery[R]) bool {
	first := d.CheckpointBefore // different for each invocation that has no records
	if len(d.SequenceNumbers) > 0 {
		first = d.SequenceNumbers[0]
	}
	return s.options.DuplicateProbability > 0 && s.options.DuplicateProbability >
		s.seed.Fraction("lost", d.Shard, first, strconv.Itoa(len(d.SequenceNumbers)), strconv.Itoa(d.Attempt))
}

// checkpoint takes the first n records of the batch as done. The caller holds s.mu.
func (s *Stream[R]) checkpoint(l *lane[R], b *batch[R], n int, now time.Time) {
	for _, r := range b.records[:n] {
		r.done = now
		l.checkpoint = r.SequenceNumber
	}
	s.stats.Done += n
	b.records = b.records[n:]
}

// settleFailed does with a batch that has failed, or with what is left of it after progress, one of three things. It is
// split in half, if it has failed as a whole and Options.BisectOnError is set. It is discarded, if its retries are used
// up. Or it comes again: at once after progress, otherwise later. The caller holds s.mu.
func (s *Stream[R]) settleFailed(l *lane[R], b *batch[R], progress bool, d *Delivery[R]) {
	whole := d.Ending != lambdatest.Answered || d.Err != nil
	switch {
	case s.options.BisectOnError && whole && len(b.records) > 1:
		first, second := b.halves()
		l.work = slices.Insert(l.work, 0, first, second)
		d.Returned = sequenceNumbers(b.records)
		return
	case s.options.BisectOnError && progress:
	case s.options.ResetRetriesOnProgress && progress:
		b.failures = 1
	default:
		b.failures++
	}
	if limit := s.options.MaximumRetryAttempts; limit >= 0 && b.failures > limit {
		d.Discarded = sequenceNumbers(b.records)
		s.giveUp(l, b, d.Ended)
		return
	}
	if progress {
		b.progress()
	} else {
		b.again(d.Ended)
	}
	l.work = slices.Insert(l.work, 0, b)
	d.Returned = sequenceNumbers(b.records)
}

// giveUp discards what is left of a batch whose retries are used up. The caller holds s.mu.
func (s *Stream[R]) giveUp(l *lane[R], b *batch[R], now time.Time) {
	if len(b.records) == 0 {
		s.discardWindow(l, b, now)
		l.endWindow()
		return
	}
	// If the batch was the last of its window, the window is not given up with it: it is over and still there, and has
	// another final invocation.
	s.discard(l, b, len(b.records), RetryAttemptsExhausted, now)
}

// endWindow is what the success of a final invocation does, or its end.
func (l *lane[R]) endWindow() {
	if l.window.early {
		l.window.early, l.window.used, l.window.state = false, false, freshState
		return
	}
	l.window = nil
}

func sequenceNumbers[R any](records []*record[R]) []string {
	numbers := make([]string, len(records))
	for i, r := range records {
		numbers[i] = r.SequenceNumber
	}
	return numbers
}
