package eventbridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/eventbridge"
)

// sink is a dead-letter sink that notes what it took, unless it fails.
type sink struct {
	err  error
	took []string
}

func (s *sink) take(_ context.Context, r *batch.Record, err error) error {
	if s.err == nil {
		s.took = append(s.took, fmt.Sprintf("%s: %v", r.Value.(interface{ JSON() string }).JSON(), err))
	}
	return s.err
}

func (s *sink) option(o *eventbridge.Options) { o.DeadLetter = s.take }

// want checks what the sink took: of each letter, that it begins with the event and ends with the error.
func (s *sink) want(t *testing.T, letters ...[2]string) {
	t.Helper()
	if len(s.took) != len(letters) {
		t.Fatalf("sink took %q, want %d letters", s.took, len(letters))
	}
	for i, l := range letters {
		if !strings.HasPrefix(s.took[i], l[0]+": ") || !strings.Contains(s.took[i], l[1]) {
			t.Errorf("letter %d is %q, want one of %q with the error %q", i, s.took[i], l[0], l[1])
		}
	}
}

func maxAge(d time.Duration) func(*eventbridge.Options) {
	return func(o *eventbridge.Options) { o.MaxAge = d }
}

// bubble is when the clock of a bubble begins.
var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the event with another time.
func at(event string, t time.Time) string {
	return change(event, `"time":"2026-09-23T18:00:00Z"`, `"time":"`+t.Format(time.RFC3339Nano)+`"`)
}

// The age of an event counts from when a custom event bus took it in, or from its time. Without either it has none.
func TestMaxAge(t *testing.T) {
	old := bubble.Add(-time.Hour - time.Millisecond)
	ingested := func(event string, t time.Time) string {
		return change(event, published.Add(time.Second).Format(time.RFC3339), t.Format(time.RFC3339Nano))
	}
	event := placed(1, "o1")
	for _, test := range []struct {
		name, event string
		tooOld      bool
	}{
		{"old", at(event, old), true},
		{"of the limit", at(event, bubble.Add(-time.Hour)), false},
		{"of the future", at(event, bubble.Add(time.Hour)), false},
		{"without a time", change(event, `"time"`, `"other"`), false},
		{"malformed", change(event, "18:00:00Z", "six"), false},
		{"taken in late", ingested(withMetadata(2, at(event, old), "g"), bubble), false},
		{"taken in long ago", ingested(withMetadata(2, at(event, bubble), "g"), old), true},
		{"taken in at no time", change(withMetadata(2, at(event, old), "g"), "aws:IngestionTime", "other"), true},
		{"raw", ingested(withMetadata(2, `{"id":"o1"}`, "g"), old), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, guard func(*eventbridge.Options)) {
				synctest.Test(t, func(t *testing.T) {
					w := &worker{}
					h := newHandler(t, w.handle, guard, maxAge(time.Hour))
					if !test.tooOld {
						wantDone(t, t.Context(), h, []byte(test.event))
						w.wantOrder(t, "o1")
						return
					}
					for range 2 {
						e := wantFailed(t, t.Context(), h, []byte(test.event), 1, 1,
							"eventbridge: event is too old: it is of 1999-12-31T22:59:59Z, want one that is no older than 1h0m0s")
						if !errors.Is(e, eventbridge.ErrTooOld) || !batch.IsPermanent(e) {
							t.Errorf("error is %v, want a permanent %v", e, eventbridge.ErrTooOld)
						}
					}
					w.wantOrder(t)
				})
			})
		})
	}
}

// A replay is as old as its event, and so too old, unless replays are to run again: one that is given up then never would.
func TestMaxAgeOfReplays(t *testing.T) {
	named := change(placed(1, "o1"), `"version"`, `"replay-name":"fix","version"`)
	unnamed := change(withMetadata(1, placed(1, "o1"), "g"), "LIVE", "REPLAY")
	for _, test := range []struct {
		name, event string
		runReplays  bool
		tooOld      bool
	}{
		{"by default", named, false, true},
		{"run again", named, true, false},
		{"run again, of a custom event bus", unnamed, true, false},
		{"run again, but no replay", placed(1, "o1"), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(published) + 3*time.Hour)
				w := &worker{}
				h := newHandler(t, w.handle, guarded(t), maxAge(time.Hour), func(o *eventbridge.Options) { o.RunReplays = test.runReplays })
				if test.tooOld {
					wantFailed(t, t.Context(), h, []byte(test.event), 1, 1, "eventbridge: event is too old")
					w.wantOrder(t)
					return
				}
				wantDone(t, t.Context(), h, []byte(test.event))
				w.wantOrder(t, "o1")
			})
		})
	}
}

// An event that is too old goes to the sink, and is done if that took it. One that is done already is not given up.
func TestMaxAgeSink(t *testing.T) {
	for _, test := range []struct {
		name string
		key  func(*eventbridge.Options)
		ends int // letters after it comes again
	}{
		{"own key", nil, 1},
		// A business key is free again, for the redrive.
		{"business key", byOrder(), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := &worker{errs: failing("o1")}, &sink{}
				h := newHandler(t, w.handle, guarded(t), test.key, s.option, maxAge(time.Hour))
				event, done := at(placed(1, "o1"), bubble), at(placed(2, "done"), bubble)
				wantFailed(t, t.Context(), h, array(event, done), 1, 2, "o1 fails")
				w.want(t, "done", "o1")
				time.Sleep(time.Hour + 1)
				s.err = errors.New("queue is gone")
				wantFailed(t, t.Context(), h, array(event, done), 1, 2, "event is too old", "queue is gone")
				s.err = nil
				wantDone(t, t.Context(), h, array(event, done))
				letter := [2]string{event, "eventbridge: event is too old"}
				s.want(t, letter)
				wantDone(t, t.Context(), h, array(event, done))
				s.want(t, [][2]string{letter, letter}[:test.ends]...)
				w.want(t)
			})
		})
	}
}

