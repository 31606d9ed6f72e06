package kinesis_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/sources/kinesis"
)

// logs keeps the lines that a handler logs.
type logs struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// line is what tests read of a log line.
type line struct {
	Level, Msg, Record, Outcome, Source, Error, Stack string
	Attempt, Records, Failed, Succeeded               int
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(p)
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// option makes l the logger of a handler.
func (l *logs) option(o *kinesis.Options) { o.Logger = l.logger() }

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.String()
}

func (l *logs) lines(t testing.TB) (lines []line) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(l.text())))
	for decoder.More() {
		var n line
		if err := decoder.Decode(&n); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, n)
	}
	return lines
}

// about returns the lines with the message.
func (l *logs) about(t testing.TB, msg string) (lines []line) {
	t.Helper()
	for _, n := range l.lines(t) {
		if n.Msg == msg {
			lines = append(lines, n)
		}
	}
	return lines
}

// failure returns the one line of a record that failed.
func (l *logs) failure(t testing.TB, record string) line {
	t.Helper()
	var found []line
	for _, n := range l.lines(t) {
		if n.Record == record {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines about %q, want 1:\n%s", len(found), record, l.text())
	}
	return found[0]
}
