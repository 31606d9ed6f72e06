package sqs_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Case 34: one line for each message that failed, and one for the batch. No body in any.
func TestLogging(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		var logged logs
		messages := numbered(3)
		for i := range messages {
			messages[i].Body = "confidential"
		}
		messages[1].Receives = 7
		w := &worker{errs: map[string]error{"m2": errors.New("no stock")}}
		wantFailures(t, t.Context(), newHandler(t, w.handle, options, logged.option), event(messages...), "m2")
		want := []sourcetest.Line{
			{Level: "ERROR", Msg: "record failed", Record: "m2", Outcome: "failed", Source: standardARN, Error: "no stock", Attempt: 7},
			{Level: "INFO", Msg: "batch finished", Records: 3, Failed: 1, Succeeded: 2},
		}
		if diff := cmp.Diff(want, logged.Lines(t)); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if strings.Contains(logged.Text(), "confidential") {
			t.Errorf("a body is in the log:\n%s", logged.Text())
		}
	})
}

// When all is well there is a summary for debugging, and nothing else.
func TestLoggingOfSuccess(t *testing.T) {
	var logged logs
	wantFailures(t, t.Context(), newHandler(t, (&worker{}).handle, logged.option), event(numbered(3)...))
	want := []sourcetest.Line{{Level: "DEBUG", Msg: "batch finished", Records: 3, Succeeded: 3}}
	if diff := cmp.Diff(want, logged.Lines(t)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// What was skipped behind a failure is in the summary. A line for each would be a thousand that say the same.
func TestLoggingOfSkipped(t *testing.T) {
	var logged logs
	w := &worker{errs: failing("a1")}
	wantFailures(t, t.Context(), newHandler(t, w.handle, logged.option), event(grouped("a1", "a2", "a3")...), "a1", "a2", "a3")
	var levels []string
	for _, n := range logged.Lines(t) {
		levels = append(levels, n.Level+" "+n.Record)
	}
	if diff := cmp.Diff([]string{"ERROR a1", "DEBUG a2", "DEBUG a3", "INFO "}, levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// The default logger is slog's at the time of the line, so that a program can set it after the handler was made.
func TestLoggingByDefault(t *testing.T) {
	var logged logs
	w := &worker{errs: failing("m1")}
	h, err := sqs.NewHandler(w.handle)
	if err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(logged.Logger())
	wantFailures(t, t.Context(), h, event(numbered(1)...), "m1")
	if line := logged.Failure(t, "m1"); line.Error != "m1 fails" {
		t.Errorf("line is %+v, want the failure of m1", line)
	}
}

// A logger that panics changes no outcome.
func TestLoggingPanics(t *testing.T) {
	w := &worker{errs: failing("m1")}
	h := newHandler(t, w.handle, func(o *sqs.Options) { o.Logger = slog.New(panicking{}) })
	defer func() {
		if value := recover(); value != nil {
			t.Errorf("Invoke panicked: %v", value)
		}
	}()
	wantFailures(t, t.Context(), h, event(numbered(3)...), "m1")
	w.want(t, "m1", "m2", "m3")
}

// panicking is a slog.Handler that panics at lines about records.
type panicking struct{ slog.Handler }

func (panicking) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelError }
func (panicking) Handle(context.Context, slog.Record) error        { panic("no log") }

// mute is a slog.Handler that panics at every line.
type mute struct{ slog.Handler }

func (mute) Enabled(context.Context, slog.Level) bool  { return true }
func (mute) Handle(context.Context, slog.Record) error { panic("no log") }

// A logger that panics changes neither what runs nor what is answered where sqs itself logs.
func TestLoggingPanicsInWarnings(t *testing.T) {
	quiet := func(o *sqs.Options) { o.Logger = slog.New(mute{}) }
	t.Run("visibility fails", func(t *testing.T) {
		c := changer{fail: func(context.Context) error { return errors.New("access denied") }}
		w := &worker{errs: map[string]error{"m1": retryAfter(time.Minute)}}
		wantFailures(t, t.Context(), newHandler(t, w.handle, quiet, c.option), event(numbered(2)...), "m1")
		w.want(t, "m1", "m2")
	})
	t.Run("old message", func(t *testing.T) {
		w := &worker{}
		guard := guarded(t, func(o *idempotency.Options) { o.Expiry = time.Hour })
		wantFailures(t, t.Context(), newHandler(t, w.handle, quiet, guard), event(message{ID: "m1", Sent: time.Now().Add(-2 * time.Hour)}))
		w.want(t, "m1")
	})
}