// A detail need not be decoded to know that it is too old.
func TestMaxAgeBeforeDecoding(t *testing.T) {
	h := newHandler(t, (&worker{}).handle, guarded(t), maxAge(time.Hour))
	e := wantFailed(t, t.Context(), h, []byte(change(at(placed(1, "o1"), bubble), `"amount":1`, `"amount":"x"`)), 1, 1)
	if !errors.Is(e, eventbridge.ErrTooOld) {
		t.Errorf("error is %v, want %v", e, eventbridge.ErrTooOld)
	}
}

// Who is given up, and when: events that will not get better at once where nobody counts, and at MaxAttempts otherwise.
func TestDeadLetter(t *testing.T) {
	event := placed(1, "o1")
	const never = 0
	for _, test := range []struct {
		name, event string
		err         error
		counted, at int // the delivery with which it is given up, where attempts are counted to 2 and where they are not
		want        string
	}{
		{"failed", event, errors.New("boom"), 2, never, "boom"},
		{"permanent", event, batch.Permanent(errors.New("boom")), 1, 1, "boom"},
		{"undecodable", change(event, `"amount":1`, `"amount":"x"`), nil, 2, 1, "does not fit a Go int"},
		{"without detail", change(event, `,"detail":{"id":"o1","amount":1}`, ""), nil, 2, 1, "is missing, want one"},
		{"without a key", change(event, uuid(1), ""), nil, 1, 1, "idempotency: key is missing"}, // nobody can count it
		{"null", "null", nil, 1, 1, "event is null"},
		{"id a number", change(event, `"`+uuid(1)+`"`, "17"), nil, 1, 1, "id is a number"},
		{"Scheduler", scheduled, nil, 1, 1, "Scheduler's default input"},
	} {
		for _, counted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, counted %v", test.name, counted), func(t *testing.T) {
				s, w := &sink{}, &worker{errs: map[string]error{"o1": test.err}}
				guard, givenUp := guarded(t), test.at
				attempts := func(*eventbridge.Options) {}
				if counted {
					guard, givenUp = guarded(t, countAttempts), test.counted
					attempts = func(o *eventbridge.Options) { o.MaxAttempts = 2 }
				}
				h := newHandler(t, w.handle, guard, attempts, s.option)
				for delivery := 1; delivery <= 3; delivery++ {
					if delivery == givenUp {
						wantDone(t, t.Context(), h, array(test.event))
						break
					}
					wantFailed(t, t.Context(), h, array(test.event), 1, 1, test.want)
				}
				if givenUp == never {
					s.want(t)
				} else {
					s.want(t, [2]string{test.event, test.want})
				}
			})
		}
	}
}

// With a key of one's own, one that is missing is given up as what cannot be decoded is: it is counted by the event's id.
func TestDeadLetterOfBusinessKey(t *testing.T) {
	s, w := &sink{}, &worker{}
	h := newHandler(t, w.handle, guarded(t, countAttempts), byOrder(), s.option, func(o *eventbridge.Options) { o.MaxAttempts = 2 })
	event, raw := placed(1, ""), `{"id":1}`
	wantFailed(t, t.Context(), h, []byte(event), 1, 1, "key is missing")
	wantDone(t, t.Context(), h, []byte(event))
	wantDone(t, t.Context(), h, []byte(event)) // replayed
	wantDone(t, t.Context(), h, []byte(raw))   // which nobody can count
	wantDone(t, t.Context(), h, []byte("null"))
	s.want(t, [2]string{event, "key is missing"}, [2]string{raw, "does not fit a Go string"}, [2]string{"null", "eventbridge: event is null"})
	if letter := s.took[2]; strings.Contains(letter, "key") {
		t.Errorf("letter is %q, want no word of its key", letter)
	}
	w.wantOrder(t)
}

// An event that is older than its key lives is warned about, once.
func TestAgeWarning(t *testing.T) {
	for _, test := range []struct {
		name  string
		age   time.Duration
		guard func(*idempotency.Options)
		want  int
	}{
		{"young", 31 * time.Hour, nil, 0},
		{"older than the default", 31*time.Hour + 1, nil, 1},
		{"a longer life", 32 * time.Hour, func(o *idempotency.Options) { o.Expiry = 48 * time.Hour }, 0},
		{"a shorter life", 2 * time.Hour, func(o *idempotency.Options) { o.Expiry = time.Hour }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				guard := guarded(t)
				if test.guard != nil {
					guard = guarded(t, test.guard)
				}
				h := newHandler(t, (&worker{}).handle, guard, func(o *eventbridge.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				for n := range 2 {
					wantDone(t, t.Context(), h, []byte(at(placed(n, "o1"), bubble.Add(-test.age))))
				}
				if got := strings.Count(log.String(), "record is older than its idempotency key lives"); got != test.want {
					t.Errorf("%d warnings, want %d:\n%s", got, test.want, &log)
				}
			})
		})
	}
}

// Keys live 31 hours by default.
func TestKeyLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		h := newHandler(t, w.handle, guarded(t))
		payload := []byte(at(placed(1, "o1"), bubble))
		var ran []int
		for _, wait := range []time.Duration{0, 31*time.Hour - time.Second, 2 * time.Second} {
			time.Sleep(wait)
			wantDone(t, t.Context(), h, payload)
			ran = append(ran, len(w.take()))
		}
		if diff := cmp.Diff([]int{1, 0, 1}, ran); diff != "" {
			t.Errorf("runs at once, before and after 31 hours (-want +got):\n%s", diff)
		}
	})
}
