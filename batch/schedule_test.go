package batch

import (
	"context"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name        string
		left        time.Duration // until the deadline
		reserve     time.Duration
		cut, answer time.Duration // before the deadline
		clamped     bool
	}{
		{"default, long", time.Minute, 0, time.Second, time.Second / 2, false},
		{"default, ten seconds", 10 * time.Second, 0, time.Second, time.Second / 2, false},
		{"default, short", 3 * time.Second, 0, 300 * time.Millisecond, 150 * time.Millisecond, false},
		{"default, past", -time.Minute, 0, 0, 0, false},
		{"default, now", 0, 0, 0, 0, false},
		{"explicit", time.Minute, 10 * time.Second, 10 * time.Second, 5 * time.Second, false},
		{"explicit, tiny", time.Minute, time.Millisecond, time.Millisecond, time.Millisecond / 2, false},
		{"explicit, half", time.Minute, 30 * time.Second, 30 * time.Second, 15 * time.Second, false},
		{"explicit, more than half", time.Minute, 30*time.Second + 1, 30 * time.Second, 15 * time.Second, true},
		{"explicit, more than all", time.Minute, time.Hour, 30 * time.Second, 15 * time.Second, true},
		{"explicit, past", -time.Minute, time.Second, 0, 0, true},
		{"none", time.Minute, -1, 0, -grace, false},
		{"none, past", -time.Minute, -1, 0, -grace, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			deadline := now.Add(test.left)
			ctx, cancel := context.WithDeadline(t.Context(), deadline)
			defer cancel()
			s := newSchedule(ctx, now, test.reserve)
			if cut := deadline.Sub(s.cut); cut != test.cut {
				t.Errorf("cut %v before the deadline, want %v", cut, test.cut)
			}
			if answer := deadline.Sub(s.answer); answer != test.answer {
				t.Errorf("answer %v before the deadline, want %v", answer, test.answer)
			}
			if s.clamped != test.clamped {
				t.Errorf("clamped = %v, want %v", s.clamped, test.clamped)
			}
		})
	}
	for _, reserve := range []time.Duration{-1, 0, time.Hour} {
		if s := newSchedule(t.Context(), now, reserve); s != (schedule{}) {
			t.Errorf("without a deadline, reserve %v: schedule = %+v, want the zero one", reserve, s)
		}
	}
}

func TestAnswerAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	with := schedule{cut: now.Add(10 * time.Second), answer: now.Add(15 * time.Second)}
	for _, test := range []struct {
		name string
		s    schedule
		cut  time.Duration // after now
		want time.Duration
	}{
		{"no deadline", schedule{}, 0, grace},
		{"at the time for it", with, 10 * time.Second, 15 * time.Second},
		{"late", with, 16 * time.Second, 15 * time.Second},
		{"cancelled early", with, 2 * time.Second, 2*time.Second + grace},
		{"cancelled shortly before", schedule{cut: now.Add(time.Second), answer: now.Add(1500 * time.Millisecond)},
			900 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.s.answerAfter(now.Add(test.cut)).Sub(now); got != test.want {
				t.Errorf("answer after %v, want %v", got, test.want)
			}
		})
	}
}
