package sourcetest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
)

// Logs keeps the lines that a handler logs.
type Logs struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// Line is what tests read of a log line.
type Line struct {
	Level, Msg, Record, Outcome, Source, Error, Stack string
	Attempt, Records, Failed, Succeeded               int
}

// Write takes what the logger writes.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(p)
}

// Logger returns a logger that writes here, at all levels.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Text returns all that was logged.
func (l *Logs) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.String()
}

// Lines returns the lines in their order.
func (l *Logs) Lines(t testing.TB) (lines []Line) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(l.Text())))
	for decoder.More() {
		var n Line
		if err := decoder.Decode(&n); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, n)
	}
	return lines
}

// About returns the lines with the message.
func (l *Logs) About(t testing.TB, msg string) (lines []Line) {
	t.Helper()
	for _, n := range l.Lines(t) {
		if n.Msg == msg {
			lines = append(lines, n)
		}
	}
	return lines
}

// Failure returns the one line of a record that failed.
func (l *Logs) Failure(t testing.TB, record string) Line {
	t.Helper()
	var found []Line
	for _, n := range l.Lines(t) {
		if n.Record == record {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines about %q, want 1:\n%s", len(found), record, l.Text())
	}
	return found[0]
}
