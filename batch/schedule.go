package batch

import (
	"context"
	"time"
)

// grace is how long running handlers have to return after a cut that no deadline foretold.
const grace = time.Second

// schedule says when a batch stops starting records, and when its answer goes out.
type schedule struct {
	cut    time.Time // zero: no deadline
	answer time.Time
	// clamped is whether the reserve asked for was more than half of the time left.
	clamped bool
	reserve time.Duration
}

func newSchedule(ctx context.Context, now time.Time, reserve time.Duration) schedule {
	deadline, ok := ctx.Deadline()
	if !ok {
		return schedule{}
	}
	left := max(deadline.Sub(now), 0)
	s := schedule{reserve: reserve}
	switch {
	case reserve < 0:
		// Without a reserve Lambda ends the process at the deadline. Elsewhere the handlers still get their grace.
		return schedule{cut: deadline, answer: deadline.Add(grace)}
	case reserve == 0:
		s.reserve = min(DefaultReserve, left/10)
	case reserve > left/2:
		s.reserve, s.clamped = left/2, true
	}
	s.cut = deadline.Add(-s.reserve)
	s.answer = deadline.Add(-s.reserve / 2)
	return s
}

// answerAfter returns when the answer goes out after a cut at now.
func (s schedule) answerAfter(now time.Time) time.Time {
	graceful := now.Add(grace)
	if s.answer.IsZero() || (now.Before(s.cut) && graceful.Before(s.answer)) {
		return graceful
	}
	return s.answer
}
